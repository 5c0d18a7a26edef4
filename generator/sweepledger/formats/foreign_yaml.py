"""YAML of other tools, read as these tools read it (YAML 1.1, or as in Go, with aliases), but within limits.

Dates and unknown tags become text, keys are always text; a number that is not finite is refused.
"""

import math
import re
from contextlib import suppress
from typing import Any

import yaml

from sweepledger.formats.yaml import error_line, error_text
from sweepledger.problems import TextError

MAX_BYTES = 1024 * 1024
"""Four times the limit of specs, because other tools write out what specs abbreviate."""
MAX_DEPTH = 64
MAX_NODES = 100_000
"""Counted after the expansion of aliases, so that a few hundred bytes cannot mean a billion values."""

EXPONENT = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+", re.ASCII)
MAX_INTEGER_BITS = 512
"""Longer integers cannot be compared with floats, and not every Python can print them."""

TAG_PREFIX = "tag:yaml.org,2002:"


class ExponentText(str):
    """Text in YAML 1.1 that its author meant as a number, such as `1e-3` without quotes."""

    __slots__ = ()


TEMPLATE = "`{{` is of a template, which becomes YAML when it is rendered, for example by `helm template`"


class ForeignError(TextError):
    """The file does not have the format that the user named, or contains a value without a meaning here."""


class _Loader(yaml.CSafeLoader):
    """PyYAML's safe loader, which W&B and Hydra use, without types that no parameter can have."""


def _plain(loader: Any, node: yaml.Node) -> Any:
    """Construct a tagged node as if it had no tag."""
    match node:
        case yaml.ScalarNode():
            return str(node.value)
        case yaml.SequenceNode():
            return loader.construct_sequence(node, deep=True)
        case _:
            return _mapping(loader, node)


def _mapping(loader: Any, node: Any) -> dict[str, Any]:
    seen: set[str] = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise ForeignError("keys must be text, got a list or a mapping", line=_line(key), hint=TEMPLATE)
        if key.value in seen:
            raise ForeignError(
                f"must not repeat the key {key.value!r}",
                line=_line(key),
                hint="readers keep the last: delete the other",
            )
        seen.add(key.value)
    loader.flatten_mapping(node)  # merge keys, whose keys may repeat
    return {key.value: loader.construct_object(value, deep=True) for key, value in node.value}


def _text(loader: Any, node: yaml.ScalarNode) -> str:
    text = str(loader.construct_scalar(node))
    return ExponentText(text) if not node.style and EXPONENT.fullmatch(text) else text


def _integer(loader: Any, node: yaml.ScalarNode) -> int:
    number = int(loader.construct_yaml_int(node))
    if number.bit_length() > MAX_INTEGER_BITS:
        raise ForeignError(
            f"must be a smaller number, got one of {number.bit_length()} bits", line=_line(node)
        )
    return number


def _float(loader: Any, node: yaml.ScalarNode) -> float:
    number = float(loader.construct_yaml_float(node))
    if not math.isfinite(number):
        raise ForeignError(
            f"must be a finite number, got {node.value!r}",
            line=_line(node),
            hint="no trial can have it: write the largest value to try",
        )
    return number


for _tag in ("timestamp", "binary", "omap", "pairs", "set"):
    _Loader.add_constructor(TAG_PREFIX + _tag, _plain)
_Loader.add_constructor(TAG_PREFIX + "map", _mapping)
_Loader.add_constructor(TAG_PREFIX + "float", _float)
_Loader.add_constructor(TAG_PREFIX + "int", _integer)
_Loader.add_constructor(TAG_PREFIX + "str", _text)
_Loader.add_constructor(None, _plain)  # any other tag


class _GoLoader(_Loader):
    """The same loader for files that Kubernetes and its controllers read, in Go (sigs.k8s.io/yaml).

    `on` is a boolean, `010` is eight and `1e3` a number; numbers of base 60, such as `12:30`, are texts. `y` and
    `n`, which Go reads as booleans, are texts here, because parameters may have these names.
    """

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's name, and its own per class
        first: [pair for pair in pairs if pair[0].removeprefix(TAG_PREFIX) in {"bool", "merge", "null"}]
        for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


GO_NUMBER = "!number of Go"
"""A tag that no file can have: which of these texts are numbers depends on their size, too."""
GO_OCTAL = re.compile(r"[-+]?0[0-7]+", re.ASCII)
GO_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
MISPLACED_UNDERSCORE = re.compile(r"(?<![0-9])_|_(?![0-9])", re.ASCII)
LARGEST_EXACT_FLOAT = 2**53

