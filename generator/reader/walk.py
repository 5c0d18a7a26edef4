"""One walk over a document's nodes: plain data out of them, and what no file may have."""

from dataclasses import dataclass, field
from typing import Any

from generator.problems import Problem
from generator.reader import characters
from generator.reader.nodes import Alias, Mapping, Mark, Node, Scalar, Sequence
from generator.reader.paths import Path, dotted
from generator.reader.scalars import Refusal, resolve
from generator.reader.shown import cut, shown


@dataclass(slots=True)
class Walk:
    """Goes through the nodes once. May recurse: the depth was capped when they were made."""

    file: str
    problems: list[Problem] = field(default_factory=list)
    unread: set[Path] = field(default_factory=set)
    """Places whose value was refused; their data are None."""

    def data(self, node: Node, path: Path) -> Any:
        """Make plain data of a node, noting every problem on the way."""
        match node:
            case Alias(name, mark):
                message = f"must be written out, got the alias *{name}"
                self._report(mark, path, message, code="alias", hint="repeat what it stands for")
                self.unread.add(path)
                return None
            case Scalar():
                return self._scalar(node, path)
            case Sequence(items):
                self._trimmings(node, path)
                return [self.data(item, (*path, index)) for index, item in enumerate(items)]
            case Mapping(entries):
                self._trimmings(node, path)
                return self._mapping(entries, path)

    def _mapping(self, entries: tuple[tuple[Node, Node], ...], path: Path) -> dict[str, Any]:
        data: dict[str, Any] = {}
        seen: dict[str, Mark] = {}
        for key, value in entries:
            name = self._key(key, path)
            if name is None:
                continue
            if name in seen:
                message = f"must not repeat the key at line {seen[name].line}, column {seen[name].column}"
                message += f", got {shown(name)}"
                self._report(key.mark, (*path, name), message, code="duplicate-key", hint="keep one of them")
                continue
            seen[name] = key.mark
            data[name] = self.data(value, (*path, name))
        return data

    def _key(self, key: Node, path: Path) -> str | None:
        """Read a key; None where no text can be made of it."""
        if not isinstance(key, Scalar):
            kind = {Alias: "an alias", Sequence: "a list", Mapping: "a mapping"}[type(key)]
            self._report(key.mark, path, f"keys must be text, got {kind}", code="key-type")
            return None
        place = (*path, key.text)
        self._trimmings(key, place)
        if self._invisible(key, place):
            self.unread.add(place)
        if not key.plain:
            return key.text
        meaning = resolve(key.text)
        quoted = f'write "{cut(key.text)}"'
        if key.text == "<<":
            message = "must be written out, got the merge key <<"
            self._report(key.mark, place, message, code="alias", hint="repeat what it stands for")
            return None
        if isinstance(meaning, Refusal) and meaning.code == "ambiguous-scalar":
            self._report(key.mark, place, meaning.message, code="ambiguous-scalar", hint=quoted)
        elif not isinstance(meaning, str):
            message = f"keys must be text, got {cut(key.text) or 'nothing'}"
            self._report(key.mark, place, message, code="key-type", hint=quoted)
            self.unread.add(place)
        return key.text

    def _scalar(self, node: Scalar, path: Path) -> Any:
        tagged = self._trimmings(node, path)
        unclear = self._invisible(node, path)
        meaning = resolve(node.text) if node.plain else node.text
        if isinstance(meaning, Refusal) and not tagged:
            self._report(node.mark, path, meaning.message, code=meaning.code, hint=meaning.hint)
        if tagged or unclear or isinstance(meaning, Refusal):
            self.unread.add(path)
            return None
        return meaning

    def _trimmings(self, node: Scalar | Sequence | Mapping, path: Path) -> bool:
        """Refuse an anchor and a tag; tell whether there was a tag, which would change the meaning."""
        for text in node.trimmings:
            if text.startswith("&"):
                message = f"must not have an anchor, got {cut(text)}"
                self._report(node.mark, path, message, code="alias", hint="delete it and write values out")
            else:
                message = f"must not have a tag, got {cut(text)}"
                self._report(node.mark, path, message, code="tag", hint="delete it; quotes make a text")
        return any(not text.startswith("&") for text in node.trimmings)

    def _invisible(self, node: Scalar, path: Path) -> bool:
        """Refuse characters that escapes in double quotes have made; tell whether there were any."""
        found = characters.INVISIBLE.search(node.text)
        if found is None:
            return False
        message = f"must not hold an invisible character, got {characters.described(found[0])}"
        self._report(node.mark, path, message, code="invisible-character")
        return True

    def _report(self, mark: Mark, path: Path, message: str, *, code: str, hint: str | None = None) -> None:
        self.problems.append(Problem(self.file, *mark, dotted(path), message, code, hint))
