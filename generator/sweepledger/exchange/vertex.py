"""A hyperparameter tuning job of Vertex AI, or its studySpec alone; also a job of AI Platform, which was before it."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sweepledger.exchange.conversion import Imported, Loss
from sweepledger.exchange.fields import Fields, exact_number, no_values, spec_number
from sweepledger.exchange.kubernetes.command import Placeholders
from sweepledger.exchange.kubernetes.container import ImportedTrial, read_container
from sweepledger.exchange.search_frame import ForeignSearch, parameter_names, run_keys, search_spec
from sweepledger.exchange.spec_parts import PROGRAM
from sweepledger.formats import foreign_yaml
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.structs.names import suggest_sweep_name
from sweepledger.structs.program import DEFAULT_COMMAND

TOOL = "Vertex AI"
METHODS = {"GRID_SEARCH": "grid", "RANDOM_SEARCH": "random"}
"""Without an algorithm, Vertex AI uses Bayesian optimization."""
REQUEST = "hyperparameterTuningJob"
"""The key with the job in a request to create it."""
SHELL_VARIABLE = re.compile(r"\$[A-Za-z_]")
VALUE_SPECS = ("doubleValueSpec", "integerValueSpec", "categoricalValueSpec", "discreteValueSpec")


def read(content: bytes, *, name: str) -> Imported:
    """Return a spec for a tuning job. Raises ForeignError."""
    root = Fields.of(_camel_case(foreign_yaml.load(content)), "")
    if isinstance(root.data.get(REQUEST), dict):
        root = root.inner(REQUEST)
    if "trainingInput" in root.data and "studySpec" not in root.data:
        return _ai_platform_job(root, name)
    is_alone = "studySpec" not in root.data and "metrics" in root.data
    study = root if is_alone else root.inner("studySpec")
    losses: list[Loss] = []
    entries = list(_entries(study, losses))
    if not entries:
        raise ForeignError("must be a studySpec of Vertex AI with parameters, got none")
    names = parameter_names([str(entry.text("parameterId") or "") for entry in entries], losses)
    parameters = {names[str(entry.text("parameterId") or "")]: _domain(entry, losses) for entry in entries}
    search = _search(root, study, parameters, losses)
    own = root.text("displayName") or ""
    spec, more = search_spec(search, suggest_sweep_name(own) or name)
    trial = _trial(root.inner("trialJobSpec"))
    most = root.whole("maxFailedTrialCount")
    run = trial.run | ({} if not most else {"max_failed": most})
    spec |= _command(trial) | run_keys(search, run)
    rest = root.rest() if is_alone else [*study.rest(), *root.rest()]
    return Imported(spec, (*losses, *more, *trial.losses, *rest))


def _camel_case(value: object) -> object:
    """Return a file with the keys of the API, which Python's client writes as `study_spec`. Raises ForeignError."""
    if isinstance(value, list):
        return [_camel_case(item) for item in value]
    if not isinstance(value, dict):
        return value
    written: dict[str, str] = {}
    for key in value:
        name = re.sub("_([a-z])", lambda at: at[1].upper(), key)
        if name in written:
            raise ForeignError(f"{name} is there twice, as {written[name]} and as {key}: keep one of them")
        written[name] = key
    return {name: _camel_case(value[key]) for name, key in written.items()}


AI_PLATFORM_METRIC = "training/hptuning/metric"
"""The tag of a job of AI Platform that names none."""
AI_PLATFORM_TYPES = {
    "DOUBLE": "", "INTEGER": "", "CATEGORICAL": "categoricalValues", "DISCRETE": "discreteValues",
}  # fmt: skip
"""The key with the values of each type of parameter; the others are ranges."""


def _ai_platform_job(root: Fields, name: str) -> Imported:
    """Return a spec for a training job with hyperparameters. Raises ForeignError."""
    training = root.inner("trainingInput")
    study = training.inner("hyperparameters")
    entries, losses = study.each("params"), list[Loss]()
    if not entries:
        raise ForeignError(
            "must have trainingInput.hyperparameters with params, or be a studySpec of Vertex AI, got none"
        )
    foreign = [entry.text("parameterName") or "" for entry in entries]
    names = parameter_names(foreign, losses)
    parameters = {
        names[key]: _ai_platform_domain(entry, losses) for key, entry in zip(foreign, entries, strict=True)
    }
    algorithm = study.text("algorithm")
    if algorithm not in {None, "ALGORITHM_UNSPECIFIED", *METHODS}:
        losses.append(Loss(f"{study.at('algorithm')}: {algorithm}", "written as bayes"))
    search = ForeignSearch(
        "AI Platform",
        METHODS.get(str(algorithm), "bayes"),
        parameters,
        study.text("hyperparameterMetricTag") or AI_PLATFORM_METRIC,
        study.text("goal"),
        study.whole("maxTrials"),
        None,
        study.whole("maxParallelTrials"),
    )
    spec, more = search_spec(search, suggest_sweep_name(root.text("jobId") or "") or name)
    most, trial = study.whole("maxFailedTrials"), ImportedTrial()
    run = trial.run | ({} if not most else {"max_failed": most})
    spec |= _command(trial) | run_keys(search, run)
    rest = [*study.rest(), *training.rest(), *root.rest()]
    return Imported(spec, (*losses, *more, *trial.losses, *rest))


