"""Kubernetes workloads of other tools, as the command and the run configuration of a trial; a command for them."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sweepledger.exchange.conversion import LossList
from sweepledger.exchange.fields import Fields, exact_number, scalar_text, show_value, spec_number
from sweepledger.exchange.spec_parts import CODE_DIR, PROGRAM
from sweepledger.reader.launcher_parts import spread
from sweepledger.structs.names import environment_name
from sweepledger.structs.node_pool import GPU_RESOURCE
from sweepledger.structs.program import LIST_MACROS, Macro, parse_element, spread_names
from sweepledger.structs.run_config import Shape
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import Value, canonical

ARGS = "${args}"
NO_HYPHENS = "${args_no_hyphens}"

PLACEHOLDER = re.compile(r"\$\{trialParameters\.(?P<parameter>[^}]+)\}")
META = re.compile(r"\$\{trialSpec\.(?P<meta>[^}]+)\}")
KUBERNETES = re.compile(r"\$(?P<escaped>\$\()|\$\((?P<variable>[A-Za-z_][A-Za-z0-9_]*)\)")
SHELL = re.compile(r"\$\{(?!envvar:)(?P<variable>[A-Za-z_][A-Za-z0-9_]*)\}")
TRIAL = "${envvar:SWEEP_TRIAL_ID}"
RESULT = "${envvar:SWEEP_RESULT}"


@dataclass(frozen=True, slots=True)
class Placeholders:
    """The parameters that a manifest names in Katib's form, and the file of its metrics."""

    names: Mapping[str, str]
    """Parameters of the sweep by the names in placeholders."""
    result_file: str | None = None
    """The file to which the program writes its metrics: replaced by `$SWEEP_RESULT`."""


@dataclass(slots=True)
class CommandTranslator:
    """Translates a container's command to macros, and collects its losses."""

    placeholders: Placeholders
    variables: Mapping[str, str]
    """Variables of the container, whose values may contain Katib's placeholders."""
    path: str
    losses: LossList
    passes_result_file: bool = False
    """Whether the program was given the file of its metrics, which is now `$SWEEP_RESULT`."""
    settings: dict[str, str] = field(default_factory=dict)
    """The translated variables; as in Kubernetes, each may use those before it."""

    def command(self, elements: Sequence[str], *, program: Sequence[str] = ()) -> list[str]:
        """Return the command with macros for placeholders; `env` sets the variables before the program.

        A program that the file does not name goes before the elements, and may contain macros.
        """
        spread = _spread(elements, self.placeholders)
        if spread is not None:
            elements = [*elements[: spread[0]], ARGS, *elements[spread[1] :]]
        for name, value in self.variables.items():
            self.settings[name] = self.text(value, f"env {name}")
        written = [
            element if element in {ARGS, NO_HYPHENS} else self.text(element, f"{self.path}[{place}]")
            for place, element in enumerate(elements)
        ]
        settings = [f"{name}={value}" for name, value in self.settings.items()]
        return [*(["${env}", *settings] if settings else []), *program, *written]

    def text(self, text: str, where: str) -> str:
        """Return an element of the command with macros for Katib's placeholders."""
        # Shell variables are replaced before macros, which have the same syntax, are inserted.
        text = SHELL.sub(lambda match: self._shell(match, where), text)
        text = META.sub(lambda match: self._meta(match, where), text)
        text = PLACEHOLDER.sub(lambda match: self._parameter(match, where), text)
        return self._result_file(KUBERNETES.sub(lambda match: self._kubernetes(match, where), text))

    def _result_file(self, text: str) -> str:
        """Return an argument that is, or ends in, the file of metrics with `$SWEEP_RESULT` instead."""
        file = self.placeholders.result_file
        if file is None or not (text == file or text.endswith(f"={file}")):
            return text
        self.passes_result_file = True
        return text.removesuffix(file) + RESULT

    def _parameter(self, match: re.Match[str], where: str) -> str:
        foreign = match["parameter"]
        if foreign in self.placeholders.names:
            return f"${{envvar:{environment_name(self.placeholders.names[foreign])}}}"
        self.losses.add(f"{where}: {match[0]}", "is not a parameter of the search; left out")
        return ""

    def _meta(self, match: re.Match[str], where: str) -> str:
        if match["meta"] == "Name":
            self.losses.add(f"{where}: {match[0]}", f"replaced by the trial's id: {TRIAL}")
            return TRIAL
        self.losses.add(f"{where}: {match[0]}", "has no counterpart here; left out")
        return ""

    def _shell(self, match: re.Match[str], where: str) -> str:
        why = "replaced before the command starts, because `${` begins a macro here"
        self.losses.add(f"{where}: {match[0]}", why)
        return f"${{envvar:{match['variable']}}}"

    def _kubernetes(self, match: re.Match[str], where: str) -> str:
        if match["escaped"]:
            self.losses.add(f"{where}: $(", "is not allowed in a command: move shell code to a script")
            return "$("
        name = match["variable"]
        return self.settings.get(name, f"${{envvar:{name}}}")


