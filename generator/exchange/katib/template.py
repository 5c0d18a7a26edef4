"""What a trial is in Katib, a manifest with placeholders, as our command, image and resources."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from generator.exchange.katib import commands
from generator.exchange.katib.fields import Fields, plain, shown
from generator.exchange.katib.spaces import Read, exact, written
from generator.exchange.listing import PROGRAM
from generator.exchange.loss import ForeignError, Loss
from generator.exchange.programs import FOLDER
from generator.formats import foreign_yaml

CONDITIONS = {
    "successCondition": 'status.conditions.#(type=="Complete")#|#(status=="True")#',
    "failureCondition": 'status.conditions.#(type=="Failed")#|#(status=="True")#',
}
"""Katib's defaults for a Job: what they ask is what we ask of a trial."""

GPU = "nvidia.com/gpu"
BARE = re.compile(r"[0-9]+(?:\.[0-9]+)?", re.ASCII)
MOST_RETRIES = 10

CODE_LOSS = Loss(
    "the code of the trial",
    f"Katib's trials run what their image holds, ours a folder of this repository: {FOLDER} stands there",
)


class Trial:
    """What is gathered of a spec while the template is read."""

    def __init__(self) -> None:
        self.command: list[str] | None = None
        self.run: dict[str, Any] = {"code": {"path": FOLDER}}
        self.losses: list[Loss] = []

    def as_spec(self) -> dict[str, Any]:
        """Give the keys of a spec that say it."""
        command = {"program": PROGRAM} if self.command is None else {"command": self.command}
        return {**command, "run": self.run}


def read(template: Fields, parameters: Sequence[Read]) -> Trial:
    """Read `spec.trialTemplate` of either version. Raises ForeignError."""
    trial = Trial()
    if template.data.get("goTemplate") is not None:
        _go_template(template.inner("goTemplate"), parameters, trial)
    else:
        _structured(template, parameters, trial)
    for key, usual in CONDITIONS.items():
        if template.data.get(key) == usual:
            template.taken.add(key)
    trial.losses += template.rest()
    if trial.command is None:
        why = f"the command of the trial is not in the file; {FOLDER}/{PROGRAM} stands there: put yours"
        trial.losses.append(Loss(template.path, why))
    trial.losses.append(CODE_LOSS)
    return trial


def _structured(template: Fields, parameters: Sequence[Read], trial: Trial) -> None:
    ours = {parameter.foreign: parameter.name for parameter in parameters}
    names: dict[str, str] = {}
    for entry in template.each("trialParameters"):
        name, reference = entry.text("name"), entry.text("reference")
        if name is not None and reference in ours:
            names[name] = ours[reference]
        elif name is not None:
            trial.losses.append(
                Loss(f"{entry.path}: {name}", f"refers to {reference}, which is no parameter")
            )
        entry.taken.add("description")
    _config_map(template, "configMap", trial)
    manifest = template.take("trialSpec")
    primary = template.text("primaryContainerName")
    if manifest is not None:
        _manifest(Fields.of(manifest, template.at("trialSpec")), primary, names, trial)


def _go_template(template: Fields, parameters: Sequence[Read], trial: Trial) -> None:
    _config_map(template, "templateSpec", trial)
    raw = template.text("rawTemplate")
    if raw is not None:
        path = template.at("rawTemplate")
        text, losses = commands.go_template(raw, [parameter.foreign for parameter in parameters], path=path)
        trial.losses += losses
        try:
            manifest = foreign_yaml.load(text.encode())
        except ForeignError as error:
            trial.losses.append(Loss(path, f"not readable once its loop is a macro: {error}"))
        else:
            _manifest(Fields.of(manifest, path), None, {}, trial)
    trial.losses += template.rest()


def _config_map(template: Fields, key: str, trial: Trial) -> None:
    found = template.inner(key)
    if found.data:
        where = "/".join(
            str(found.take(part))
            for part in ("configMapNamespace", "configMapName", "templatePath")
            if found.data.get(part) is not None
        )
        trial.losses.append(Loss(f"{found.path}: {where}", "the manifest is in the cluster, not in the file"))
        trial.losses += found.rest()


def _manifest(manifest: Fields, primary: str | None, names: Mapping[str, str], trial: Trial) -> None:
    kind = manifest.text("kind")
    manifest.text("apiVersion")
    _only_names(manifest.inner("metadata"))
    if kind == "Job":
        job = manifest.inner("spec")
        _job(job, trial)
        pods = [job.inner("template")]
        trial.losses += job.rest()
    else:
        trial.losses.append(
            Loss(f"{manifest.path}.kind: {kind}", "a trial is one process here, not a set of pods")
        )
        pods = [Fields.of(data, path) for data, path in _pods(manifest.data, manifest.path)]
        manifest.taken |= manifest.data.keys()
    for pod in pods:
        _pod(pod, primary, names, trial)
    trial.losses += manifest.rest()


