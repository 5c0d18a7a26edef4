"""The builder of nodes from the events of a YAML parser, ruamel.yaml's or PyYAML's, within limits."""

from dataclasses import dataclass, field
from typing import Any

from sweepledger.problems import TextError
from sweepledger.reader.document import AliasNode, MappingNode, Mark, Node, ScalarNode, SequenceNode

TOO_LARGE = "too-large"
NULLS = frozenset({"", "~"})


@dataclass(slots=True)
class NodeBuilder:
    """Builds the nodes of a stream. It follows no alias, and its depth is not limited by Python's stack."""

    max_depth: int
    max_nodes: int
    """Keys and values together."""
    empty_is_null: bool = False
    """Whether `key:` and `key: ~` mean null, as to kubectl; otherwise they are kept as written."""
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
                self._add(self._scalar(event))
            case "AliasEvent":
                self._count(event)
                self._add(AliasNode(event.anchor, start_mark(event)))

    def _scalar(self, event: Any) -> ScalarNode:
        is_plain = not event.style
        text = "null" if self.empty_is_null and is_plain and event.value in NULLS else event.value
        return ScalarNode(text, is_plain, start_mark(event), _anchor_and_tag(event))

    def _count(self, event: Any) -> None:
        self.nodes += 1
        if len(self.stack) > self.max_depth:
            raise _too_large(event, f"must nest at most {self.max_depth} levels deep")
        if self.nodes > self.max_nodes:
            raise _too_large(event, f"must hold at most {self.max_nodes} keys and values")

    def _add(self, node: Node) -> None:
        if self.stack:
            self.stack[-1][1].append(node)
        else:
            self.roots.append(node)


def start_mark(event: Any) -> Mark:
    """Return where an event starts."""
    return Mark(event.start_mark.line + 1, event.start_mark.column + 1)


def _too_large(event: Any, message: str) -> TextError:
    line, column = start_mark(event)
    return TextError(message, line=line, column=column, code=TOO_LARGE)


def _collection(start: Any, children: list[Node]) -> Node:
    if type(start).__name__ == "SequenceStartEvent":
        return SequenceNode(tuple(children), start_mark(start), _anchor_and_tag(start))
    pairs = zip(children[::2], children[1::2], strict=True)
    entries = tuple((key, _at_key(value, key.mark)) for key, value in pairs)
    return MappingNode(entries, start_mark(start), _anchor_and_tag(start))


def _at_key(value: Node, key: Mark) -> Node:
    """Put a missing value at its key; the parser puts it where the next token starts."""
    match value:
        case ScalarNode("", True, _, properties):
            return ScalarNode("", plain=True, mark=key, properties=properties)
        case _:
            return value


def _anchor_and_tag(event: Any) -> tuple[str, ...]:
    anchor = () if event.anchor is None else (f"&{event.anchor}",)
    return anchor if event.tag is None else (*anchor, str(event.tag).replace("tag:yaml.org,2002:", "!!"))