def _spread(command: Sequence[str], placeholders: Placeholders) -> tuple[int, int] | None:
    """Return the range of elements that equals `${args}`: each parameter once, as --name=value."""
    places = [place for place, element in enumerate(command) if PLACEHOLDER.search(element)]
    spread = [_whole_option(command[place], placeholders) for place in places]
    if not places or None in spread or sorted(map(str, spread)) != sorted(placeholders.names.values()):
        return None
    first, last = places[0], places[-1] + 1
    return (first, last) if last - first == len(places) else None


def _whole_option(element: str, placeholders: Placeholders) -> str | None:
    """Return the parameter of an element that is `--name=` and its placeholder."""
    option, _, value = element.partition("=")
    match = PLACEHOLDER.fullmatch(value)
    name = placeholders.names.get(match["parameter"]) if match else None
    return name if name is not None and option == f"--{name}" else None


BARE = re.compile(r"[0-9]+(?:\.[0-9]+)?", re.ASCII)
ASSUMED_PROGRAM = ("${interpreter}", PROGRAM)
"""For a container whose program is the entry point of its image."""


class ImportedTrial:
    """The parts of a spec that the template defines."""

    def __init__(self) -> None:
        self.command: list[str] | None = None
        self.run: dict[str, Any] = {"code": {"path": CODE_DIR}}
        self.losses = LossList()
        self.passes_result_file = False

    def as_spec(self) -> dict[str, Any]:
        """Return the keys of a spec for the trial."""
        command = {"program": PROGRAM} if self.command is None else {"command": self.command}
        return {**command, "run": self.run}


def read_pod(pod: Fields, primary: str | None, placeholders: Placeholders, trial: ImportedTrial) -> None:
    """Read the container of that name, else the first, unless the trial has its command already."""
    spec = pod.inner("spec")
    containers = spec.each("containers")
    if spec.data.get("restartPolicy") == "Never":
        spec.taken.add("restartPolicy")
    named = [container for container in containers if container.data.get("name") == primary]
    chosen = (named or containers)[:1] if trial.command is None else []
    for container in chosen:
        read_container(container, placeholders, trial)
    for container in containers:
        if container not in chosen:
            trial.losses += container.lost("name", "only one container runs here")


def read_container(
    container: Fields, placeholders: Placeholders, trial: ImportedTrial, *, resources: str = "resources"
) -> None:
    """Read command, variables, image and resources."""
    container.text("name")
    # The launcher sets the others.
    variables: dict[str, str] = {}
    for entry in container.each("env"):
        name, value = entry.text("name") or "", entry.take("value")
        if value is not None and not name.startswith("SWEEP_"):
            variables[name] = scalar_text(value)
        else:
            trial.losses += entry.lost("valueFrom", f"the value of {name} is only in the cluster")
    command = [scalar_text(part) for part in container.items("command")]
    arguments = [scalar_text(part) for part in container.items("args")]
    if command or arguments:
        place = container.at("command" if command else "args")
        translator = CommandTranslator(placeholders, variables, place, trial.losses)
        trial.command = translator.command([*command, *arguments], program=() if command else ASSUMED_PROGRAM)
        trial.passes_result_file |= translator.passes_result_file
    if arguments and not command:
        trial.losses.add(
            container.at("command"),
            f"the program is in the image, not in the file; written as {PROGRAM}: write your command",
        )
    image = container.text("image")
    if image is not None and "@sha256:" in image:
        trial.run["image"] = image
    elif image is not None:
        why = "a tag can be moved; set run.image, or an image in the settings, with a digest"
        trial.losses.add(f"{container.at('image')}: {image}", why)
    _resources(container.inner(resources), trial)


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
    trial.losses += requests.rest("requests are equal to limits here")


def _quantity(value: object, key: str) -> object:
    """Return amounts without a unit as numbers, and those with a unit unchanged."""
    text = scalar_text(value)
    return spec_number(exact_number(text)) if key != "memory" and BARE.fullmatch(text) else text


MOST_RETRIES = 10
ALL_ALIKE = "all pods of a trial have one command, one image and the same resources here"


@dataclass(frozen=True, slots=True)
class ReplicaKind:
    """A kind with a mapping of replica types."""

    shape: Shape
    replicas: str
    """The key of the mapping."""
    first: Sequence[str]
    """Replica types whose command is that of the trial, in this order."""
    workers: Sequence[str]
    """Replica types that count as nodes."""
    processes: str = ""
    """The key for the number of processes per pod."""


