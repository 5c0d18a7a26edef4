"""What Katib's webhook refuses in a v1beta1 Experiment, told from its documented rules and written anew."""

import json
import re
from collections.abc import Iterator
from math import prod
from typing import Any

NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
PLACEHOLDER = re.compile(r"\$\{trialParameters\.(.+?)\}")
COUNTS = {"maxTrialCount", "parallelTrialCount", "maxFailedTrialCount"}
PARTS = {"objective", "algorithm", "metricsCollectorSpec", "parameters", "trialTemplate"}


def broken(experiment: dict[str, Any]) -> list[str]:
    spec = experiment["spec"]
    return [
        *_head(experiment),
        *_counts(spec),
        *_objective(spec["objective"]),
        *(text for parameter in spec["parameters"] for text in _parameter(parameter)),
        *_grid(spec),
        *_template(spec["trialTemplate"], {parameter["name"] for parameter in spec["parameters"]}),
    ]


def _head(experiment: dict[str, Any]) -> Iterator[str]:
    name = experiment["metadata"]["name"]
    if experiment["apiVersion"] != "kubeflow.org/v1beta1" or experiment["kind"] != "Experiment":
        yield "version"
    if len(name) > 40 or not NAME.fullmatch(name):
        yield "name"
    if experiment["spec"].keys() != COUNTS | PARTS:
        yield "keys unknown or missing"
    if not experiment["spec"]["parameters"]:
        yield "no parameters"


def _counts(spec: dict[str, Any]) -> Iterator[str]:
    most, parallel, failed = (spec[f"{kind}TrialCount"] for kind in ("max", "parallel", "maxFailed"))
    if not 0 < most < 2**31:
        yield "maxTrialCount"
    if not 0 < parallel <= most:
        yield "parallelTrialCount"
    if not 0 <= failed <= most:
        yield "maxFailedTrialCount"


def _objective(objective: dict[str, Any]) -> Iterator[str]:
    if objective["type"] not in {"minimize", "maximize"}:
        yield "objective.type"
    if not objective["objectiveMetricName"]:
        yield "objective.objectiveMetricName"
    if objective["objectiveMetricName"] in objective.get("additionalMetricNames", []):
        yield "objective.additionalMetricNames"
    if {entry["value"] for entry in objective.get("metricStrategies", [])} - {"min", "max", "latest"}:
        yield "objective.metricStrategies"


def _parameter(parameter: dict[str, Any]) -> Iterator[str]:
    space = parameter["feasibleSpace"]
    if not all(isinstance(value, str) for key, value in space.items() if key != "list"):
        yield f"{parameter['name']}: bounds are text"
    if not all(isinstance(value, str) for value in space.get("list", [])):
        yield f"{parameter['name']}: values are text"
    if parameter["parameterType"] in {"int", "double"}:
        if "list" in space or not space.get("min") or not space.get("max"):
            yield f"{parameter['name']}: a range has min, max and no list"
        elif not float(space["min"]) <= float(space["max"]):
            yield f"{parameter['name']}: min is above max"
        if space.get("distribution", "uniform") not in {"uniform", "logUniform", "normal", "logNormal"}:
            yield f"{parameter['name']}: distribution"
    elif parameter["parameterType"] in {"categorical", "discrete"}:
        if space.keys() != {"list"} or len(set(space["list"])) < len(space["list"]) or not space["list"]:
            yield f"{parameter['name']}: a choice has a list of distinct values and nothing else"
    else:
        yield f"{parameter['name']}: parameterType"


def _grid(spec: dict[str, Any]) -> Iterator[str]:
    if spec["algorithm"]["algorithmName"] != "grid":
        return
    for parameter in spec["parameters"]:
        if parameter["parameterType"] == "double" and "step" not in parameter["feasibleSpace"]:
            yield f"{parameter['name']}: a grid needs a step"
            return
    if spec["maxTrialCount"] > combinations(spec):
        yield "maxTrialCount is above the number of combinations"


def combinations(spec: dict[str, Any]) -> int:
    """Count the combinations of a grid of lists and whole numbers."""
    spaces = [parameter["feasibleSpace"] for parameter in spec["parameters"]]
    return prod(
        len(space["list"]) if "list" in space else int(space["max"]) - int(space["min"]) + 1
        for space in spaces
    )


def _template(template: dict[str, Any], parameters: set[str]) -> Iterator[str]:
    text = json.dumps(template["trialSpec"], ensure_ascii=False)
    names = [entry["name"] for entry in template["trialParameters"]]
    references = [entry["reference"] for entry in template["trialParameters"]]
    if not template["primaryContainerName"]:
        yield "primaryContainerName"
    if not template["successCondition"] or not template["failureCondition"]:
        yield "conditions"
    if len(set(names)) < len(names) or len(set(references)) < len(references):
        yield "trialParameters stand there twice"
    if set(references) - parameters:
        yield "a reference to no parameter"
    if set(PLACEHOLDER.findall(text)) != set(names):
        yield "placeholders and trialParameters differ"
    if not all(re.fullmatch(r"[^{}]+", name) for name in names):
        yield "a brace in a name"
    manifest = template["trialSpec"]
    if manifest.get("metadata", {}).keys() & {"name", "namespace"}:
        yield "the trial's own name"
    if not manifest.get("apiVersion") or not manifest.get("kind"):
        yield "the kind of a trial"
    containers = manifest["spec"]["template"]["spec"]["containers"]
    if template["primaryContainerName"] not in [container["name"] for container in containers]:
        yield "no primary container"
