"""An OptimizationJob of Kubeflow Trainer, in both directions."""

import re
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from sweepledger.errors import UsageError
from sweepledger.exchange import conversion, spec_parts
from sweepledger.exchange.conversion import Assignments, Exported, ForeignFormat, Imported, Loss, LossList
from sweepledger.exchange.fields import Fields, exact_number, no_values, show_value
from sweepledger.exchange.kubernetes import ImportedTrial, filled_command, trial_values
from sweepledger.formats import foreign_yaml
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.structs.domain import Domain, NumberRange
from sweepledger.structs.names import environment_name, suggest_sweep_name
from sweepledger.structs.search_block import AdaptiveSearch, GridSearch, RandomSearch
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import Value, canonical

TOOL = "Kubeflow"
VERSION = "trainer.kubeflow.org/v1alpha1"
KIND = "OptimizationJob"
VARIABLE = "KUBEFLOW_TRAINER_OPT_"
"""Prefix of the variables in which a trial receives its parameters."""
MOST_TRIALS = MOST_CHOICES = 100
LONGEST_TEXT = 64
"""Characters of a choice, and of the names of parameters and metrics."""
DRAFT_KEYS = ("algorithm", "searchSpace", "trialConfig", "trialTemplate")
"""Keys of `spec` in drafts, without which a search of another size would be read."""
DRAFT = "drafts have other keys: write them as Kubeflow Trainer's own definition of an OptimizationJob does"
INSTEAD = "export to katib, which has no such limit"
RUNTIME = "torch-distributed"
NO_IMAGE = "registry.example/replace-me"


def read(content: bytes, *, name: str) -> Imported:
    """Return a spec for an OptimizationJob. Raises ForeignError."""
    root = Fields.of(foreign_yaml.load(content, version="go"), "")
    version, kind = root.text("apiVersion"), root.text("kind")
    if kind != KIND or not str(version).startswith("trainer.kubeflow.org/"):
        raise ForeignError(
            f"must be an {KIND} of {VERSION}, got {kind!r} of {version!r}",
            hint=DRAFT if kind == KIND else None,
        )
    metadata, job = root.inner("metadata"), root.inner("spec")
    own = metadata.text("name") or ""
    losses = LossList(metadata.rest("belongs to the cluster"))
    losses += root.lost("status", "is the state in a cluster")
    drafted = [job.at(key) for key in DRAFT_KEYS if key in job.data]
    if drafted:
        raise ForeignError(f"{drafted[0]} is no key of an {KIND}", hint=DRAFT)
    entries = job.each("parameters")
    if not entries:
        raise ForeignError("spec.parameters must contain at least one parameter, got none")
    names = spec_parts.parameter_names([str(entry.text("name") or "") for entry in entries], losses)
    parameters = {
        names[str(entry.text("name") or "")]: _domain(entry.inner("searchSpace"), losses) for entry in entries
    }
    objectives, algorithm = job.each("objectives"), job.inner("searchAlgorithm")
    objective = objectives[0] if objectives else Fields({}, job.at("objectives"))
    losses += [Loss(other.path, "a sweep has one objective") for other in objectives[1:]]
    algorithm.take("grid")
    search = spec_parts.ForeignSearch(
        TOOL,
        "grid" if "grid" in algorithm.data else "random",
        parameters,
        objective.text("metric"),
        objective.text("direction") or "Minimize",
        job.whole("numTrials") or 1,
        algorithm.inner("random").whole("seed"),
        job.whole("parallelTrials") or 1,
    )
    spec = spec_parts.search_spec(search, suggest_sweep_name(own) or name, losses)
    template, trial = job.inner("trainJobTemplate"), ImportedTrial(names)
    trial.losses += template.inner("metadata").rest("belongs to the cluster")
    manifest = {"kind": "TrainJob", "spec": template.take("spec")}
    trial.read_manifest(template.child(manifest, template.path))
    if trial.command is None:
        why = (
            f"the command is in the image or the runtime; written as {spec_parts.PROGRAM}: write your command"
        )
        trial.losses.add(f"{template.path}.spec.trainer.command", why)
    given = {variable(foreign): environment_name(name) for foreign, name in names.items()}
    settings = [f"{theirs}=${{envvar:{ours}}}" for theirs, ours in given.items()]
    command = trial.command or ["${interpreter}", "${program}"]
    command = command[1:] if command[:1] == ["${env}"] else command
    for theirs, ours in given.items():
        command = [part.replace(f"${{envvar:{theirs}}}", f"${{envvar:{ours}}}") for part in command]
    program = {} if trial.command else {"program": spec_parts.PROGRAM}
    spec |= {**program, "command": ["${env}", *settings, *command]} | spec_parts.run_keys(search, trial.run)
    return Imported(spec, (*losses, *trial.losses, *root.rest()))


def _domain(space: Fields, losses: LossList) -> dict[str, Any]:
    """Return the keys of a parameter. Raises ForeignError."""
    kinds = [kind for kind in ("uniform", "logUniform", "categorical") if kind in space.data]
    if len(kinds) != 1:
        found = ", ".join(map(str, space.data)) or "none"
        raise ForeignError(
            f"{space.path} must have one of categorical, logUniform, uniform, got {found}", hint=DRAFT
        )
    inner = space.inner(kinds[0])
    if kinds == ["categorical"]:
        if not inner.items("choices"):
            raise no_values(inner.at("choices"), more=f"; {DRAFT}")
        return spec_parts.listed_keys(map(str, inner.items("choices")), inner.at("choices"), losses)
    low, high = (exact_number(inner.text(key), inner.at(key)) for key in ("min", "max"))
    is_whole = inner.text("type") == "Int"
    return spec_parts.range_keys(low, high, is_log=kinds == ["logUniform"], is_whole=is_whole)


