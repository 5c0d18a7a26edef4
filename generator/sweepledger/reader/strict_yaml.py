"""Strict YAML: from bytes to a document, plain data with positions, and all problems of its text."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from sweepledger.problems import DocumentPath, Problem, TextError, format_path, limit_problems
from sweepledger.reader import characters
from sweepledger.reader.safe_repr import safe_repr, truncate
from sweepledger.reader.scalars import Refusal, rejoin_split, resolve_scalar

MAX_DEPTH = 32
MAX_NODES = 10_000
"""More than the spec of 100,000 trials needs; a file within the limits is read in a second."""

SYNTAX_HINTS = {
    r"'\t'": "indent with spaces",
    "could not find expected ':'": "a key is followed by a colon and a space",
    "mapping values are not allowed here": "put a text that holds a colon in quotes",
    "character '@'": "put it in quotes",
    "character '`'": "put it in quotes",
    "character '%'": "put it in quotes",
}
"""Hints for frequent mistakes, by part of ruamel.yaml's message."""


class Mark(NamedTuple):
    """A position in a file; both numbers from 1."""

    line: int
    column: int


class Place(NamedTuple):
    """The positions of a value and of its key; for the item of a list, both are the item's."""

    value: Mark
    key: Mark


DOCUMENT_START = Mark(1, 1)
NOWHERE = Place(DOCUMENT_START, DOCUMENT_START)


@dataclass(frozen=True, slots=True)
class Document:
    """The content of one document."""

    file: str
    text: str
    """Without byte order mark and with LF line ends: equal for files that differ in nothing else."""
    data: Any
    """Plain dicts, lists and scalars; None at the paths in `unread`, and for an empty file."""
    unread: frozenset[DocumentPath]
    """Paths whose values were rejected, so that no further check applies to them."""
    places: Mapping[DocumentPath, Place]

    divided: Mapping[DocumentPath, tuple[str, ...]]
    """For each list whose commas divide texts that bring brackets of their own: these texts as they were meant."""
    is_empty: bool
    """Whether the document contains no value."""

    def problem(
        self, path: DocumentPath, message: str, *, code: str, hint: str | None = None, at_key: bool = False
    ) -> Problem:
        """Return a problem at a path."""
        place = self.place(path)
        return Problem(
            self.file, *(place.key if at_key else place.value), format_path(path), message, code, hint
        )

    def place(self, path: DocumentPath) -> Place:
        """Return the place of a path, or of its nearest parent if the value is missing."""
        above = (path[:end] for end in range(len(path), -1, -1))
        return next((self.places[each] for each in above if each in self.places), NOWHERE)


def _start_mark(event: Any) -> Mark:
    return Mark(event.start_mark.line + 1, event.start_mark.column + 1)


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
        raise TextError(message, line=last.line, column=last.column, code="yaml-syntax") from error


def _syntax(error: Any, last: Mark) -> TextError:
    words = ", ".join(part for part in (error.context, error.problem) if part)
    words = words.replace("'\\x00'", "the end of the file").replace("'<stream end>'", "the end of the file")
    mark = last
    if error.problem_mark is not None:
        mark = Mark(error.problem_mark.line + 1, error.problem_mark.column + 1)
    hint = next((way_out for sign, way_out in SYNTAX_HINTS.items() if sign in words), None)
    if hint is None and error.context_mark is not None:
        hint = f"it begins at line {error.context_mark.line + 1}, column {error.context_mark.column + 1}"
    message = f"must be valid YAML: {words}"
    return TextError(message, line=mark.line, column=mark.column, hint=hint, code="yaml-syntax")