REPLICA_KINDS: Mapping[str, ReplicaKind] = {
    "PyTorchJob": ReplicaKind(
        Shape.PYTORCH_JOB, "pytorchReplicaSpecs", ["Master", "Worker"], ["Master", "Worker"], "nprocPerNode"
    ),
    "TFJob": ReplicaKind(
        Shape.TF_JOB, "tfReplicaSpecs", ["Chief", "Master", "Worker"], ["Chief", "Master", "Worker"]
    ),
    "MPIJob": ReplicaKind(
        Shape.MPI_JOB, "mpiReplicaSpecs", ["Launcher", "Worker"], ["Worker"], "slotsPerWorker"
    ),
}


def read_manifest(
    manifest: Fields, primary: str | None, placeholders: Placeholders, trial: ImportedTrial
) -> None:
    """Read a trial's manifest. Raises ForeignError for malformed ones."""
    kind = manifest.text("kind")
    manifest.text("apiVersion")
    # Here the names of a trial's objects are derived from its values.
    manifest.inner("metadata").taken |= {"name", "namespace", "creationTimestamp"}
    reader = _Reader(primary, placeholders, trial)
    match kind:
        case "Job":
            reader.job(manifest.inner("spec"))
        case "TrainJob":
            reader.train_job(manifest.inner("spec"))
        case "JobSet":
            reader.job_set(manifest.inner("spec"))
        case str() if kind in REPLICA_KINDS:
            reader.replicas(manifest.inner("spec"), kind)
        case _:
            why = "sweeps have no shape for this kind; a trial is one process of its first container"
            trial.losses.add(f"{manifest.path}.kind: {kind}", why)
            reader.unknown(manifest)


@dataclass(frozen=True, slots=True)
class _Reader:
    primary: str | None
    """Name of the container whose command is that of the trial."""
    placeholders: Placeholders
    trial: ImportedTrial

    def pod(self, pod: Fields) -> None:
        read_pod(pod, self.primary, self.placeholders, self.trial)

    def job(self, job: Fields) -> None:
        retries, deadline = job.whole("backoffLimit"), job.whole("activeDeadlineSeconds")
        if retries is not None:
            self.trial.run["retries"] = min(retries, MOST_RETRIES)
            if retries > MOST_RETRIES:
                self.trial.losses.add(
                    f"{job.at('backoffLimit')}: {retries}", f"{MOST_RETRIES} is the most here"
                )
        if deadline is not None:
            self.trial.run["timeout"] = f"{deadline}s"
        template = job.inner("template")
        self.pod(template)

    def shape(self, shape: Shape, nodes: int, processes: int = 1) -> None:
        """Set the shape, and how many pods and processes a trial has; one process is a Job of any shape."""
        if nodes <= 1 and processes <= 1:
            return
        self.trial.run["shape"] = str(shape)
        self.trial.run["nodes"] = max(1, nodes)
        if processes > 1:
            self.trial.run["processes"] = processes

    def train_job(self, job: Fields) -> None:
        trainer, runtime = job.inner("trainer"), job.inner("runtimeRef")
        nodes, processes = trainer.whole("numNodes"), _count(trainer, "numProcPerNode")
        read_container(trainer, self.placeholders, self.trial, resources="resourcesPerNode")
        self.shape(Shape.TRAIN_JOB, nodes or 1, processes or 1)
        if runtime.data:
            why = "a batch has its own TrainingRuntime here; what this one adds is not in the file"
            self.trial.losses.add(f"{runtime.path}: {show_value(runtime.data.get('name'))}", why)

    def job_set(self, jobs: Fields) -> None:
        entries = jobs.each("replicatedJobs")
        for place, entry in enumerate(entries):
            job = entry.inner("template").inner("spec")
            count = (entry.whole("replicas") or 1) * (job.whole("parallelism") or 1)
            job.taken |= {"completions", "completionMode"}
            if place:
                why = "all pods of a trial run one command here"
                self.trial.losses.add(
                    f"{entry.path}: {show_value(entry.data.get('name'))}, {count} pods", why
                )
                continue
            self.job(job)
            self.shape(Shape.JOB_SET, count)
            entry.text("name")

    def replicas(self, spec: Fields, kind_name: str) -> None:
        kind = REPLICA_KINDS[kind_name]
        types = spec.inner(kind.replicas)
        replicas = {name: types.inner(name) for name in types.data}
        order = [name for name in kind.first if name in replicas]
        if order:
            self.pod(replicas[order[0]].inner("template"))
        counts = {name: _count(fields, "replicas") or 1 for name, fields in replicas.items()}
        processes = (_count(spec, kind.processes) or 1) if kind.processes else 1
        nodes = sum(counts[name] for name in kind.workers if name in replicas)
        if kind.shape is Shape.MPI_JOB:
            nodes += spec.take("runLauncherAsWorker") is True
            self.trial.losses.add(types.at("Launcher"), "the pod of the launcher is one of the nodes here")
        self.shape(kind.shape, nodes, processes)
        for name, fields in replicas.items():
            self._replica(fields, replicas[order[0]] if order else None)
            if name not in {*kind.workers, *kind.first[:1]}:
                self.trial.losses.add(
                    f"{fields.path}: {counts[name]} pods", "this shape has no such role; left out"
                )

    def _replica(self, replica: Fields, first: Fields | None) -> None:
        """List what a replica type has besides its number and what the first has."""
        policy = replica.text("restartPolicy")
        if policy not in {None, "Never"}:
            why = "a failed trial is started again only by run.retries or `sweep retry`"
            self.trial.losses.add(f"{replica.at('restartPolicy')}: {policy}", why)
        template = replica.take("template")
        if first is not None and template is not None and template != first.data.get("template"):
            self.trial.losses.add(replica.at("template"), f"differs from {first.at('template')}; {ALL_ALIKE}")

    def unknown(self, manifest: Fields) -> None:
        for data, path in _pods(manifest.data, manifest.path):
            self.pod(manifest.child(data, path))
        manifest.taken |= manifest.data.keys()


