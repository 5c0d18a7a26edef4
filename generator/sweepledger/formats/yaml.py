"""Machine-written YAML: the dumper, the loader, and the guard against aliases, tags and depth.

`reader` reads the YAML that people write.
"""

import math
import re
from collections.abc import Callable
from typing import Any

import yaml

from sweepledger.problems import TextError

MAX_DEPTH = 32
"""A manifest has about 12 levels. PyYAML's C loader crashes on very deep documents."""

MAX_BYTES = 8 * 2**20
"""More than a thousand Jobs; longer documents would take seconds to check."""


def find_hazard(content: bytes, *, max_bytes: int | None = MAX_BYTES) -> TextError | None:
    """Return why a document is unsafe for another reader (alias, tag, depth, size, not YAML); else None."""
    if max_bytes is not None and len(content) > max_bytes:
        message = f"must have at most {max_bytes >> 20} MiB of YAML, got {len(content) >> 20}"
        return TextError(message, line=1)
    depth = 0
    try:
        for event in yaml.parse(content, Loader=yaml.CSafeLoader):
            line = event.start_mark.line + 1 if event.start_mark else 1
            match event:
                # A few hundred bytes of these make kustomize take gigabytes, and a circular one crashes it.
                case yaml.AliasEvent() | yaml.NodeEvent(anchor=str()):
                    return TextError(f"must hold no anchor or alias, got one in line {line}", line=line)
                case yaml.CollectionStartEvent(tag=str()) | yaml.ScalarEvent(tag=str()):
                    return TextError(f"must hold no tag, got {event.tag!r} in line {line}", line=line)
                case yaml.CollectionStartEvent():
                    depth += 1
                    if depth > MAX_DEPTH:
                        message = f"must nest at most {MAX_DEPTH} levels deep, got more in line {line}"
                        return TextError(message, line=line)
                case yaml.CollectionEndEvent():
                    depth -= 1
    except (yaml.YAMLError, ValueError) as error:
        return TextError(f"must be YAML: {error_text(error)}", line=error_line(error))
    return None


def error_text(error: Exception) -> str:
    """Return a YAML parser's error on one line."""
    if isinstance(error, yaml.MarkedYAMLError):
        return ", ".join(part for part in (error.context, error.problem) if part)
    return str(error).splitlines()[0]


def error_line(error: Exception) -> int:
    """Return the line of a YAML parser's error, from 1; the first line if the error has none."""
    mark = error.problem_mark or error.context_mark if isinstance(error, yaml.MarkedYAMLError) else None
    return 1 if mark is None else mark.line + 1


PLAIN_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*", re.ASCII)
MISREAD_KEYS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


class _Key(str):
    """A mapping key, which stays bare if that is safe, unlike a value."""

    __slots__ = ()


class _Dumper(yaml.CSafeDumper):
    """Quotes all text: PyYAML leaves `1e-4` and `1234567e8` bare, which other readers take for numbers."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML names it
        return True


def _quoted(dumper: yaml.CSafeDumper, text: str) -> yaml.ScalarNode:
    is_bare = isinstance(text, _Key) and PLAIN_KEY.fullmatch(text) and text.lower() not in MISREAD_KEYS
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style=None if is_bare else '"')


_Dumper.add_representer(str, _quoted)
_Dumper.add_representer(_Key, _quoted)
_Dumper.add_representer(
    dict,
    lambda dumper, mapping: dumper.represent_mapping(
        "tag:yaml.org,2002:map", {_Key(key): item for key, item in mapping.items()}, flow_style=False
    ),
)


class _Loader(yaml.CSafeLoader):
    """Reads a scalar as a number, boolean or null only if all readers do, because Go leaves some texts bare."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", r"true|false", "tf"),
    ("null", r"null|~|", ["n", "~", ""]),
    ("int", r"-?(?:0|[1-9][0-9]*)", "-0123456789"),
    ("float", r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?", "-0123456789"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern})\\Z"), list(_first))


def _construct_float(_loader: yaml.CSafeLoader, node: yaml.ScalarNode) -> float | str:
    """Return text for `1234e567`, which Go leaves bare because it exceeds a float; some digests have this form."""
    number = float(node.value)
    return number if math.isfinite(number) else str(node.value)


_Loader.add_constructor("tag:yaml.org,2002:float", _construct_float)


def dump(*documents: Any, banner: str = "") -> str:
    """Return documents as YAML with all text quoted and keys in their order, after a banner of comments."""
    comment = "".join(f"# {line}\n" for line in banner.splitlines())
    text = yaml.dump_all(
        documents,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=10_000,
        explicit_start=len(documents) > 1,
    )
    return comment + str(text)


def load(text: str | bytes) -> Any:
    """Read one machine-written document. Raises TextError if it is not YAML, or not as machines write it."""
    return _load(text, yaml.load, max_bytes=MAX_BYTES)


def load_all(text: str | bytes) -> tuple[Any, ...]:
    """Read all machine-written documents of a stream of any size. Raises TextError like `load`."""
    documents: list[Any] = _load(text, lambda part, loader: [*yaml.load_all(part, loader)], max_bytes=None)
    return tuple(documents)


def _load(text: str | bytes, read: Callable[[str | bytes, Any], Any], *, max_bytes: int | None) -> Any:
    hazard = find_hazard(text.encode() if isinstance(text, str) else text, max_bytes=max_bytes)
    if hazard is not None:
        raise hazard
    try:
        return read(text, _Loader)
    except yaml.YAMLError as error:
        raise TextError(f"not readable as YAML: {error_text(error)}", line=error_line(error)) from error
