"""Katib's trial template, in both directions: the command with its placeholders, image, resources."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sweepledger.exchange.conversion import Loss
from sweepledger.exchange.katib.fields import Fields, scalar_text, show_value
from sweepledger.exchange.katib.parameters import ImportedParameter, argument_text, exact_number, spec_number
from sweepledger.exchange.spec_parts import CODE_DIR, PROGRAM
from sweepledger.formats import foreign_yaml
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.structs.names import environment_name
from sweepledger.structs.node_pool import GPU_RESOURCE
from sweepledger.structs.program import LIST_MACROS, LOCAL_IMAGE, Macro, parse_element
from sweepledger.structs.run_config import RunConfig
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import Value, canonical

CONDITIONS = {
    "successCondition": 'status.conditions.#(type=="Complete")#|#(status=="True")#',
    "failureCondition": 'status.conditions.#(type=="Failed")#|#(status=="True")#',
}
"""Katib's default conditions for a Job, which also apply to trials here."""

BARE = re.compile(r"[0-9]+(?:\.[0-9]+)?", re.ASCII)
MOST_RETRIES = 10

CODE_LOSS = Loss(
    "the code of the trial",
    f"Katib's trials run the code in their image; here they run a folder of this repository: used {CODE_DIR}",
)


class ImportedTrial:
    """The parts of a spec that the template defines."""

    def __init__(self) -> None:
        self.command: list[str] | None = None
        self.run: dict[str, Any] = {"code": {"path": CODE_DIR}}
        self.losses: list[Loss] = []

    def as_spec(self) -> dict[str, Any]:
        """Return the keys of a spec for the trial."""
        command = {"program": PROGRAM} if self.command is None else {"command": self.command}
        return {**command, "run": self.run}


def read_trial_template(template: Fields, parameters: Sequence[ImportedParameter]) -> ImportedTrial:
    """Return the trial of `spec.trialTemplate`, in either version. Raises ForeignError."""
    trial = ImportedTrial()
    if template.data.get("goTemplate") is not None:
        _go_template(template.inner("goTemplate"), parameters, trial)
    else:
        _structured(template, parameters, trial)
    for key, usual in CONDITIONS.items():
        if template.data.get(key) == usual:
            template.taken.add(key)
    trial.losses += template.rest()
    if trial.command is None:
        why = f"the command of the trial is not in the file; used {CODE_DIR}/{PROGRAM}: write your command"
        trial.losses.append(Loss(template.path, why))
    trial.losses.append(CODE_LOSS)
    return trial


def _structured(template: Fields, parameters: Sequence[ImportedParameter], trial: ImportedTrial) -> None:
    names_by_foreign = {parameter.foreign: parameter.name for parameter in parameters}
    names: dict[str, str] = {}
    for entry in template.each("trialParameters"):
        name, reference = entry.text("name"), entry.text("reference")
        if name is not None and reference in names_by_foreign:
            names[name] = names_by_foreign[reference]
        elif name is not None:
            trial.losses.append(
                Loss(f"{entry.path}: {name}", f"refers to {reference}, which is not a parameter")
            )
        entry.taken.add("description")
    _config_map(template, "configMap", trial)
    manifest = template.take("trialSpec")
    primary = template.text("primaryContainerName")
    if manifest is not None:
        _manifest(Fields.of(manifest, template.at("trialSpec")), primary, names, trial)


def _go_template(template: Fields, parameters: Sequence[ImportedParameter], trial: ImportedTrial) -> None:
    _config_map(template, "templateSpec", trial)
    raw = template.text("rawTemplate")
    if raw is not None:
        path = template.at("rawTemplate")
        text, losses = plain_manifest(raw, [parameter.foreign for parameter in parameters], path=path)
        trial.losses += losses
        try:
            manifest = foreign_yaml.load(text.encode())
        except ForeignError as error:
            trial.losses.append(
                Loss(path, f"cannot be parsed after its loop is replaced by a macro: {error}")
            )
        else:
            _manifest(Fields.of(manifest, path), None, {}, trial)
    trial.losses += template.rest()