def _count(fields: Fields, key: str) -> int | None:
    """Return a number of pods or processes, also if it is text; None if it is absent or not a number."""
    text = fields.text(key)
    if text is not None and text.isascii() and text.isdecimal():
        return int(text)
    fields.taken.discard(key)
    return None


def _pods(data: Any, path: str) -> Iterator[tuple[Any, str]]:
    if isinstance(data, dict):
        if isinstance(data.get("spec"), dict) and "containers" in data["spec"]:
            yield data, path
            return
        for key, inner in data.items():
            yield from _pods(inner, f"{path}.{key}")


def argument_text(value: Value) -> str:
    """Return a value as text, as `${args}` writes it."""
    return str(canonical(value))


SWITCH_MACROS = frozenset({"args_no_boolean_flags", "args_switches"})
"""Macros that write true and false as options without a value."""


@dataclass(slots=True)
class MacroFiller:
    """Replaces macros, and collects a loss for each macro without a replacement."""

    tool: str
    sweep: Sweep
    placeholders: Mapping[str, str]
    """What the tool replaces by a parameter's value, such as `${trialParameters.name}`."""
    constants: Mapping[str, Value]
    losses: LossList

    def texts(self) -> dict[str, str]:
        """Return every parameter's text, including constants."""
        texts = {
            **{name: argument_text(value) for name, value in self.constants.items()},
            **self.placeholders,
        }
        return {name: texts[name] for name in self.sweep.columns if name in texts}

    def arguments(self, command: Sequence[str]) -> list[str]:
        """Return a command with the macros replaced."""
        translated: list[str] = []
        for element in command:
            parts = parse_element(element)
            match parts:
                case (Macro(name, names),) if name in LIST_MACROS:
                    translated += self._spread(name, names)
                case _:
                    translated.append("".join(map(self._part, parts)))
        return translated

    def _spread(self, macro: str, names: str | None) -> list[str]:
        given: dict[str, Any] = {name: canonical(value) for name, value in self.constants.items()}
        given |= self.placeholders
        if macro in SWITCH_MACROS:
            self.losses.add(f"${{{macro}}}", "booleans with several values are passed as --name=True")
        values = {name: given[name] for name in self.sweep.columns if name in given}
        return spread(macro, names, values, spread_names(self.sweep.command))

    def _part(self, part: str | Macro) -> str:
        match part:
            case str():
                return part
            case Macro("env" | "interpreter" | "seed"):
                run = self.sweep.run
                texts = {"env": "/usr/bin/env", "interpreter": run.interpreter, "seed": str(run.seed_base)}
                return texts[part.name]
            case Macro("envvar", argument):
                named = {environment_name(name): value for name, value in self.texts().items()}
                return named.get(str(argument), f"$({argument})")
            case Macro("args_json"):
                return self._json()
            case _:
                self.losses.add(str(part), f"{self.tool} gives trials no file of values; left out")
                return ""

    def _json(self) -> str:
        self.losses.add("${args_json}", f"values that vary are written as text, as {self.tool} has them")
        values = {**{name: canonical(value) for name, value in self.constants.items()}, **self.placeholders}
        return json.dumps(values)
