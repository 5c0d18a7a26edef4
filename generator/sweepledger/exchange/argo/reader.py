"""An Argo Workflow with loops, as a list of configurations: one for each pod of the template that they call."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sweepledger.exchange import configuration_list
from sweepledger.exchange.argo.loops import LOOPS, PodCall, Workflow
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


def read(content: bytes, *, name: str) -> Imported:
    """Return a spec with a configuration for each pod of the only template that loops call. Raises ForeignError."""
    root = Fields.of(foreign_yaml.load(content, version="go"), "")
    kind = root.text("kind")
    if kind not in {"Workflow", "WorkflowTemplate", "ClusterWorkflowTemplate"}:
        raise ForeignError(f"must be a Workflow of Argo, got {kind!r}")
    root.take("apiVersion")
    metadata, spec = root.inner("metadata"), root.inner("spec")
    own = metadata.text("name") or metadata.text("generateName") or ""
    losses = [*metadata.rest("belongs to the cluster")]
    workflow = Workflow.of(spec)
    calls = list(workflow.calls(spec.text("entrypoint")))
    looped = _looped(calls)
    template = looped[0].template
    parallelism = _parallelism(spec, looped)
    losses += dict.fromkeys(_others(workflow, calls, looped))
    rows = _rows(looped, losses)
    names = parameter_names(rows[0], losses)
    kept, repeated = configuration_list.distinct_configurations(
        [
            configuration_list.checked_configuration(
                {names[key]: value for key, value in row.items()}, f"pod {at}"
            )
            for at, row in enumerate(rows, start=1)
        ]
    )
    trial = _trial(workflow, template, names)
    losses.append(
        Loss("metric", f"a Workflow has none; print lines `{PLACEHOLDER_METRIC}=NUMBER`, or set metric.name")
    )
    if trial.command is None:
        trial.losses.append(Loss("program", f"is in the image; written as {CODE_DIR}/{PROGRAM}"))
    command = {"program": PROGRAM} if trial.command is None else {"command": trial.command}
    written = {
        "name": suggest_sweep_name(own.rstrip("-")) or name,
        "method": "list",
        "metric": {"name": PLACEHOLDER_METRIC, "goal": "maximize", "source": "stdout"},
        "assignments": configuration_list.inline_configurations(kept),
    }
    rest = [*spec.rest(), *root.rest()]
    return Imported(
        written | command | {"run": parallelism | trial.run}, (*losses, *repeated, *trial.losses, *rest)
    )


def _looped(calls: Sequence[PodCall]) -> list[PodCall]:
    """Return the calls that loops lead to. Raises ForeignError unless all are of one template with a program."""
    looped = [call for call in calls if call.is_looped]
    if not looped:
        raise ForeignError(
            f"must have a loop ({', '.join(LOOPS)}) with at least one item, got none",
            hint="what runs once is no sweep: write a spec of its parameters (docs/spec.md)",
        )
    names = list(dict.fromkeys(show_value(call.template.data.get("name")) for call in looped))
    if len({id(call.template) for call in looped}) > 1:
        raise ForeignError(
            f"must have loops that call one template, got {', '.join(names[:5])}",
            hint="a spec is one program with its values: keep the loop that trains, and import others as specs",
        )
    _program_key(looped[0].template)
    return looped


def _program_key(template: Fields) -> str:
    """Return the key of a template's program. Raises ForeignError."""
    for key in ("container", "script"):
        if key in template.data:
            return key
    raise ForeignError(
        f"{template.path} must have a container, for the trials of the loop",
        hint="a template in another file, or one that is no pod, has no program to run here",
    )


def _others(workflow: Workflow, calls: Sequence[PodCall], looped: Sequence[PodCall]) -> Iterator[Loss]:
    """Yield what runs beside the trials, and what steps and templates say that lead to them."""
    for call in calls:
        if not call.is_looped:
            path = call.steps[-1].path if call.steps else call.template.path
            called = show_value(call.template.data.get("name"))
            yield Loss(f"{path}: {called}", "is no part of a loop; left out")
    reached = {id(template) for call in calls for template in (call.template, *call.callers)}
    for template in workflow.templates.values():
        if id(template) not in reached:
            what = f"{template.path}: {show_value(template.data.get('name'))}"
            yield Loss(what, "a trial runs one template; left out")
    for step in {id(step): step for call in looped for step in call.steps}.values():
        step.text("template")
        yield from _beside_parameters(step, "arguments")
        yield from step.rest()
    for template in {id(template): template for call in looped for template in call.callers}.values():
        template.text("name")
        yield from _beside_parameters(template, "inputs")
        yield from template.rest()


def _beside_parameters(owner: Fields, key: str) -> Iterator[Loss]:
    """Yield what arguments or inputs are that no parameter has, such as artifacts."""
    given = owner.inner(key)
    given.take("parameters")
    return given.rest()


def _parallelism(spec: Fields, looped: Sequence[PodCall]) -> dict[str, int]:
    """Return the key of a spec: the limit of the Workflow, or that of the only template with loops."""
    most = spec.whole("parallelism")
    callers = {id(template): template for call in looped for template in call.callers}
    if most is None and len(callers) == 1:
        most = next(iter(callers.values())).whole("parallelism")
    return {} if most is None else {"parallelism": most}


def _rows(looped: Sequence[PodCall], losses: list[Loss]) -> list[dict[str, Any]]:
    """Return the values of each call. Raises ForeignError if they are not in the file, or are all alike."""
    rows = [dict(call.values) for call in looped]
    template = looped[0].template
    for key in looped[0].values:
        texts = [row[key] for row in rows if isinstance(row[key], str) and "{{" in row[key]]
        if not texts:
            continue
        if len(texts) < len(rows) or len(set(texts)) > 1:
            raise ForeignError(
                f"{template.path}: the parameter {key} must have all its values in the file, got {texts[0]!r}",
                hint="a step or an expression computes them; write them as withItems",
            )
        losses.append(
            Loss(
                f"{template.path}: {key}", "only the running Workflow has its value; write it in the command"
            )
        )
        for row in rows:
            del row[key]
    if not rows[0] or (len(rows) > 1 and len(set(map(str, rows))) == 1):
        raise ForeignError(
            f"{template.path} must get parameters from the items of a loop, got {len(rows)} equal pods",
            hint=f"equal trials are `replicates: {len(rows)}` of a spec",
        )
    return rows


def _trial(workflow: Workflow, template: Fields, names: Mapping[str, str]) -> ImportedTrial:
    trial = ImportedTrial()
    key = _program_key(template)
    # Its inputs differ from trial to trial; the arguments of the Workflow do not.
    container = Fields(workflow.filled(template.inner(key).data, {}), template.at(key))
    trial.losses += container.lost("source", "a script in the file; move it to a program")
    read_container(container, Placeholders(names, INPUT), trial)
    template.taken.add("name")
    trial.losses += [*_beside_parameters(template, "inputs"), *template.rest()]
    return trial
