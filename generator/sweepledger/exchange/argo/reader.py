"""An Argo Workflow with a loop, `withItems` or `withSequence`, as a list of configurations."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sweepledger.exchange import configuration_list
from sweepledger.exchange.conversion import Imported, Loss
from sweepledger.exchange.fields import Fields, show_value
from sweepledger.exchange.kubernetes.command import Placeholders
from sweepledger.exchange.kubernetes.container import ImportedTrial, read_container
from sweepledger.exchange.search_frame import parameter_names
from sweepledger.exchange.spec_parts import CODE_DIR, PLACEHOLDER_METRIC, PROGRAM
from sweepledger.formats import foreign_yaml
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.structs.names import suggest_sweep_name

INPUT = re.compile(r"\{\{\s*inputs\.parameters\.(?P<parameter>[A-Za-z0-9_-]+)\s*\}\}")
ITEM = re.compile(r"\{\{\s*item(?:\.(?P<key>[A-Za-z0-9_-]+))?\s*\}\}")
LOOPS = ("withItems", "withSequence", "withParam")
MAX_SEQUENCE = 100_000


def read(content: bytes, *, name: str) -> Imported:
    """Return a spec with a configuration for each item of the only loop. Raises ForeignError."""
    root = Fields.of(foreign_yaml.load(content), "")
    kind = root.text("kind")
    if kind not in {"Workflow", "WorkflowTemplate", "ClusterWorkflowTemplate"}:
        raise ForeignError(f"must be a Workflow of Argo, got {kind!r}")
    root.take("apiVersion")
    metadata, workflow = root.inner("metadata"), root.inner("spec")
    own = metadata.text("name") or metadata.text("generateName") or ""
    losses = [*metadata.rest("belongs to the cluster")]
    templates = workflow.each("templates")
    step = _loop(templates)
    called = step.text("template")
    template = next((each for each in templates if each.data.get("name") == called), None)
    if template is None:
        raise ForeignError(f"{step.at('template')} must name a template of the file, got {called!r}")
    losses += [
        Loss(f"{other.path}: {show_value(other.data.get('name'))}", "a trial runs one template; left out")
        for other in templates
        if other is not template and not _contains(other.data, step.data)
    ]
    rows = _rows(step, losses)
    names = parameter_names(rows[0], losses)
    renamed = [{names[key]: value for key, value in row.items()} for row in rows]
    kept, repeated = configuration_list.distinct_configurations(
        [
            configuration_list.checked_configuration(row, f"item {at}")
            for at, row in enumerate(renamed, start=1)
        ]
    )
    trial = _trial(template, names)
    metric = {"name": PLACEHOLDER_METRIC, "goal": "maximize", "source": "stdout"}
    losses.append(
        Loss("metric", f"a Workflow has none; print lines `{PLACEHOLDER_METRIC}=NUMBER`, or set metric.name")
    )
    spec = {
        "name": suggest_sweep_name(own.rstrip("-")) or name,
        "method": "list",
        "metric": metric,
        "assignments": configuration_list.inline_configurations(kept),
    }
    if trial.command is None:
        trial.losses.append(Loss("program", f"is in the image; written as {CODE_DIR}/{PROGRAM}"))
    most = workflow.whole("parallelism")
    run = trial.run if most is None else {"parallelism": most} | trial.run
    command = {"program": PROGRAM} if trial.command is None else {"command": trial.command}
    workflow.take("entrypoint")
    rest = [*step.rest(), *workflow.rest(), *root.rest()]
    return Imported(spec | command | {"run": run}, (*losses, *repeated, *trial.losses, *rest))


def _loop(templates: Sequence[Fields]) -> Fields:
    """Return the only step or task with a loop. Raises ForeignError."""
    loops = [step for template in templates for step in _steps(template) if set(LOOPS) & step.data.keys()]
    if len(loops) != 1:
        raise ForeignError(
            f"must have one step with withItems or withSequence, got {len(loops)}",
            hint="keep the step that trains; of nested loops, write the values as parameters of a spec",
        )
    return loops[0]


def _steps(template: Fields) -> Iterator[Fields]:
    for place, group in enumerate(template.items("steps")):
        yield from Fields(
            {"steps": group if isinstance(group, list) else [group]}, template.at(str(place))
        ).each("steps")
    yield from template.inner("dag").each("tasks")


def _contains(data: Any, part: Any) -> bool:
    match data:
        case dict():
            return data is part or any(_contains(value, part) for value in data.values())
        case list():
            return any(_contains(value, part) for value in data)
        case _:
            return False


def _rows(step: Fields, losses: list[Loss]) -> list[dict[str, Any]]:
    """Return the values of each item, by the name of the argument that passes them. Raises ForeignError."""
    step.text("name")
    arguments: dict[str, str] = {}
    for entry in step.inner("arguments").each("parameters"):
        text = entry.text("value") or ""
        if ITEM.search(text):
            arguments[entry.text("name") or ""] = text
        else:
            losses.append(
                Loss(
                    f"{entry.path}: {show_value(text)}", "is the same in every trial; write it in the command"
                )
            )
    if not arguments:
        hint = "a loop that only repeats a step is replicates: N of a spec"
        raise ForeignError(f"{step.at('arguments')} must pass {{{{item}}}} as a parameter", hint=hint)
    for key, text in arguments.items():
        if "{{" in ITEM.sub("", text):
            hint = "another step passes a part of it; write the whole value in the items"
            raise ForeignError(
                f"{step.at('arguments')}: {key} must depend on the item alone, got {text!r}", hint=hint
            )
    rows = [{key: _filled(text, item) for key, text in arguments.items()} for item in _items(step)]
    if not rows:
        raise ForeignError(f"{step.path} must loop over at least one item, got none")
    return rows


def _items(step: Fields) -> list[Any]:
    if "withParam" in step.data:
        text = step.text("withParam") or ""
        try:
            items = json.loads(text)
        except (ValueError, RecursionError):
            hint = "an argument or another step has its items; write them as withItems"
            raise ForeignError(
                f"{step.at('withParam')} must be a list in JSON, got {show_value(text)}", hint=hint
            ) from None
        if not isinstance(items, list):
            raise ForeignError(f"{step.at('withParam')} must be a list, got {show_value(items)}")
        return items
    if "withItems" in step.data:
        return step.items("withItems")
    sequence = step.inner("withSequence")
    start, end, count = (_number(sequence, key) for key in ("start", "end", "count"))
    first = start or 0
    last = end if end is not None else first + (count or 0) - 1
    if abs(last - first) > MAX_SEQUENCE:
        raise ForeignError(f"{sequence.path} must have at most {MAX_SEQUENCE} items")
    numbers = range(first, last + 1) if last >= first else range(first, last - 1, -1)
    if "format" in sequence.data:
        raise ForeignError(f"{sequence.at('format')} is not supported", hint="write the items as withItems")
    return list(numbers) if count != 0 else []


def _number(sequence: Fields, key: str) -> int | None:
    text = sequence.text(key)
    if text is None:
        return None
    if not re.fullmatch(r"-?[0-9]{1,9}", text, re.ASCII):
        raise ForeignError(f"{sequence.at(key)} must be a whole number, got {show_value(text)}")
    return int(text)


def _filled(text: str, item: Any) -> Any:
    """Return the value of an argument: the item itself, or text with the item in it."""
    if match := ITEM.fullmatch(text):
        return _part(item, match["key"])
    return ITEM.sub(lambda match: str(_part(item, match["key"])), text)


def _part(item: Any, key: str | None) -> Any:
    if key is None:
        return item if not isinstance(item, dict) else json.dumps(item, sort_keys=True)
    if not isinstance(item, dict) or key not in item:
        raise ForeignError(f"an item must have the key {key!r}, got {show_value(item)}")
    return item[key]


def _trial(template: Fields, names: Mapping[str, str]) -> ImportedTrial:
    trial = ImportedTrial()
    key = next((key for key in ("container", "script") if key in template.data), None)
    if key is None:
        raise ForeignError(f"{template.path} must have a container, for the step of the loop")
    container = template.inner(key)
    trial.losses += container.lost("source", "a script in the file; move it to a program")
    read_container(container, Placeholders(names, INPUT), trial)
    template.taken |= {"name", "inputs"}
    trial.losses += template.rest()
    return trial