def variable(name: str) -> str:
    """Return the variable in which a trial receives a parameter."""
    return VARIABLE + re.sub("[^A-Za-z0-9]", "_", name).upper()


def write(sweep: Sweep, assignments: Assignments) -> Exported:
    """Return the sweep as an OptimizationJob with one node per trial."""
    design = sweep.design
    losses = LossList(conversion.design_losses(design, KIND))
    grid = not isinstance(design, RandomSearch | AdaptiveSearch)
    declared = {parameter.name: parameter.domain for parameter in design.space.parameters}
    has_ranges = not all(domain.listed for domain in declared.values())
    if isinstance(design, GridSearch | RandomSearch | AdaptiveSearch) and not (grid and has_ranges):
        spaces = {name: _space(name, domain, losses) for name, domain in declared.items()}
    else:
        columns = conversion.distinct_columns(assignments)
        spaces = {name: _choices(name, values, losses) for name, values in columns.items()}
        if grid and prod(len(space["categorical"]["choices"]) for space in spaces.values()) > len(
            assignments
        ):
            losses.add(f"method: {design.method}", f"an {KIND} runs combinations of these values, not rows")
    _require_small(sweep, spaces)
    count = len(assignments) if sweep.search is None else conversion.most_trials(sweep.search)
    if count is None:
        count = MOST_TRIALS
        losses.add(f"numTrials: {count}", f"the search has no limit, and an {KIND} has at most {count}")
    if count > MOST_TRIALS:
        losses.add(f"{count} trials", f"an {KIND} has at most {MOST_TRIALS}")
    if not grid:
        losses += conversion.drawn_losses(
            design, TOOL, None if isinstance(design, RandomSearch) else "random"
        )
    if sweep.metric.target is not None or sweep.other_metrics:
        losses.add("metric", f"an {KIND} has one objective without a target")
    count = max(1, min(count, MOST_TRIALS))
    given = trial_values(sweep, {}, {name: f"$({variable(name)})" for name in spaces})
    command = [part for part in sweep.command if not part.startswith("${args")]
    filled = filled_command(command, given, sweep, KIND, losses)
    losses.add("command", f"a trial receives its parameters in the variables {VARIABLE}NAME")
    losses += conversion.run_losses(sweep, KIND)
    seed = {"seed": design.seed} if isinstance(design, RandomSearch) else {}
    document = {
        "apiVersion": VERSION,
        "kind": KIND,
        "metadata": {"name": sweep.name},
        "spec": {
            "objectives": [{"metric": sweep.metric.name, "direction": str(sweep.metric.goal).capitalize()}],
            "searchAlgorithm": {"grid": {}} if grid else {"random": seed},
            "parameters": [{"name": name, "searchSpace": space} for name, space in spaces.items()],
            "numTrials": count,
            "parallelTrials": min(sweep.run.parallelism, count),
            "trainJobTemplate": {
                "spec": {
                    "runtimeRef": {"name": RUNTIME},
                    "trainer": {
                        "image": sweep.run.image or NO_IMAGE,
                        "numNodes": sweep.run.nodes,
                        "command": filled,
                    },
                }
            },
        },
    }
    return conversion.exported_yaml(document, sweep, TOOL, losses)


def _require_small(sweep: Sweep, spaces: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse an object that is too large for the API server. Raises UsageError."""
    choices = {
        name: space["categorical"]["choices"] for name, space in spaces.items() if "categorical" in space
    }
    texts = [sweep.metric.name, *spaces, *(text for values in choices.values() for text in values)]
    too_many = [f"{name} has {len(values)}" for name, values in choices.items() if len(values) > MOST_CHOICES]
    too_long = [text for text in texts if len(text) > LONGEST_TEXT]
    if too_many:
        raise UsageError(f"an {KIND} has at most {MOST_CHOICES} choices, and {too_many[0]}", hint=INSTEAD)
    if too_long:
        text = show_value(too_long[0])
        raise UsageError(
            f"an {KIND} has texts of at most {LONGEST_TEXT} characters, got {text}", hint=INSTEAD
        )


def _space(name: str, domain: Domain, losses: LossList) -> dict[str, Any]:
    if domain.listed:
        if domain.chances is not None:
            losses.add(f"parameters.{name}", "all values are equally likely")
        return _choices(name, domain.listed, losses)
    match domain.shape:
        case NumberRange(low, high, False, is_integer, step):
            if step is not None:
                losses.add(f"parameters.{name}", "has no steps; written as uniform")
            kind = {"type": "Int"} if is_integer else {}
            return {"uniform": {"min": repr(low), "max": repr(high), **kind}}
        case NumberRange(low, high, True, step=None | 1 as step):
            return {"logUniform": {"min": repr(low), "max": repr(high), **({"type": "Int"} if step else {})}}
        case _:
            raise UsageError(
                f"{name}: an {KIND} has only uniform, logUniform and categorical",
                hint="export to katib, which has normal distributions",
            )


def _choices(name: str, values: Sequence[Value], losses: LossList) -> dict[str, Any]:
    if not all(isinstance(value, str) for value in values):
        losses.add(f"parameters.{name}", f"values are text in an {KIND}: numbers come back as text")
    return {"categorical": {"choices": list(dict.fromkeys(str(canonical(value)) for value in values))}}


FORMAT = ForeignFormat(
    "optimization-job",
    "an OptimizationJob of Kubeflow Trainer (trainer.kubeflow.org/v1alpha1)",
    read=read,
    write=write,
    is_search=True,
)
