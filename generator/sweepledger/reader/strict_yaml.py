"""Strict YAML: from bytes to a document, with all problems of its text.

`compose` builds nodes from ruamel.yaml's events, within limits and without following aliases. `Constructor`
turns nodes into plain data. `read_document` does both.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from sweepledger.problems import DocumentPath, Problem, TextError, format_path, limit_problems
from sweepledger.reader import characters
from sweepledger.reader.document import (
    DOCUMENT_START,
    AliasNode,
    Document,
    MappingNode,
    Mark,
    Node,
    ScalarNode,
    SequenceNode,
)
from sweepledger.reader.messages import safe_repr, truncate
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


def compose(text: str) -> tuple[Node | None, Mark | None]:
    """Return the first document of a text, and where a second one starts. Raises TextError at the first mistake."""
    builder = _NodeBuilder()
    documents = 0
    for event in _events(text):
        if type(event).__name__ == "DocumentStartEvent":
            documents += 1
            if documents > 1:
                return builder.roots[0], _start_mark(event)
        builder.take(event)
    return builder.roots[0] if builder.roots else None, None


@dataclass(slots=True)
class _NodeBuilder:
    """Builds the nodes of a stream from its events. It follows no alias, and needs no stack of Python's."""

    roots: list[Node] = field(default_factory=list)
    stack: list[tuple[Any, list[Node]]] = field(default_factory=list)
    """Lists and mappings whose end is still to come; keys and values of a mapping alternate."""
    nodes: int = 0

    def take(self, event: Any) -> None:
        """Take the next event. Raises TextError with the code `too-large` at the first that exceeds a limit."""
        match type(event).__name__:
            case "SequenceStartEvent" | "MappingStartEvent":
                self.stack.append((event, []))
                self._count(event)
            case "SequenceEndEvent" | "MappingEndEvent":
                self._add(_collection(*self.stack.pop()))
            case "ScalarEvent":
                self._count(event)
                self._add(
                    ScalarNode(event.value, not event.style, _start_mark(event), _anchor_and_tag(event))
                )
            case "AliasEvent":
                self._count(event)
                self._add(AliasNode(event.anchor, _start_mark(event)))

    def _count(self, event: Any) -> None:
        self.nodes += 1
        message = ""
        if len(self.stack) > MAX_DEPTH:
            message = f"must nest at most {MAX_DEPTH} levels deep"
        elif self.nodes > MAX_NODES:
            message = f"must hold at most {MAX_NODES} keys and values"
        if message:
            line, column = _start_mark(event)
            raise TextError(message, line=line, column=column, code="too-large")

    def _add(self, node: Node) -> None:
        (self.stack[-1][1] if self.stack else self.roots).append(node)


def _start_mark(event: Any) -> Mark:
    return Mark(event.start_mark.line + 1, event.start_mark.column + 1)


def _collection(start: Any, children: list[Node]) -> Node:
    mark, properties = _start_mark(start), _anchor_and_tag(start)
    if type(start).__name__ == "SequenceStartEvent":
        return SequenceNode(tuple(children), mark, properties)
    pairs = zip(children[::2], children[1::2], strict=True)
    return MappingNode(tuple((key, _at_key(value, key.mark)) for key, value in pairs), mark, properties)


def _at_key(value: Node, key: Mark) -> Node:
    """Put a missing value at its key; the parser puts it where the next token starts."""
    is_missing = isinstance(value, ScalarNode) and value.plain and not value.text
    return replace(value, mark=key) if is_missing else value