def _config_map(template: Fields, key: str, trial: ImportedTrial) -> None:
    reference = template.inner(key)
    if reference.data:
        where = "/".join(
            str(reference.take(part))
            for part in ("configMapNamespace", "configMapName", "templatePath")
            if reference.data.get(part) is not None
        )
        trial.losses.append(Loss(f"{reference.path}: {where}", "the manifest is only in the cluster"))
        trial.losses += reference.rest()


def _manifest(manifest: Fields, primary: str | None, names: Mapping[str, str], trial: ImportedTrial) -> None:
    kind = manifest.text("kind")
    manifest.text("apiVersion")
    _only_names(manifest.inner("metadata"))
    if kind == "Job":
        job = manifest.inner("spec")
        _read_job(job, trial)
        pods = [job.inner("template")]
        trial.losses += job.rest()
    else:
        trial.losses.append(
            Loss(f"{manifest.path}.kind: {kind}", "a trial is one process here, not several pods")
        )
        pods = [Fields.of(data, path) for data, path in _pods(manifest.data, manifest.path)]
        manifest.taken |= manifest.data.keys()
    for pod in pods:
        _pod(pod, primary, names, trial)
    trial.losses += manifest.rest()


def _only_names(metadata: Fields) -> None:
    """Mark the names of a trial's objects as read: here they are derived from its values."""
    metadata.taken |= {"name", "namespace", "creationTimestamp"}


def _read_job(job: Fields, trial: ImportedTrial) -> None:
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
    """Yield every pod template in a manifest of any kind."""
    if isinstance(data, dict):
        if isinstance(data.get("spec"), dict) and "containers" in data["spec"]:
            yield data, path
            return
        for key, inner in data.items():
            yield from _pods(inner, f"{path}.{key}")


def _pod(pod: Fields, primary: str | None, names: Mapping[str, str], trial: ImportedTrial) -> None:
    spec = pod.inner("spec")
    containers = spec.each("containers")
    if spec.data.get("restartPolicy") == "Never":
        spec.taken.add("restartPolicy")
    named = [container for container in containers if container.data.get("name") == primary]
    chosen = (named or containers)[:1] if trial.command is None else []
    for container in chosen:
        _container(container, names, trial)
    others = [container for container in containers if container not in chosen]
    trial.losses += [
        Loss(f"{container.path}: {show_value(container.data.get('name'))}", "only one container runs here")
        for container in others
    ]
    trial.losses += [*pod.inner("metadata").rest(), *spec.rest(), *pod.rest()]


def _container(container: Fields, names: Mapping[str, str], trial: ImportedTrial) -> None:
    container.text("name")
    variables = _environment(container, trial)
    command = [scalar_text(part) for part in container.items("command")]
    arguments = [scalar_text(part) for part in container.items("args")]
    if not command and arguments:
        trial.losses.append(
            Loss(container.at("command"), "the program is in the image, not in the file; write your command")
        )
        command = ["${interpreter}", PROGRAM]
    if command:
        translator = CommandTranslator(names, variables, container.at("command"))
        trial.command = translator.command([*command, *arguments])
        trial.losses += translator.losses
    image = container.text("image")
    if image is not None and "@sha256:" in image:
        trial.run["image"] = image
    elif image is not None:
        why = "a tag can be moved; set run.image, or an image in the settings, with a digest"
        trial.losses.append(Loss(f"{container.at('image')}: {image}", why))
    _resources(container.inner("resources"), trial)
    trial.losses += container.rest()


def _resources(resources: Fields, trial: ImportedTrial) -> None:
    limits, requests = resources.inner("limits"), resources.inner("requests")
    amounts = {
        name: value
        for name, key in (("cpu", "cpu"), ("memory", "memory"), ("gpu", GPU_RESOURCE))
        if (value := limits.take(key)) is not None or (value := requests.data.get(key)) is not None
    }
    for key in list(requests.data):
        if requests.data[key] == limits.data.get(key) or limits.data.get(key) is None:
            requests.taken |= {key} & {"cpu", "memory", GPU_RESOURCE}
    if amounts:
        trial.run["resources"] = {key: _quantity(value, key) for key, value in amounts.items()}
    trial.losses += [*limits.rest(), *requests.rest("requests are equal to limits here"), *resources.rest()]