def _only_names(metadata: Fields) -> None:
    """Names of the objects of a trial: ours are made from its values."""
    metadata.taken |= {"name", "namespace", "creationTimestamp"}


def _job(job: Fields, trial: Trial) -> None:
    retries, deadline = job.whole("backoffLimit"), job.whole("activeDeadlineSeconds")
    if retries is not None:
        trial.run["retries"] = min(retries, MOST_RETRIES)
        if retries > MOST_RETRIES:
            trial.losses.append(
                Loss(f"{job.at('backoffLimit')}: {retries}", f"{MOST_RETRIES} is the most here")
            )
    if deadline is not None:
        trial.run["timeout"] = f"{deadline}s"


def _pods(data: Any, path: str) -> Iterator[tuple[Any, str]]:
    """Find every pod template in a manifest of any kind."""
    if isinstance(data, dict):
        if isinstance(data.get("spec"), dict) and "containers" in data["spec"]:
            yield data, path
            return
        for key, inner in data.items():
            yield from _pods(inner, f"{path}.{key}")


def _pod(pod: Fields, primary: str | None, names: Mapping[str, str], trial: Trial) -> None:
    spec = pod.inner("spec")
    containers = spec.each("containers")
    if spec.data.get("restartPolicy") == "Never":
        spec.taken.add("restartPolicy")
    named = [found for found in containers if found.data.get("name") == primary]
    chosen = (named or containers)[:1] if trial.command is None else []
    for container in chosen:
        _container(container, names, trial)
    others = [found for found in containers if found not in chosen]
    trial.losses += [
        Loss(f"{found.path}: {shown(found.data.get('name'))}", "only one container runs") for found in others
    ]
    trial.losses += [*pod.inner("metadata").rest(), *spec.rest(), *pod.rest()]


def _container(container: Fields, names: Mapping[str, str], trial: Trial) -> None:
    container.text("name")
    variables = _environment(container, trial)
    command = [plain(part) for part in container.items("command")]
    arguments = [plain(part) for part in container.items("args")]
    if not command and arguments:
        trial.losses.append(
            Loss(container.at("command"), "the image names the program, not the file; put yours")
        )
        command = ["${interpreter}", PROGRAM]
    if command:
        told = commands.Told(names, variables, container.at("command"))
        trial.command = told.command([*command, *arguments])
        trial.losses += told.losses
    image = container.text("image")
    if image is not None and "@sha256:" in image:
        trial.run["image"] = image
    elif image is not None:
        why = "a tag can be moved; put the image with its digest as run.image, or into the settings"
        trial.losses.append(Loss(f"{container.at('image')}: {image}", why))
    _resources(container.inner("resources"), trial)
    trial.losses += container.rest()


def _resources(resources: Fields, trial: Trial) -> None:
    limits, requests = resources.inner("limits"), resources.inner("requests")
    found = {
        ours: value
        for ours, key in (("cpu", "cpu"), ("memory", "memory"), ("gpu", GPU))
        if (value := limits.take(key)) is not None or (value := requests.data.get(key)) is not None
    }
    for key in list(requests.data):
        if requests.data[key] == limits.data.get(key) or limits.data.get(key) is None:
            requests.taken |= {key} & {"cpu", "memory", GPU}
    if found:
        trial.run["resources"] = {key: _quantity(value, key) for key, value in found.items()}
    trial.losses += [*limits.rest(), *requests.rest("requests and limits are equal here"), *resources.rest()]


def _quantity(value: object, key: str) -> object:
    """Give bare amounts as numbers, and those with a unit as they are."""
    text = plain(value)
    return written(exact(text)) if key != "memory" and BARE.fullmatch(text) else text


def _environment(container: Fields, trial: Trial) -> dict[str, str]:
    """Read the variables that have a value; those of our own contract are set anyway."""
    values: dict[str, str] = {}
    for entry in container.each("env"):
        name, value = entry.text("name") or "", entry.data.get("value")
        if value is not None and not name.startswith("SWEEP_"):
            values[name] = plain(value)
        elif not name.startswith("SWEEP_"):
            trial.losses.append(Loss(f"{entry.path}: {name}", "its value is in the cluster, not in the file"))
    return values