for _tag, _pattern in (
    (TAG_PREFIX + "float", r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"),
    (GO_NUMBER, r"[-+]?\.?[0-9_][0-9a-fA-F_oOxX.+-]*"),
):
    _GoLoader.add_implicit_resolver(_tag, re.compile(f"(?:{_pattern})$", re.ASCII), [*"-+.0123456789"])


def _go_number(text: str) -> int | float | None:
    """Return the number that Go reads in a text; None if it reads a text, such as `12:30` and `1e400`."""
    plain = text.replace("_", "")
    with suppress(ValueError):
        number = int(plain, 8 if GO_OCTAL.fullmatch(plain) else 0)
        if -(2**63) <= number < 2**64:
            return number
    if not GO_FLOAT.fullmatch(plain) or (text.startswith(".") and MISPLACED_UNDERSCORE.search(text)):
        return None
    value = float(plain)
    if not math.isfinite(value) or (value == 0 and re.search(r"[1-9]", re.split("[eE]", plain)[0])):
        return None  # what Go rounds to 0, too, so that a search space can refuse it
    # Go hands the file on as JSON, in which 1.0 and 1e3 are 1 and 1000.
    return int(value) if value.is_integer() and abs(value) <= LARGEST_EXACT_FLOAT else value


def _go_scalar(loader: Any, node: yaml.ScalarNode) -> Any:
    number = _go_number(node.value)
    if number is None and node.tag != GO_NUMBER:
        raise ForeignError(f"must be a number, got {node.value[:60]!r}", line=_line(node))
    return _text(loader, node) if number is None else number


for _tag in (GO_NUMBER, TAG_PREFIX + "int"):
    _GoLoader.add_constructor(_tag, _go_scalar)

LOADERS = {"1.1": _Loader, "go": _GoLoader}


def require_size(content: bytes, most: int) -> None:
    """Raise ForeignError for a file that is too large."""
    if len(content) > most:
        raise ForeignError(f"must be at most {most} bytes, got {len(content)}")


def decoded(content: bytes, most: int) -> str:
    """Return the text of a file, which may begin with a byte order mark. Raises ForeignError."""
    require_size(content, most)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, hint = content[: error.start].count(b"\n") + 1, "iconv converts files of another encoding"
        raise ForeignError("must be UTF-8", line=line, hint=hint) from error


def load(content: bytes, *, version: str = "1.1") -> Any:
    """Return the only document of a file, read as YAML 1.1 or as Go reads it. Raises ForeignError."""
    text = decoded(content, MAX_BYTES)
    try:
        _refuse_large(text)
        return yaml.load(text, Loader=LOADERS[version])  # noqa: S506 - a safe loader, narrowed
    except yaml.YAMLError as error:
        line = error_line(error) if isinstance(error, yaml.MarkedYAMLError) else None
        if isinstance(error, yaml.composer.ComposerError) and "single document" in str(error):
            raise ForeignError(
                "must have one document, got several",
                line=line,
                hint="copy the one to import to its own file",
            ) from error
        # What YAML files are made of, or embedded in.
        lines, hint = text.splitlines(), None
        if "{{" in "".join(lines[(line or 1) - 1 : (line or 1) + 1]):
            hint = TEMPLATE
        elif any(mark.startswith("```") for mark in lines):
            hint = "a document has YAML in blocks: copy the block to a file of its own"
        raise ForeignError(f"must be valid YAML: {error_text(error)}", line=line, hint=hint) from error
    except ForeignError:
        raise
    except (ValueError, KeyError, IndexError) as error:  # long digits, `!!bool maybe`, `!!int` of nothing
        raise ForeignError(f"must be readable: {error}") from error


def dump(data: Any) -> str:
    """Return YAML as PyYAML writes it without options, in blocks."""
    return str(yaml.dump(data, default_flow_style=False))


def coerce_number(value: object) -> int | float | None:
    """Return a value as a number, including a bare `1e-3`, which is text in YAML 1.1; else None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    if isinstance(value, ExponentText) and math.isfinite(float(value)):
        return float(value)
    return None


def _refuse_large(text: str) -> None:
    """Raise ForeignError at the first event that exceeds a limit, before the loader recurses.

    An alias counts as all that it repeats.
    """
    anchors: dict[str, tuple[int, int]] = {}  # the numbers of values and of levels of each
    counts: list[tuple[str | None, int, int]] = [(None, 0, 0)]  # the same of what is open, with its anchor
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        anchor: str | None = None
        values, levels = 0, 0
        match event:
            case yaml.CollectionStartEvent():
                counts.append((event.anchor, 1, 0))
            case yaml.CollectionEndEvent():
                anchor, values, levels = counts.pop()
                levels += 1
            case yaml.AliasEvent() if event.anchor in anchors:
                values, levels = anchors[event.anchor]
            case yaml.AliasEvent():
                raise ForeignError(f"the alias *{event.anchor} has no value", line=_line(event))
            case yaml.ScalarEvent():
                anchor, values = event.anchor, 1
        if anchor is not None:
            anchors[anchor] = values, levels
        around, inner, height = counts[-1]
        counts[-1] = around, inner + values, max(height, levels)
        if len(counts) - 1 + counts[-1][2] > MAX_DEPTH:
            raise ForeignError(f"must nest at most {MAX_DEPTH} levels deep", line=_line(event))
        if sum(values for _, values, _ in counts) > MAX_NODES:
            raise ForeignError(f"must hold at most {MAX_NODES} values", line=_line(event))


def _line(marked: Any) -> int:
    return int(marked.start_mark.line) + 1
