"""From text to nodes by the event stream of ruamel.yaml, within caps, without following an alias."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from generator.reader.nodes import Alias, Mapping, Mark, Node, Scalar, Sequence

DEPTH = 32
NODES = 10_000
"""More than a sweep of 100,000 trials needs to write down; a file within the caps is read in a second."""


WAYS_OUT = {
    r"'\t'": "indent with spaces",
    "could not find expected ':'": "a key is followed by a colon and a space",
    "mapping values are not allowed here": "put a text that holds a colon in quotes",
    "character '@'": "put it in quotes",
    "character '`'": "put it in quotes",
    "character '%'": "put it in quotes",
}
"""What to do about the mistakes people make most, by what ruamel.yaml says of them."""


class UnreadableError(ValueError):
    """The rest of the text cannot be read."""

    def __init__(self, mark: Mark, message: str, *, hint: str | None = None, code: str) -> None:
        super().__init__(message)
        self.mark = mark
        self.message = message
        self.hint = hint
        self.code = code


@dataclass(frozen=True, slots=True)
class Stream:
    """All that a text holds: the first document, and where others start, whose contents are not read."""

    root: Node | None
    further: Mark | None


@dataclass(slots=True)
class _Builder:
    """Makes nodes of events. Its own stack, not Python's, so that depth is a number to compare."""

    root: Node | None = None
    stack: list[tuple[Any, list[Node]]] = field(default_factory=list)
    """Lists and mappings whose end has not come yet; keys and values of a mapping alternate."""
    nodes: int = 0

    def take(self, event: Any) -> None:
        """Take the next event of a document."""
        match type(event).__name__:
            case "SequenceStartEvent" | "MappingStartEvent":
                self.stack.append((event, []))
                self._count(event)
            case "SequenceEndEvent" | "MappingEndEvent":
                self._add(_closed(*self.stack.pop()))
            case "ScalarEvent":
                self._count(event)
                self._add(Scalar(event.value, event.style is None, _mark(event), _trimmings(event)))
            case "AliasEvent":
                self._count(event)
                self._add(Alias(event.anchor, _mark(event)))

    def _count(self, event: Any) -> None:
        self.nodes += 1
        if len(self.stack) > DEPTH:
            raise UnreadableError(_mark(event), f"must nest at most {DEPTH} levels deep", code="too-large")
        if self.nodes > NODES:
            message = f"must hold at most {NODES} keys and values"
            raise UnreadableError(_mark(event), message, code="too-large")

    def _add(self, node: Node) -> None:
        if self.stack:
            self.stack[-1][1].append(node)
        else:
            self.root = node


def compose(text: str) -> Stream:
    """Read the first document of a text. Raises UnreadableError at the first place that makes no sense."""
    builder = _Builder()
    documents = 0
    for event in _events(text):
        if type(event).__name__ == "DocumentStartEvent":
            documents += 1
            if documents > 1:
                return Stream(builder.root, _mark(event))
        builder.take(event)
    return Stream(builder.root, None)


def _closed(start: Any, children: list[Node]) -> Node:
    if type(start).__name__ == "SequenceStartEvent":
        return Sequence(tuple(children), _mark(start), _trimmings(start))
    pairs = zip(children[::2], children[1::2], strict=True)
    entries = tuple((key, _placed(value, key.mark)) for key, value in pairs)
    return Mapping(entries, _mark(start), _trimmings(start))


def _placed(value: Node, key: Mark) -> Node:
    """Put a value that is not there at its key; the event stream puts it where the next token starts."""
    match value:
        case Scalar("", True, _, trimmings):
            return Scalar("", plain=True, mark=key, trimmings=trimmings)
        case _:
            return value


def _events(text: str) -> Iterator[Any]:
    # Late: `--help` and most commands read no spec.
    from ruamel.yaml import YAML  # noqa: PLC0415
    from ruamel.yaml.error import MarkedYAMLError, YAMLError  # noqa: PLC0415

    last = Mark(1, 1)
    try:
        for event in YAML(typ="safe", pure=True).parse(text):
            last = Mark(event.end_mark.line + 1, event.end_mark.column + 1)
            yield event
    except MarkedYAMLError as error:
        raise _syntax(error, last) from error
    except (YAMLError, ValueError, OverflowError, AssertionError) as error:
        # ValueError: escapes beyond the last code point, OverflowError: beyond 2^31;
        # AssertionError: a directive between two documents.
        message = f"must be valid YAML: {str(error).splitlines()[0]}"
        raise UnreadableError(last, message, code="yaml-syntax") from error


def _syntax(error: Any, last: Mark) -> UnreadableError:
    words = ", ".join(part for part in (error.context, error.problem) if part)
    words = words.replace("'\\x00'", "the end of the file").replace("'<stream end>'", "the end of the file")
    mark = last
    if error.problem_mark is not None:
        mark = Mark(error.problem_mark.line + 1, error.problem_mark.column + 1)
    hint = next((way_out for sign, way_out in WAYS_OUT.items() if sign in words), None)
    if hint is None and error.context_mark is not None:
        hint = f"it begins at line {error.context_mark.line + 1}, column {error.context_mark.column + 1}"
    return UnreadableError(mark, f"must be valid YAML: {words}", hint=hint, code="yaml-syntax")


def _trimmings(event: Any) -> tuple[str, ...]:
    anchor = () if event.anchor is None else (f"&{event.anchor}",)
    return anchor if event.tag is None else (*anchor, str(event.tag).replace("tag:yaml.org,2002:", "!!"))


def _mark(event: Any) -> Mark:
    return Mark(event.start_mark.line + 1, event.start_mark.column + 1)