def _ai_platform_domain(entry: Fields, losses: list[Loss]) -> dict[str, Any]:
    kind, scale = entry.text("type"), entry.text("scaleType")
    if kind not in AI_PLATFORM_TYPES:
        raise ForeignError(f"{entry.at('type')} must be one of {', '.join(AI_PLATFORM_TYPES)}, got {kind}")
    scale = None if scale == "NONE" else scale
    if key := AI_PLATFORM_TYPES[kind]:
        domain = _values(entry, key, numbers=kind == "DISCRETE")
    else:
        domain = _range(entry, entry, scale, losses, whole=kind == "INTEGER")
    losses += entry.rest()
    return domain


def _entries(study: Fields, losses: list[Loss]) -> Iterator[Fields]:
    """Yield all parameters; conditional ones after the parameter on which they depend."""
    waiting = study.each("parameters")
    while waiting:
        entry = waiting.pop(0)
        yield entry
        inner = []
        for conditional in entry.each("conditionalParameterSpecs"):
            parameter = conditional.inner("parameterSpec")
            why = f"depends on {entry.data.get('parameterId')}: every trial has it; write `when`"
            losses.append(Loss(f"{parameter.path}: {parameter.data.get('parameterId')}", why))
            inner.append(parameter)
        waiting = inner + waiting


def _search(
    root: Fields, study: Fields, parameters: Mapping[str, dict[str, Any]], losses: list[Loss]
) -> ForeignSearch:
    metrics, algorithm = study.each("metrics"), study.text("algorithm")
    metric = metrics[0] if metrics else Fields({}, study.at("metrics"))
    losses += [Loss(f"{other.path}", "one objective is written") for other in metrics[1:]]
    if algorithm not in {None, "ALGORITHM_UNSPECIFIED", *METHODS}:
        losses.append(Loss(f"{study.at('algorithm')}: {algorithm}", "written as bayes"))
    search = ForeignSearch(
        TOOL,
        METHODS.get(str(algorithm), "bayes"),
        parameters,
        metric.text("metricId"),
        metric.text("goal"),
        root.whole("maxTrialCount"),
        None,
        root.whole("parallelTrialCount"),
    )
    losses += metric.rest()
    return search


def _domain(entry: Fields, losses: list[Loss]) -> dict[str, Any]:
    kinds = [kind for kind in VALUE_SPECS if kind in entry.data]
    if len(kinds) != 1:
        raise ForeignError(f"{entry.path} must have one of {', '.join(VALUE_SPECS)}, got {kinds}")
    kind, scale = kinds[0], entry.text("scaleType")
    values = entry.inner(kind)
    losses += values.lost("defaultValue", "where Vertex AI starts; left out")
    if kind in {"categoricalValueSpec", "discreteValueSpec"}:
        domain = _values(values, "values", numbers=kind == "discreteValueSpec")
    else:
        domain = _range(entry, values, scale, losses, whole=kind == "integerValueSpec")
    losses += [*values.rest(), *entry.rest()]
    return domain


def _values(values: Fields, key: str, *, numbers: bool) -> dict[str, Any]:
    items = [
        spec_number(exact_number(item, values.at(key))) if numbers else str(item)
        for item in values.items(key)
    ]
    distinct = list(dict.fromkeys(items))
    if not distinct:
        raise no_values(values.at(key))
    return {"values": distinct} if len(distinct) > 1 else {"value": distinct[0]}


def _range(
    entry: Fields, values: Fields, scale: str | None, losses: list[Loss], *, whole: bool
) -> dict[str, Any]:
    low, high = (exact_number(values.text(key), values.at(key)) for key in ("minValue", "maxValue"))
    ends = {"min": spec_number(low), "max": spec_number(high)}
    if low == high:
        return {"value": ends["min"]}
    if scale == "UNIT_LOG_SCALE":
        kind = "q_log_uniform_values" if whole else "log_uniform_values"
        return {"distribution": kind, **ends} | ({"q": 1} if whole else {})
    if scale not in {None, "UNIT_LINEAR_SCALE", "SCALE_TYPE_UNSPECIFIED"}:
        losses.append(Loss(f"{entry.at('scaleType')}: {scale}", "written as linear"))
    return {"distribution": "int_uniform" if whole else "uniform", **ends}


def _trial(job: Fields) -> ImportedTrial:
    trial = ImportedTrial()
    pools = job.each("workerPoolSpecs")
    for pool in pools[:1]:
        container = pool.inner("containerSpec")
        image = container.text("imageUri")
        if image is not None:
            container.data = {**container.data, "image": image}
        read_container(container, Placeholders({}), trial)
        # JSON of the API has numbers of 64 bits as text.
        count = pool.text("replicaCount")
        if count not in {None, "1"}:
            trial.losses.append(
                Loss(f"{pool.at('replicaCount')}: {count}", "a trial is one process; set run.shape")
            )
        trial.losses += pool.rest()
    trial.losses += [Loss(pool.path, "a trial is one process here") for pool in pools[1:]]
    trial.losses += job.rest()
    return trial


def _command(trial: ImportedTrial) -> dict[str, Any]:
    """Return the command with `${args}`, because Vertex AI appends every parameter as --name=value."""
    if trial.command is None:
        why = f"is in the image or package; written as {PROGRAM}: write your program, which receives --name=value"
        trial.losses.append(Loss("program", why))
        return {"program": PROGRAM}
    trial.losses += [
        Loss(f"command: {part}", "has a variable of the shell that writes this file; write its value")
        for part in trial.command
        if SHELL_VARIABLE.search(part)
    ]
    return {"command": [*trial.command, DEFAULT_COMMAND[-1]]}