def _quantity(value: object, key: str) -> object:
    """Return amounts without a unit as numbers, and those with a unit unchanged."""
    text = scalar_text(value)
    return spec_number(exact_number(text)) if key != "memory" and BARE.fullmatch(text) else text


def _environment(container: Fields, trial: ImportedTrial) -> dict[str, str]:
    """Return the variables with a value, except those that the launcher sets."""
    values: dict[str, str] = {}
    for entry in container.each("env"):
        name, value = entry.text("name") or "", entry.data.get("value")
        if value is not None and not name.startswith("SWEEP_"):
            values[name] = scalar_text(value)
        elif not name.startswith("SWEEP_"):
            trial.losses.append(Loss(f"{entry.path}: {name}", "its value is only in the cluster"))
    return values


ARGS = "${args}"
NO_HYPHENS = "${args_no_hyphens}"

PLACEHOLDER = re.compile(r"\$\{trialParameters\.(?P<parameter>[^}]+)\}")
META = re.compile(r"\$\{trialSpec\.(?P<meta>[^}]+)\}")
KUBERNETES = re.compile(r"\$(?P<escaped>\$\()|\$\((?P<variable>[A-Za-z_][A-Za-z0-9_]*)\)")
SHELL = re.compile(r"\$\{(?!envvar:)(?P<variable>[A-Za-z_][A-Za-z0-9_]*)\}")
TRIAL = "${envvar:SWEEP_TRIAL_ID}"

ACTION = re.compile(r"\{\{-?\s*(?P<action>[^}]*?)\s*-?\}\}")
BLOCK = re.compile(r"^\s*(?:\{\{-?\s*(?:with|range|end|else)[^}]*\}\}\s*)+$")
PAIR = re.compile(r"(?P<dashes>-*)\{\{-?\s*\.Name\s*-?\}\}=\{\{-?\s*\.Value\s*-?\}\}")


@dataclass(slots=True)
class CommandTranslator:
    """Translates a container's command to macros, and collects its losses."""

    names: Mapping[str, str]
    """Parameters of the sweep by the names of Katib's placeholders."""
    variables: Mapping[str, str]
    """Variables of the container, whose values may contain Katib's placeholders."""
    path: str
    losses: list[Loss] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)
    """The translated variables; as in Kubernetes, each may use those before it."""

    def command(self, elements: Sequence[str]) -> list[str]:
        """Return the command with macros for placeholders; `env` sets the variables before the program."""
        spread = _spread(elements, self.names)
        if spread is not None:
            elements = [*elements[: spread[0]], ARGS, *elements[spread[1] :]]
        for name, value in self.variables.items():
            self.settings[name] = self.text(value, f"env {name}")
        written = [
            text if text in {ARGS, NO_HYPHENS} else self.text(text, f"{self.path}[{place}]")
            for place, text in enumerate(elements)
        ]
        settings = [f"{name}={value}" for name, value in self.settings.items()]
        return ["${env}", *settings, *written] if settings else written

    def text(self, text: str, where: str) -> str:
        """Return an element of the command with macros for Katib's placeholders."""
        # Shell variables are replaced before macros, which have the same syntax, are inserted.
        text = SHELL.sub(lambda match: self._shell(match, where), text)
        text = META.sub(lambda match: self._meta(match, where), text)
        text = PLACEHOLDER.sub(lambda match: self._parameter(match, where), text)
        return KUBERNETES.sub(lambda match: self._kubernetes(match, where), text)

    def _parameter(self, match: re.Match[str], where: str) -> str:
        foreign = match["parameter"]
        if foreign in self.names:
            return f"${{envvar:{environment_name(self.names[foreign])}}}"
        self.losses.append(Loss(f"{where}: {match[0]}", "is not a parameter of the search; left out"))
        return ""

    def _meta(self, match: re.Match[str], where: str) -> str:
        if match["meta"] == "Name":
            self.losses.append(Loss(f"{where}: {match[0]}", f"replaced by the trial's id: {TRIAL}"))
            return TRIAL
        self.losses.append(Loss(f"{where}: {match[0]}", "has no counterpart here; left out"))
        return ""

    def _shell(self, match: re.Match[str], where: str) -> str:
        why = "replaced before the command starts, because `${` begins a macro here"
        self.losses.append(Loss(f"{where}: {match[0]}", why))
        return f"${{envvar:{match['variable']}}}"

    def _kubernetes(self, match: re.Match[str], where: str) -> str:
        if match["escaped"]:
            self.losses.append(
                Loss(f"{where}: $(", "is not allowed in a command: move shell code to a script")
            )
            return "$("
        name = match["variable"]
        return self.settings.get(name, f"${{envvar:{name}}}")


