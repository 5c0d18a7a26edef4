"""The pods of a Workflow: each call of a template from the entry point, with the values of its parameters.

What only a running Workflow knows, such as the output of a step, stays as the text that Argo would fill in.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sweepledger.exchange.fields import Fields, json_text, scalar_text, show_value
from sweepledger.formats.foreign_yaml import ForeignError, LetterText

TAG = re.compile(
    r"\{\{\s*(?:(?P<scope>inputs|workflow)\.parameters\.(?P<name>[A-Za-z0-9_-]+)"
    r"|item(?:\.(?P<key>[A-Za-z0-9_-]+))?)\s*\}\}"
)
LOOPS = ("withItems", "withSequence", "withParam")
MAX_CALLS = 10_000
"""More than a spec can list, so that nested loops end."""
MAX_DEPTH = 30
MAX_TEXT = 100_000
"""Characters of a value; a parameter that names itself twice would double at each level."""
MAX_TEXTS = 10_000_000
"""Characters of all values of all calls."""
NUMBER_FORMAT = re.compile(r"[^%]*%0?[0-9]{0,2}[dxXo][^%]*", re.ASCII)
"""Formats of Go that mean the same in Python."""
NO_ITEM = object()
"""Of a step that is not a loop; an item may be null."""


@dataclass(frozen=True, slots=True)
class PodCall:
    """A template that runs as a pod."""

    template: Fields
    values: Mapping[str, Any]
    """Its inputs; a text with `{{` is not known before the Workflow runs."""
    steps: tuple[Fields, ...]
    """The steps that lead to it."""
    callers: tuple[Fields, ...]
    """The templates of these steps."""

    @property
    def is_looped(self) -> bool:
        """Whether a step that leads to it is a loop."""
        return any(set(LOOPS) & step.data.keys() for step in self.steps)


@dataclass(slots=True)
class Workflow:
    """The templates of a Workflow, and the arguments that it is started with."""

    templates: Mapping[str, Fields]
    arguments: Mapping[str, Any]
    visits: int = 0
    characters: int = 0
    steps: dict[int, list[Fields]] = field(default_factory=dict)
    """Of each template, so that a key that one visit reads counts as read."""
    targets: dict[int, Fields] = field(default_factory=dict)
    """Templates of steps that have one of their own, or one in another file."""

    @classmethod
    def of(cls, spec: Fields) -> "Workflow":
        """Return the Workflow of a specification. Raises ForeignError."""
        templates: dict[str, Fields] = {}
        for template in spec.each("templates"):
            name = template.text("name")
            if name is None or name in templates:
                raise ForeignError(f"{template.path} must have a name of its own, got {show_value(name)}")
            templates[name] = template
        if not templates and "workflowTemplateRef" in spec.data:
            raise ForeignError(
                f"{spec.at('templates')} must be in the file, got a reference to another one",
                hint="import the WorkflowTemplate: `argo template get NAME --output yaml`",
            )
        return cls(templates, _given(spec.inner("arguments"), {}, {}))

    def calls(self, entrypoint: str | None) -> Iterator[PodCall]:
        """Yield what runs as a pod, from the entry point; without one, from templates that no step calls."""
        if entrypoint is not None:
            yield from self._visit(self._called(entrypoint, "spec.entrypoint"), self.arguments)
            return
        called = {
            step.text("template") for template in self.templates.values() for step in self._steps(template)
        }
        for name, template in self.templates.items():
            if name not in called:
                yield from self._visit(template, self.arguments)

    def _visit(
        self,
        template: Fields,
        given: Mapping[str, Any],
        steps: tuple[Fields, ...] = (),
        callers: tuple[Fields, ...] = (),
    ) -> Iterator[PodCall]:
        self.visits += 1
        if self.visits > MAX_CALLS:
            raise ForeignError(
                f"{template.path} must lead to at most {MAX_CALLS} pods", hint="import a part of the loops"
            )
        if len(steps) > MAX_DEPTH:
            raise ForeignError(f"{template.path} must not call itself", hint="write the values as withItems")
        values = self._inputs(template, given)
        self.characters += sum(len(value) for value in values.values() if isinstance(value, str))
        if self.characters > MAX_TEXTS:
            raise ForeignError(f"{template.path} must get values of at most {MAX_TEXTS} characters in all")
        if not {"steps", "dag"} & template.data.keys():
            yield PodCall(template, values, steps, callers)
            return
        for step in self._steps(template):
            for item in self._items(step, values):
                arguments = _given(step.inner("arguments"), values, self.arguments, item)
                yield from self._visit(self._target(step), arguments, (*steps, step), (*callers, template))

    def _target(self, step: Fields) -> Fields:
        """Return the template of a step; one in another file has no more than a name. Raises ForeignError."""
        if not {"inline", "templateRef"} & step.data.keys():
            return self._called(step.text("template"), step.at("template"))
        if id(step) not in self.targets:
            elsewhere = {"name": step.inner("templateRef").text("template")}
            self.targets[id(step)] = (
                step.inner("inline") if "inline" in step.data else Fields(elsewhere, step.at("templateRef"))
            )
        return self.targets[id(step)]

    def _called(self, name: str | None, where: str) -> Fields:
        if name is None or name not in self.templates:
            raise ForeignError(f"{where} must name a template of the file, got {name!r}")
        return self.templates[name]

    def _steps(self, template: Fields) -> list[Fields]:
        if id(template) not in self.steps:
            groups = enumerate(template.items("steps"))
            self.steps[id(template)] = [
                step
                for place, group in groups
                for step in Fields(
                    {"steps": group if isinstance(group, list) else [group]}, template.at(str(place))
                ).each("steps")
            ] + template.inner("dag").each("tasks")
        return self.steps[id(template)]

    def _inputs(self, template: Fields, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the value of each input, given or by default."""
        values: dict[str, Any] = {}
        for entry in template.inner("inputs").each("parameters"):
            name = entry.text("name")
            if name is None or name in values:
                raise ForeignError(f"{entry.path} must have a name of its own, got {show_value(name)}")
            default = entry.take("value") if "value" in entry.data else entry.take("default")
            if name in given:
                values[name] = given[name]
            elif default is not None:
                values[name] = _filled(default, {}, self.arguments)
            else:
                values[name] = f"{{{{inputs.parameters.{name}}}}}"
        return values

    def _items(self, step: Fields, values: Mapping[str, Any]) -> list[Any]:
        """Return the items of a loop; of other steps, one that nothing refers to. Raises ForeignError."""
        step.text("name")
        if "withParam" in step.data:
            return self._listed(step, values)
        if "withItems" in step.data:
            return [self.filled(item, values) for item in step.items("withItems")]
        if "withSequence" in step.data:
            return self._sequence(step.inner("withSequence"), values)
        return [NO_ITEM]

    def _listed(self, step: Fields, values: Mapping[str, Any]) -> list[Any]:
        items = _filled(step.text("withParam") or "", values, self.arguments)
        if isinstance(items, str):
            try:
                items = json.loads(items)
            except (ValueError, RecursionError):
                raise ForeignError(
                    f"{step.at('withParam')} must be a list in JSON, got {show_value(items)}",
                    hint="a step or an expression computes them; write them as withItems",
                ) from None
        if not isinstance(items, list):
            raise ForeignError(f"{step.at('withParam')} must be a list, got {show_value(items)}")
        return items

    def filled(self, data: Any, values: Mapping[str, Any]) -> Any:
        """Return data with the tags of inputs and of the Workflow's arguments filled in."""
        match data:
            case dict():
                return {key: self.filled(value, values) for key, value in data.items()}
            case list():
                return [self.filled(value, values) for value in data]
            case _:
                return _filled(data, values, self.arguments)

    def _sequence(self, sequence: Fields, values: Mapping[str, Any]) -> list[Any]:
        def number(key: str) -> int | None:
            text = sequence.text(key)
            if text is None:
                return None
            filled = scalar_text(_filled(text, values, self.arguments))
            if not re.fullmatch(r"-?[0-9]{1,9}", filled, re.ASCII):
                hint = "only the running Workflow has it; write the number" if "{{" in filled else None
                raise ForeignError(
                    f"{sequence.at(key)} must be a whole number, got {show_value(filled)}", hint=hint
                )
            return int(filled)

        first, end, count = number("start") or 0, number("end"), number("count")
        last = end if end is not None else first + (count or 0) - 1
        if count == 0:
            return []
        if abs(last - first) > MAX_CALLS:
            raise ForeignError(f"{sequence.path} must have at most {MAX_CALLS} items")
        numbers = range(first, last + 1) if last >= first else range(first, last - 1, -1)
        form = sequence.text("format")
        if form is None:
            return list(numbers)
        if not NUMBER_FORMAT.fullmatch(form):
            raise ForeignError(
                f"{sequence.at('format')} must be one of %d, %x, %X and %o, with or without a width, "
                f"got {show_value(form)}",
                hint="write the items as withItems",
            )
        return [form % number for number in numbers]


