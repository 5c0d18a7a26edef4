"""Other tools' files: one format a module, `read` makes a spec of it and `write` makes it of a sweep.

READERS and WRITERS name them; a module is imported when its format is asked for. Each names what is lost.
Nothing here touches a disk, expands a sweep or checks a spec: `commands` does.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module

from generator.exchange.loss import Exported, Imported, Reader, Writer
from generator.structs.sweep import Sweep
from generator.structs.values import Value

FORMATS = ("wandb", "katib", "hydra", "nvidia", "csv", "jsonl")
"""Each the name of a module beside this one, in the order in which people are told of them."""


def _reader(format_name: str) -> Reader:
    def read(content: bytes, *, name: str) -> Imported:
        reader: Reader = import_module(f"generator.exchange.{format_name}").read
        return reader(content, name=name)

    return read


def _writer(format_name: str) -> Writer:
    def write(sweep: Sweep, assignments: Sequence[Mapping[str, Value]]) -> Exported:
        writer: Writer = import_module(f"generator.exchange.{format_name}").write
        return writer(sweep, assignments)

    return write


READERS: Mapping[str, Reader] = {name: _reader(name) for name in FORMATS}
WRITERS: Mapping[str, Writer] = {name: _writer(name) for name in FORMATS}