@dataclass(slots=True)
class _Construction:
    """Builds plain data from events in one pass, within limits and without following aliases."""

    file: str
    events: Iterator[Any]
    problems: list[Problem] = field(default_factory=list)
    places: dict[DocumentPath, Place] = field(default_factory=dict)
    divided: dict[DocumentPath, tuple[str, ...]] = field(default_factory=dict)
    unread: set[DocumentPath] = field(default_factory=set)
    """Paths whose values were rejected; their data is None."""
    depth: int = 0
    nodes: int = 0

    def document(self) -> tuple[Any, Mark | None]:
        """Return the data of the first document, and the start of a second document. Raises TextError."""
        data: Any = None
        if any(type(event).__name__ == "DocumentStartEvent" for event in self.events):
            event = self.next()
            # It may be empty, as after a single `---`.
            is_empty = type(event).__name__ == "ScalarEvent" and not (event.style or event.value)
            if not is_empty or event.anchor is not None or event.tag is not None:
                data = self.data(event, ())
                self.places[()] = self.places[()]._replace(key=DOCUMENT_START)
        starts = (event for event in self.events if type(event).__name__ == "DocumentStartEvent")
        further = next(starts, None)
        return data, None if further is None else _start_mark(further)

    def data(self, event: Any, path: DocumentPath, key: Mark | None = None) -> Any:
        """Build plain data from an event and the events inside it, and collect every problem."""
        kind, mark = type(event).__name__, _start_mark(event)
        if key is not None and kind == "ScalarEvent" and not (event.style or event.value):
            mark = key  # the parser puts a missing value where the next token starts
        self.places[path] = Place(mark, key or mark)
        match kind:
            case "AliasEvent":
                message = f"must be written out, got the alias *{event.anchor}"
                self._report(mark, path, message, code="alias", hint="repeat what it stands for")
                self.unread.add(path)
                return None
            case "ScalarEvent":
                return self._scalar(event, path)
            case "SequenceStartEvent":
                self._properties(event, path)
                return self._list(path)
            case _:
                self._properties(event, path)
                return self._mapping(path)

    def next(self) -> Any:
        """Take the next event. Raises TextError with the code `too-large` at the first event beyond a limit."""
        event = next(self.events)
        kind = type(event).__name__
        if kind.endswith("EndEvent"):
            self.depth -= 1
            return event
        self.nodes += 1
        self.depth += kind.endswith("StartEvent")
        if self.depth <= MAX_DEPTH and self.nodes <= MAX_NODES:
            return event
        line, column = _start_mark(event)
        limit = f"nest at most {MAX_DEPTH} levels deep"
        if self.depth <= MAX_DEPTH:
            limit = f"hold at most {MAX_NODES} keys and values"
        raise TextError(f"must {limit}", line=line, column=column, code="too-large")

    def _children(self) -> Iterator[Any]:
        while not type(event := self.next()).__name__.endswith("EndEvent"):
            yield event

    def _skip(self, event: Any) -> None:
        """Take the events inside the last event."""
        depth = self.depth
        while type(event).__name__.endswith("StartEvent") and self.depth >= depth:
            self.next()

    def _list(self, path: DocumentPath) -> list[Any]:
        data: list[Any] = []
        quoted = set()
        for index, item in enumerate(self._children()):
            quoted |= {index} if type(item).__name__ == "ScalarEvent" and item.style else set()
            data.append(self.data(item, (*path, index)))
        if (joined := rejoin_split(data, quoted)) is not None:
            self.divided[path] = joined
        return data

    def _mapping(self, path: DocumentPath) -> dict[str, Any]:
        data: dict[str, Any] = {}
        seen: dict[str, Mark] = {}
        for key in self._children():
            name, mark = self._key(key, path), _start_mark(key)
            value = self.next()
            if name is not None and name not in seen:
                seen[name] = mark
                data[name] = self.data(value, (*path, name), mark)
                continue
            self._skip(value)
            if name is not None:
                message = f"must not repeat the key at line {seen[name].line}, column {seen[name].column}"
                message += f", got {safe_repr(name)}"
                self._report(mark, (*path, name), message, code="duplicate-key", hint="keep one of them")
        return data

    def _key(self, key: Any, path: DocumentPath) -> str | None:
        mark = _start_mark(key)
        if kind := KEY_KINDS.get(type(key).__name__):
            self._report(mark, path, f"keys must be text, got {kind}", code="key-type")
            self._skip(key)
            return None
        text: str = key.value
        place = (*path, text)
        self._properties(key, place)
        if self._invisible(key, place):
            return None
        if key.style:
            return text
        meaning = resolve_scalar(text)
        quoted = f'write "{truncate(text)}"'
        if text == "<<":
            message = "must be written out, got the merge key <<"
            self._report(mark, place, message, code="alias", hint="repeat what it stands for")
            return None
        if isinstance(meaning, Refusal) and meaning.code == "ambiguous-scalar":
            self._report(mark, place, meaning.message, code="ambiguous-scalar", hint=quoted)
        elif not isinstance(meaning, str):
            message = f"keys must be text, got {truncate(text) or 'nothing'}"
            self._report(mark, place, message, code="key-type", hint=quoted)
            self.unread.add(place)
        return text

    def _scalar(self, event: Any, path: DocumentPath) -> Any:
        text: str = event.value
        tagged, unclear = self._properties(event, path), self._invisible(event, path)
        meaning = text if event.style else resolve_scalar(text)
        if isinstance(meaning, Refusal) and not tagged:
            key = str(path[-1]) if path and not text else ""
            hint = TUPLE_HINT if END_OF_TUPLE.fullmatch(key) else meaning.hint
            self._report(self.places[path].value, path, meaning.message, code=meaning.code, hint=hint)
        if tagged or unclear or isinstance(meaning, Refusal):
            self.unread.add(path)
            return None
        return meaning

    def _properties(self, event: Any, path: DocumentPath) -> bool:
        """Report an anchor and a tag; return whether there is a tag, which would change the meaning."""
        if event.anchor is not None:
            message = f"must not have an anchor, got {truncate(f'&{event.anchor}')}"
            hint = "delete it and write values out"
            self._report(_start_mark(event), path, message, code="alias", hint=hint)
        if event.tag is not None:
            tag = str(event.tag).replace("tag:yaml.org,2002:", "!!")
            message, hint = f"must not have a tag, got {truncate(tag)}", "delete it; quotes make a text"
            self._report(_start_mark(event), path, message, code="tag", hint=hint)
        return event.tag is not None

    def _invisible(self, event: Any, path: DocumentPath) -> bool:
        """Report invisible characters from escapes in double quotes; return whether there are any."""
        match = characters.INVISIBLE.search(event.value)
        if match is not None:
            message = f"must not hold an invisible character, got {characters.describe_character(match[0])}"
            self._report(_start_mark(event), path, message, code="invisible-character")
        return match is not None

    def _report(
        self, mark: Mark, path: DocumentPath, message: str, *, code: str, hint: str | None = None
    ) -> None:
        self.problems.append(Problem(self.file, *mark, format_path(path), message, code, hint))