def _spread(command: Sequence[str], names: Mapping[str, str]) -> tuple[int, int] | None:
    """Return the range of elements that equals `${args}`: each parameter once, as --name=value."""
    wanted = {f"--{name}=${{trialParameters.{foreign}}}" for foreign, name in names.items()}
    places = [place for place, element in enumerate(command) if PLACEHOLDER.search(element)]
    if not wanted or {command[place] for place in places} != wanted or len(places) != len(wanted):
        return None
    first, last = places[0], places[-1] + 1
    return (first, last) if last - first == len(places) else None


def plain_manifest(text: str, foreign_names: Sequence[str], *, path: str) -> tuple[str, list[Loss]]:
    """Return a v1alpha3 Go template as plain YAML: its loop over the parameters becomes a macro."""
    losses: list[Loss] = []
    dashed = all(name.startswith("--") for name in foreign_names)

    def pair(match: re.Match[str]) -> str:
        if dashed or match["dashes"]:
            return ARGS
        if any(name.startswith("-") for name in foreign_names):
            losses.append(Loss(f"{path}: {match[0]}", f"written {ARGS}, which puts -- before every name"))
            return ARGS
        return NO_HYPHENS

    def action(match: re.Match[str]) -> str:
        if match["action"] in {".Trial", ".NameSpace"}:
            return "trial"
        losses.append(
            Loss(f"{path}: {match[0]}", "an action of the template that has no counterpart; left out")
        )
        return ""

    lines = [PAIR.sub(pair, line) for line in text.splitlines() if not BLOCK.match(line)]
    return "\n".join(ACTION.sub(action, line) for line in lines) + "\n", losses


CONTAINER = "trial"
NO_IMAGE = "registry.example/replace-me"