def _given(
    arguments: Fields, inputs: Mapping[str, Any], workflow: Mapping[str, Any], item: Any = NO_ITEM
) -> dict[str, Any]:
    """Return the values of arguments by their names."""
    values: dict[str, Any] = {}
    for entry in arguments.each("parameters"):
        name = entry.text("name") or ""
        if entry.data.get("value") is None:
            values[name] = f"{{{{{name}}}}}"
            continue
        values[name] = _filled(entry.take("value"), inputs, workflow, item)
    return values


def _filled(text: Any, inputs: Mapping[str, Any], workflow: Mapping[str, Any], item: Any = NO_ITEM) -> Any:
    """Return a text with its tags filled in: a text that is one tag becomes the value itself."""
    if isinstance(text, LetterText):
        return text.boolean
    if not isinstance(text, str):
        return text

    def value_of(match: re.Match[str]) -> Any:
        if match["scope"] is None:
            return match[0] if item is NO_ITEM else _part(item, match["key"])
        known = inputs if match["scope"] == "inputs" else workflow
        return known.get(match["name"], match[0])

    if match := TAG.fullmatch(text):
        return value_of(match)
    filled = TAG.sub(lambda match: _shown(value_of(match)), text)
    if len(filled) > MAX_TEXT:
        raise ForeignError(f"a value must have at most {MAX_TEXT} characters, got {len(filled)}")
    return filled


def _shown(value: Any) -> str:
    return json_text(value) if isinstance(value, list) else scalar_text(value)


def _part(item: Any, key: str | None) -> Any:
    if key is None:
        return json_text(item) if isinstance(item, dict) else item
    if not isinstance(item, dict) or key not in item:
        raise ForeignError(f"an item must have the key {key!r}, got {show_value(item)}")
    return item[key]
