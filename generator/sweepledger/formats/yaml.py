"""Machine-written YAML that every reader takes alike. What people write is read elsewhere: `reader`."""

import math
import re
from collections.abc import Mapping
from typing import Any

import yaml

from generator.formats.plain_yaml import harm, line_of, words_of

PLAIN_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*", re.ASCII)
MISREAD_KEYS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


class _Key(str):
    """A mapping key; told apart from values because keys stay bare where that is safe."""

    __slots__ = ()


class _Dumper(yaml.CSafeDumper):
    """Quotes every text value: PyYAML leaves `1e-4` and `1234567e8` bare, which others read as numbers."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML names it
        return True


def _represent_text(dumper: yaml.CSafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style='"')


def _represent_key(dumper: yaml.CSafeDumper, key: str) -> yaml.ScalarNode:
    bare = PLAIN_KEY.fullmatch(key) is not None and key.lower() not in MISREAD_KEYS
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(key), style=None if bare else '"')


def _represent_mapping(dumper: yaml.CSafeDumper, mapping: Mapping[str, Any]) -> yaml.MappingNode:
    return dumper.represent_mapping(
        "tag:yaml.org,2002:map", {_Key(key): item for key, item in mapping.items()}, flow_style=False
    )


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(_Key, _represent_key)
_Dumper.add_representer(dict, _represent_mapping)


class _Loader(yaml.CSafeLoader):
    """Takes for numbers, booleans and null only what every reader does; Go writes some texts bare."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", r"true|false", "tf"),
    ("null", r"null|~|", ["n", "~", ""]),
    ("int", r"-?(?:0|[1-9][0-9]*)", "-0123456789"),
    ("float", r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?", "-0123456789"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern})\\Z"), list(_first))


def _construct_float(_loader: yaml.CSafeLoader, node: yaml.ScalarNode) -> float | str:
    """Go leaves `1234e567` bare as text, since no float holds it; one digest in seventy looks like that."""
    number = float(node.value)
    return number if math.isfinite(number) else str(node.value)


_Loader.add_constructor("tag:yaml.org,2002:float", _construct_float)


def dump(*documents: Any, banner: str = "") -> str:
    """Write documents with every text quoted, keys in the order given, after a banner of comment lines."""
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


class TextError(ValueError):
    """No machine writes such YAML, if it is any."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line
        """From 1."""


def load(text: str | bytes) -> Any:
    """Read one machine-written document. Raises TextError if it is no YAML, or no machine writes such."""
    found = harm(text.encode() if isinstance(text, str) else text)
    if found is not None:
        raise TextError(found.says, found.line)
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader, narrowed
    except yaml.YAMLError as error:
        raise TextError(f"not readable as YAML: {words_of(error)}", line_of(error)) from error


def line_of_key(text: str | bytes, *path: str) -> int:
    """Find the line, from 1, in which a document that can be read has a key; else that of its parent."""
    node, line = yaml.compose(text, Loader=_Loader), 1
    for name in path:
        pairs = node.value if isinstance(node, yaml.MappingNode) else ()
        found = next(((key, value) for key, value in pairs if key.value == name), None)
        if found is None:
            break
        line, node = found[0].start_mark.line + 1, found[1]
    return line


def load_all(text: str | bytes) -> tuple[Any, ...]:
    """Read all machine-written documents of a stream. Raises ValueError if it is no YAML."""
    try:
        return tuple(yaml.load_all(text, Loader=_Loader))
    except yaml.YAMLError as error:
        raise ValueError(f"not readable as YAML: {words_of(error)}") from error