def _anchor_and_tag(event: Any) -> tuple[str, ...]:
    anchor = () if event.anchor is None else (f"&{event.anchor}",)
    return anchor if event.tag is None else (*anchor, str(event.tag).replace("tag:yaml.org,2002:", "!!"))


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
class Constructor:
    """Turns nodes into data in one pass. It may recurse, because the builder limits the depth."""

    file: str
    problems: list[Problem] = field(default_factory=list)
    unread: set[DocumentPath] = field(default_factory=set)
    """Paths whose values were rejected; their data is None."""
    marks: dict[DocumentPath, tuple[Mark, Mark]] = field(default_factory=dict)
    divided: dict[DocumentPath, tuple[str, ...]] = field(default_factory=dict)

    def data(self, node: Node, path: DocumentPath, key: Mark | None = None) -> Any:
        """Make plain data of a node, noting every problem on the way."""
        self.marks[path] = (node.mark, key or node.mark)
        match node:
            case AliasNode(name, mark):
                message = f"must be written out, got the alias *{name}"
                self._report(mark, path, message, code="alias", hint="repeat what it stands for")
                self.unread.add(path)
                return None
            case ScalarNode():
                return self._scalar(node, path)
            case SequenceNode(items):
                self._properties(node, path)
                data = [self.data(item, (*path, index)) for index, item in enumerate(items)]
                quoted = [
                    at for at, item in enumerate(items) if isinstance(item, ScalarNode) and not item.plain
                ]
                if (joined := rejoin_split(data, quoted)) is not None:
                    self.divided[path] = joined
                return data
            case MappingNode(entries):
                self._properties(node, path)
                return self._mapping(entries, path)

    def _mapping(self, entries: tuple[tuple[Node, Node], ...], path: DocumentPath) -> dict[str, Any]:
        data: dict[str, Any] = {}
        seen: dict[str, Mark] = {}
        for key, value in entries:
            name = self._key(key, path)
            if name is None:
                continue
            if name in seen:
                message = f"must not repeat the key at line {seen[name].line}, column {seen[name].column}"
                message += f", got {safe_repr(name)}"
                self._report(key.mark, (*path, name), message, code="duplicate-key", hint="keep one of them")
                continue
            seen[name] = key.mark
            data[name] = self.data(value, (*path, name), key.mark)
        return data

    def _key(self, key: Node, path: DocumentPath) -> str | None:
        if not isinstance(key, ScalarNode):
            kind = {AliasNode: "an alias", SequenceNode: "a list", MappingNode: "a mapping"}[type(key)]
            self._report(key.mark, path, f"keys must be text, got {kind}", code="key-type")
            return None
        place = (*path, key.text)
        self._properties(key, place)
        if self._invisible(key, place):
            self.unread.add(place)
        if not key.plain:
            return key.text
        meaning = resolve_scalar(key.text)
        quoted = f'write "{truncate(key.text)}"'
        if key.text == "<<":
            message = "must be written out, got the merge key <<"
            self._report(key.mark, place, message, code="alias", hint="repeat what it stands for")
            return None
        if isinstance(meaning, Refusal) and meaning.code == "ambiguous-scalar":
            self._report(key.mark, place, meaning.message, code="ambiguous-scalar", hint=quoted)
        elif not isinstance(meaning, str):
            message = f"keys must be text, got {truncate(key.text) or 'nothing'}"
            self._report(key.mark, place, message, code="key-type", hint=quoted)
            self.unread.add(place)
        return key.text

    def _scalar(self, node: ScalarNode, path: DocumentPath) -> Any:
        tagged = self._properties(node, path)
        unclear = self._invisible(node, path)
        meaning = resolve_scalar(node.text) if node.plain else node.text
        if isinstance(meaning, Refusal) and not tagged:
            key = str(path[-1]) if path and not node.text else ""
            hint = TUPLE_HINT if END_OF_TUPLE.fullmatch(key) else meaning.hint
            self._report(node.mark, path, meaning.message, code=meaning.code, hint=hint)
        if tagged or unclear or isinstance(meaning, Refusal):
            self.unread.add(path)
            return None
        return meaning

    def _properties(self, node: ScalarNode | SequenceNode | MappingNode, path: DocumentPath) -> bool:
        """Report an anchor and a tag; return whether there is a tag, which would change the meaning."""
        for text in node.properties:
            if text.startswith("&"):
                message = f"must not have an anchor, got {truncate(text)}"
                self._report(node.mark, path, message, code="alias", hint="delete it and write values out")
            else:
                message = f"must not have a tag, got {truncate(text)}"
                self._report(node.mark, path, message, code="tag", hint="delete it; quotes make a text")
        return any(not text.startswith("&") for text in node.properties)

    def _invisible(self, node: ScalarNode, path: DocumentPath) -> bool:
        """Report invisible characters from escapes in double quotes; return whether there are any."""
        match = characters.INVISIBLE.search(node.text)
        if match is None:
            return False
        message = f"must not hold an invisible character, got {characters.describe_character(match[0])}"
        self._report(node.mark, path, message, code="invisible-character")
        return True

    def _report(
        self, mark: Mark, path: DocumentPath, message: str, *, code: str, hint: str | None = None
    ) -> None:
        self.problems.append(Problem(self.file, *mark, format_path(path), message, code, hint))


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
    visible, marks = characters.comment_out_directives(characters.INVISIBLE.sub(characters.REPLACEMENT, text))
    problems += [
        Problem(file, *mark, "", "must not have directives", code="directive", hint="delete the line")
        for mark in marks
    ]
    try:
        root, further = compose(visible)
    except TextError as error:
        position = (error.line or 0, error.column or 0)
        problems.append(Problem(file, *position, "", str(error), code=error.code, hint=error.hint))
        return DocumentReading(None, limit_problems(problems))
    if further is not None:
        message = "must hold one document, but another one starts here"
        problems.append(
            Problem(file, *further, "", message, code="several-documents", hint="delete the line ---")
        )
    # A document may be empty, as after a single `---`.
    if isinstance(root, ScalarNode) and root.plain and not root.text and not root.properties:
        root = None
    walk = Constructor(file, problems)
    data = None if root is None else walk.data(root, (), DOCUMENT_START)
    unread = frozenset(walk.unread)
    is_empty = data is None and not unread
    document = Document(file, text, data, unread, walk.marks, walk.divided, is_empty)
    return DocumentReading(document, limit_problems(walk.problems))


_remember_text = lru_cache(maxsize=REMEMBERED_FILES)(_read_text)
"""A command reads the same spec several times: from the work tree, and from the commits that it makes."""
