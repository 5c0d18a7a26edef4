"""The expressions that stand in workflows, as GitHub evaluates them: as much of the language as ours use."""

import re
from collections.abc import Mapping
from typing import Any

TOKEN = re.compile(r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<sign>\|\||&&|==|!=|!|\(|\))|(?P<name>[\w.*-]+))")
MARKED = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
FALSY = ("", None, False, 0)


class Expressions:
    """Evaluates text with the contexts of a run."""

    def __init__(self, contexts: Mapping[str, Any], *, failed: bool = False) -> None:
        self._contexts = contexts
        self._calls = {"cancelled": False, "always": True, "failure": failed, "success": not failed}

    def filled(self, text: str) -> str:
        return MARKED.sub(lambda result: _text(self.value(result[1])), text)

    def holds(self, text: str | None) -> bool:
        """Tell whether a step with this condition runs; one without runs while nothing has failed."""
        if text is None:
            return bool(self._calls["success"])
        result = MARKED.fullmatch(text.strip())
        return self.value(result[1] if result else text) not in FALSY

    def value(self, text: str) -> Any:
        tokens = list(TOKEN.finditer(text.strip()))
        assert "".join(token[0] for token in tokens).strip() == text.strip(), f"cannot read {text!r}"
        value, rest = self._or([token[0].strip() for token in tokens])
        assert not rest, f"{rest} is left over of {text!r}"
        return value

    def _or(self, tokens: list[str]) -> tuple[Any, list[str]]:
        value, tokens = self._and(tokens)
        while tokens[:1] == ["||"]:
            other, tokens = self._and(tokens[1:])
            value = other if value in FALSY else value
        return value, tokens

    def _and(self, tokens: list[str]) -> tuple[Any, list[str]]:
        value, tokens = self._equal(tokens)
        while tokens[:1] == ["&&"]:
            other, tokens = self._equal(tokens[1:])
            value = value if value in FALSY else other
        return value, tokens

    def _equal(self, tokens: list[str]) -> tuple[Any, list[str]]:
        value, tokens = self._one(tokens)
        if tokens[:1] in (["=="], ["!="]):
            other, rest = self._one(tokens[1:])
            return (_text(value) == _text(other)) is (tokens[0] == "=="), rest
        return value, tokens

    def _one(self, tokens: list[str]) -> tuple[Any, list[str]]:
        first, rest = tokens[0], tokens[1:]
        if first == "!":
            value, rest = self._one(rest)
            return value in FALSY, rest
        if first == "(":
            value, rest = self._or(rest)
            assert rest[0] == ")"
            return value, rest[1:]
        if first.startswith("'"):
            return first[1:-1].replace("''", "'"), rest
        if rest[:2] == ["(", ")"]:
            return self._calls[first], rest[2:]
        document: Any = self._contexts
        for part in first.split("."):
            document = document.get(part) if isinstance(document, Mapping) else None
        return document, rest


def _text(value: Any) -> str:
    return {None: "", True: "true", False: "false"}.get(value) or ("" if value in FALSY else str(value))