@dataclass(slots=True)
class MacroFiller:
    """Replaces macros, and collects a loss for each macro without a replacement."""

    run: RunConfig
    placeholders: Mapping[str, str]
    """Placeholders `${trialParameters.name}` by parameter."""
    constants: Mapping[str, Value]
    order: Sequence[str]
    """Names of the parameters in the order of the arguments."""
    losses: list[Loss] = field(default_factory=list)

    @property
    def single(self) -> dict[str, str]:
        """Return the replacements of the macros that yield a single text."""
        return {
            "env": "/usr/bin/env",
            "interpreter": self.run.interpreter,
            "seed": str(self.run.seed_base),
        }

    def texts(self) -> dict[str, str]:
        """Return every parameter's text, including constants."""
        texts = {
            **{name: argument_text(value) for name, value in self.constants.items()},
            **self.placeholders,
        }
        return {name: texts[name] for name in self.order if name in texts}

    def arguments(self, command: Sequence[str]) -> list[str]:
        """Return a command for Katib, with the macros replaced."""
        translated: list[str] = []
        for element in command:
            parts = parse_element(element)
            match parts:
                case (Macro(name),) if name in LIST_MACROS:
                    translated += self._spread(name)
                case _:
                    translated.append("".join(map(self._part, parts)))
        return translated

    def _spread(self, macro: str) -> list[str]:
        texts = self.texts()
        if macro == "args_no_hyphens":
            return [f"{name}={value}" for name, value in texts.items()]
        flags = {
            name: value
            for name, value in self.constants.items()
            if isinstance(value, bool) and macro == "args_no_boolean_flags"
        }
        if macro == "args_no_boolean_flags":
            self.losses.append(
                Loss("${args_no_boolean_flags}", "booleans with several values are passed as --name=True")
            )
        given = [f"--{name}={value}" for name, value in texts.items() if name not in flags]
        return given + [f"--{name}" for name, value in flags.items() if value]

    def _part(self, part: str | Macro) -> str:
        match part:
            case str():
                return part
            case Macro("env" | "interpreter" | "seed"):
                return self.single[part.name]
            case Macro("envvar", argument):
                named = {environment_name(name): value for name, value in self.texts().items()}
                return named.get(str(argument), f"$({argument})")
            case Macro("args_json"):
                return self._json()
            case _:
                self.losses.append(Loss(str(part), "Katib gives trials no file of values; left out"))
                return ""

    def _json(self) -> str:
        self.losses.append(
            Loss("${args_json}", "values that vary are written as text, because Katib's values are text")
        )
        values = {**{name: canonical(value) for name, value in self.constants.items()}, **self.placeholders}
        return json.dumps(values)


def write_trial_template(
    sweep: Sweep, references: Mapping[str, str], constants: Mapping[str, Value]
) -> tuple[dict[str, Any], list[Loss]]:
    """Return `trialTemplate` and its losses; `references` are the names of the parameters in `trialParameters`."""
    placeholders = {name: f"${{trialParameters.{alias}}}" for name, alias in references.items()}
    filling = MacroFiller(sweep.run, placeholders, constants, sweep.columns)
    arguments = filling.arguments(sweep.command)
    return {
        "primaryContainerName": CONTAINER,
        **CONDITIONS,
        "trialParameters": [
            {"name": alias, "description": f"{name} of the sweep", "reference": name}
            for name, alias in references.items()
        ],
        "trialSpec": _write_job(sweep.run, arguments, filling),
    }, [*filling.losses, *_run_losses(sweep.run)]


def _write_job(run: RunConfig, arguments: list[str], filling: MacroFiller) -> dict[str, Any]:
    amounts = {"cpu": run.resources.cpu, "memory": run.resources.memory}
    if run.resources.gpu:
        amounts[GPU_RESOURCE] = str(run.resources.gpu)
    container = {
        "name": CONTAINER,
        "image": run.image if _has_image(run) else NO_IMAGE,
        "command": arguments,
        "env": [{"name": environment_name(name), "value": value} for name, value in filling.texts().items()]
        + [{"name": "SWEEP_SEED", "value": str(run.seed_base)}],
        "resources": {"limits": amounts, "requests": dict(amounts)},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "spec": {
            "backoffLimit": run.retries,
            "activeDeadlineSeconds": run.timeout_seconds,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }


def _has_image(run: RunConfig) -> bool:
    return run.image is not None and run.image != LOCAL_IMAGE


def _run_losses(run: RunConfig) -> list[Loss]:
    losses = [
        Loss(
            f"run.code.path: {run.code_path}",
            "Katib does not mount code: the image must contain it",
        ),
        Loss("$SWEEP_TRIAL, $SWEEP_RESULT and the other files of a trial", "Katib does not have them"),
    ]
    if not _has_image(run):
        losses.append(Loss("run.image", f"the sweep has none; written as {NO_IMAGE}: set yours"))
    if run.data is not None:
        losses.append(Loss(f"run.data: {run.data}", "add the volume to the trialSpec"))
    if run.shape is not None:
        losses.append(Loss(f"run.shape: {run.shape}", "every trial is a separate Job in Katib"))
    return losses