KEY_KINDS = {"AliasEvent": "an alias", "SequenceStartEvent": "a list", "MappingStartEvent": "a mapping"}
"""What is no key, by its event."""
END_OF_TUPLE = re.compile(r"[^()\[\]{}]*[)\]}]+")
"""What a comma leaves of `{x: (3, 5)}` as a key without a value."""
TUPLE_HINT = "a comma ended the value before, as YAML has no tuples: write a list, [3, 5], or text in quotes"
MAX_BYTES = 256 * 1024

REMEMBERED_CHARACTERS = 32 * 1024
REMEMBERED_FILES = 8
"""Their nodes take a few megabytes."""


@dataclass(frozen=True, slots=True)
class DocumentReading:
    """The document and the problems of a file; with problems, some paths of the document may be unread."""

    document: Document | None
    problems: tuple[Problem, ...]


def read_document(content: bytes, file: str) -> DocumentReading:
    """Return the document in a file; `file` is its path in messages."""
    if len(content) > MAX_BYTES:
        message = f"must be at most {MAX_BYTES} bytes, got {len(content)}"
        return DocumentReading(None, (Problem(file, 0, 0, "", message, code="too-large"),))
    text = characters.decode(content, file)
    if isinstance(text, Problem):
        return DocumentReading(None, (text,))
    return _read_text(text, file) if len(text) > REMEMBERED_CHARACTERS else _remember_text(text, file)


def _read_text(text: str, file: str) -> DocumentReading:
    problems = list(characters.invisible_problems(text, file))
    visible = characters.INVISIBLE.sub(characters.REPLACEMENT, text)
    visible, directives = characters.comment_out_directives(visible, file)
    problems += directives
    construction = _Construction(file, _events(visible))
    try:
        data, further = construction.document()
    except TextError as error:
        position = (error.line or 0, error.column or 0)
        problems.append(Problem(file, *position, "", str(error), code=error.code, hint=error.hint))
        return DocumentReading(None, limit_problems(problems))
    if further is not None:
        message = "must hold one document, but another one starts here"
        problems.append(
            Problem(file, *further, "", message, code="several-documents", hint="delete the line ---")
        )
    problems += construction.problems
    unread, is_empty = frozenset(construction.unread), data is None and not construction.unread
    document = Document(file, text, data, unread, construction.places, construction.divided, is_empty)
    return DocumentReading(document, limit_problems(problems))


_remember_text = lru_cache(maxsize=REMEMBERED_FILES)(_read_text)
"""A command reads the same spec several times: from the work tree, and from the commits that it makes."""
