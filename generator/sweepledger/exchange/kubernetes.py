"""Kubernetes workloads of other tools, as the command and the run configuration of a trial; a command for them."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sweepledger.exchange.conversion import LossList
from sweepledger.exchange.fields import Fields, exact_number, scalar_text, show_value
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

PLACEHOLDER = "${trialParameters."
REFERENCE = re.compile(
    r"\$\{trialParameters\.(?P<parameter>[^}]+)\}|\$\{trialSpec\.(?P<meta>[^}]+)\}"
    r"|\$\{(?!envvar:)(?P<shell>[A-Za-z_][A-Za-z0-9_]*)\}"
    r"|\$(?P<escaped>\$\()|\$\((?P<kubernetes>[A-Za-z_][A-Za-z0-9_]*)\)"
)
"""What a command refers to: by Katib, the shell and Kubernetes."""
TRIAL = "${envvar:SWEEP_TRIAL_ID}"
RESULT = "${envvar:SWEEP_RESULT}"


BARE = re.compile(r"[0-9]+(?:\.[0-9]+)?", re.ASCII)
ASSUMED_PROGRAM = ("${interpreter}", PROGRAM)
"""For a container whose program is the entry point of its image."""
MOST_RETRIES = 10
ALL_ALIKE = "all pods of a trial have one command, one image and the same resources here"

REPLICA_KINDS: Mapping[str, tuple[Shape, str, Sequence[str], Sequence[str], str]] = {
    "PyTorchJob": (
        Shape.PYTORCH_JOB, "pytorchReplicaSpecs", ["Master", "Worker"], ["Master", "Worker"], "nprocPerNode"
    ),
    "TFJob": (Shape.TF_JOB, "tfReplicaSpecs", ["Chief", "Master", "Worker"], ["Chief", "Master", "Worker"], ""),
    "MPIJob": (Shape.MPI_JOB, "mpiReplicaSpecs", ["Launcher", "Worker"], ["Worker"], "slotsPerWorker"),
}  # fmt: skip
"""Kinds with a mapping of replica types: the shape; the key of the mapping; the types whose command is that of the
trial, in this order; the types that count as nodes; the key for the number of processes per pod.
"""


@dataclass(slots=True)
class ImportedTrial:
    """The parts of a spec that a manifest defines, whose command has macros instead of Katib's placeholders."""

    names: Mapping[str, str]
    """Parameters of the sweep by the names in placeholders."""
    result_file: str | None = None
    """The file to which the program writes its metrics: replaced by `$SWEEP_RESULT`."""
    primary: str | None = None
    """Name of the container whose command is that of the trial."""
    command: list[str] | None = None
    run: dict[str, Any] = field(default_factory=lambda: {"code": {"path": CODE_DIR}})
    losses: LossList = field(default_factory=LossList)
    passes_result_file: bool = False
    """Whether the program was given the file of its metrics, which is now `$SWEEP_RESULT`."""
    settings: dict[str, str] = field(default_factory=dict)
    """The translated variables; as in Kubernetes, each may use those before it."""

    def read_manifest(self, manifest: Fields) -> None:
        """Read a trial's manifest. Raises ForeignError for malformed ones."""
        kind = manifest.text("kind")
        manifest.text("apiVersion")
        # Here the names of a trial's objects are derived from its values.
        manifest.inner("metadata").taken |= {"name", "namespace", "creationTimestamp"}
        match kind:
            case "Job":
                self._job(manifest.inner("spec"))
            case "TrainJob":
                self._train_job(manifest.inner("spec"))
            case "JobSet":
                self._job_set(manifest.inner("spec"))
            case str() if kind in REPLICA_KINDS:
                self._replicas(manifest.inner("spec"), kind)
            case _:
                why = "sweeps have no shape for this kind; a trial is one process of its first container"
                self.losses.add(f"{manifest.path}.kind: {kind}", why)
                for data, path in _pods(manifest.data, manifest.path):
                    self._pod(manifest.child(data, path))
                manifest.taken |= manifest.data.keys()

    def _pod(self, pod: Fields) -> None:
        """Read the primary container, else the first, unless the trial has its command already."""
        spec = pod.inner("spec")
        containers = spec.each("containers")
        if spec.data.get("restartPolicy") == "Never":
            spec.taken.add("restartPolicy")
        named = [container for container in containers if container.data.get("name") == self.primary]
        chosen = (named or containers)[:1] if self.command is None else []
        for container in chosen:
            self._container(container, container.inner("resources"))
        for container in containers:
            if container not in chosen:
                self.losses += container.lost("name", "only one container runs here")

    def _container(self, container: Fields, resources: Fields) -> None:
        container.text("name")
        variables: dict[str, str] = {}
        for entry in container.each("env"):
            name, value = entry.text("name") or "", entry.take("value")
            if value is not None and not name.startswith("SWEEP_"):  # the launcher sets those
                variables[name] = scalar_text(value)
            else:
                self.losses += entry.lost("valueFrom", f"the value of {name} is only in the cluster")
        command = [scalar_text(part) for part in container.items("command")]
        arguments = [scalar_text(part) for part in container.items("args")]
        if command or arguments:
            self.settings = {}
            for name, value in variables.items():
                self.settings[name] = self._text(value, f"env {name}")
            settings = [f"{name}={value}" for name, value in self.settings.items()]
            self.command = [
                *(["${env}", *settings] if settings else []),
                *(() if command else ASSUMED_PROGRAM),
                *self._elements([*command, *arguments], container.at("command" if command else "args")),
            ]
        if arguments and not command:
            why = f"the program is in the image, not in the file; written as {PROGRAM}: write your command"
            self.losses.add(container.at("command"), why)
        image = container.text("image")
        if image is not None and "@sha256:" in image:
            self.run["image"] = image
        elif image is not None:
            why = "a tag can be moved; set run.image, or an image in the settings, with a digest"
            self.losses.add(f"{container.at('image')}: {image}", why)
        self._resources(resources.inner("limits"), resources.inner("requests"))

    def _resources(self, limits: Fields, requests: Fields) -> None:
        amounts = {
            name: value
            for name, key in (("cpu", "cpu"), ("memory", "memory"), ("gpu", GPU_RESOURCE))
            if (value := limits.take(key)) is not None or (value := requests.data.get(key)) is not None
        }
        for key in list(requests.data):
            if requests.data[key] == limits.data.get(key) or limits.data.get(key) is None:
                requests.taken |= {key} & {"cpu", "memory", GPU_RESOURCE}
        if amounts:
            # Amounts without a unit are numbers.
            self.run["resources"] = {
                key: exact_number(text) if key != "memory" and BARE.fullmatch(text) else text
                for key, text in ((key, scalar_text(value)) for key, value in amounts.items())
            }
        self.losses += requests.rest("requests are equal to limits here")

    def _elements(self, elements: Sequence[str], path: str) -> list[str]:
        """Return the elements of a command with macros: `${args}` for each parameter once, as --name=value."""
        places = [place for place, element in enumerate(elements) if PLACEHOLDER in element]
        if places and places[-1] + 1 - places[0] == len(places):
            options = {
                f"--{name}=${{trialParameters.{foreign}}}": name for foreign, name in self.names.items()
            }
            spread = [options.get(elements[place], "") for place in places]
            if sorted(spread) == sorted(self.names.values()):
                elements = [*elements[: places[0]], ARGS, *elements[places[-1] + 1 :]]
        return [
            element if element in {ARGS, NO_HYPHENS} else self._text(element, f"{path}[{place}]")
            for place, element in enumerate(elements)
        ]

    def _text(self, text: str, where: str) -> str:
        text, file = REFERENCE.sub(lambda match: self._referenced(match, where), text), self.result_file
        if file is None or not (text == file or text.endswith(f"={file}")):
            return text
        self.passes_result_file = True
        return text.removesuffix(file) + RESULT

    def _referenced(self, reference: re.Match[str], where: str) -> str:
        kind = str(reference.lastgroup)
        name, part, text = reference[kind], f"{where}: {reference[0]}", ""
        if kind == "kubernetes":
            return self.settings.get(name, f"${{envvar:{name}}}")
        if kind == "parameter" and name in self.names:
            return f"${{envvar:{environment_name(self.names[name])}}}"
        match kind:
            case "parameter":
                why = "is not a parameter of the search; left out"
            case "meta" if name == "Name":
                text, why = TRIAL, f"replaced by the trial's id: {TRIAL}"
            case "meta":
                why = "has no counterpart here; left out"
            case "shell":
                text = f"${{envvar:{name}}}"
                why = "replaced before the command starts, because `${` begins a macro here"
            case _:
                part, text = f"{where}: $(", "$("
                why = "is not allowed in a command: move shell code to a script"
        self.losses.add(part, why)
        return text

    def _job(self, job: Fields) -> None:
        retries, deadline = job.whole("backoffLimit"), job.whole("activeDeadlineSeconds")
        if retries is not None:
            self.run["retries"] = min(retries, MOST_RETRIES)
            if retries > MOST_RETRIES:
                self.losses.add(f"{job.at('backoffLimit')}: {retries}", f"{MOST_RETRIES} is the most here")
        if deadline is not None:
            self.run["timeout"] = f"{deadline}s"
        self._pod(job.inner("template"))

    def _shape(self, shape: Shape, nodes: int, processes: int = 1) -> None:
        """Set the shape, and how many pods and processes a trial has; one process is a Job of any shape."""
        if nodes <= 1 and processes <= 1:
            return
        self.run |= {"shape": str(shape), "nodes": max(1, nodes)}
        if processes > 1:
            self.run["processes"] = processes

    def _train_job(self, job: Fields) -> None:
        trainer, runtime = job.inner("trainer"), job.inner("runtimeRef")
        nodes, processes = trainer.whole("numNodes"), trainer.count("numProcPerNode")
        self._container(trainer, trainer.inner("resourcesPerNode"))
        self._shape(Shape.TRAIN_JOB, nodes or 1, processes or 1)
        if runtime.data:
            why = "a batch has its own TrainingRuntime here; what this one adds is not in the file"
            self.losses.add(f"{runtime.path}: {show_value(runtime.data.get('name'))}", why)

    def _job_set(self, jobs: Fields) -> None:
        for place, entry in enumerate(jobs.each("replicatedJobs")):
            job = entry.inner("template").inner("spec")
            count = (entry.whole("replicas") or 1) * (job.whole("parallelism") or 1)
            job.taken |= {"completions", "completionMode"}
            if place:
                why = "all pods of a trial run one command here"
                self.losses.add(f"{entry.path}: {show_value(entry.data.get('name'))}, {count} pods", why)
                continue
            self._job(job)
            self._shape(Shape.JOB_SET, count)
            entry.text("name")

    def _replicas(self, spec: Fields, kind: str) -> None:
        shape, key, firsts, workers, processes_key = REPLICA_KINDS[kind]
        types = spec.inner(key)
        replicas = {name: types.inner(name) for name in types.data}
        first = next((replicas[name] for name in firsts if name in replicas), None)
        if first is not None:
            self._pod(first.inner("template"))
        counts = {name: fields.count("replicas") or 1 for name, fields in replicas.items()}
        processes = (spec.count(processes_key) or 1) if processes_key else 1
        nodes = sum(counts[name] for name in workers if name in replicas)
        if shape is Shape.MPI_JOB:
            nodes += spec.take("runLauncherAsWorker") is True
            self.losses.add(types.at("Launcher"), "the pod of the launcher is one of the nodes here")
        self._shape(shape, nodes, processes)
        for name, replica in replicas.items():
            policy, template = replica.text("restartPolicy"), replica.take("template")
            if policy not in {None, "Never"}:
                why = "a failed trial is started again only by run.retries or `sweep retry`"
                self.losses.add(f"{replica.at('restartPolicy')}: {policy}", why)
            if first is not None and template is not None and template != first.data.get("template"):
                why = f"differs from {first.at('template')}; {ALL_ALIKE}"
                self.losses.add(replica.at("template"), why)
            if name not in {*workers, *firsts[:1]}:
                self.losses.add(
                    f"{replica.path}: {counts[name]} pods", "this shape has no such role; left out"
                )


def _pods(data: Any, path: str) -> Iterator[tuple[Any, str]]:
    if isinstance(data, dict):
        if isinstance(data.get("spec"), dict) and "containers" in data["spec"]:
            yield data, path
            return
        for key, inner in data.items():
            yield from _pods(inner, f"{path}.{key}")


SWITCH_MACROS = frozenset({"args_no_boolean_flags", "args_switches"})
"""Macros that write true and false as options without a value."""


def trial_values(
    sweep: Sweep, constants: Mapping[str, Value], placeholders: Mapping[str, str]
) -> dict[str, Any]:
    """Return the value of every constant, and the tool's placeholder for every parameter that varies."""
    values = {name: canonical(value) for name, value in constants.items()} | dict(placeholders)
    return {name: values[name] for name in sweep.columns if name in values}


def variables(values: Mapping[str, Any]) -> dict[str, str]:
    """Return values as environment variables of the trial."""
    return {environment_name(name): str(value) for name, value in values.items()}


def filled_command(
    command: Sequence[str], values: Mapping[str, Any], sweep: Sweep, tool: str, losses: LossList
) -> list[str]:
    """Return a command with the macros replaced, and add a loss for each macro without a replacement."""
    environment = variables(values)

    def fill(part: str | Macro) -> str:
        match part:
            case str():
                return part
            case Macro("env" | "interpreter" | "seed"):
                run = sweep.run
                texts = {"env": "/usr/bin/env", "interpreter": run.interpreter, "seed": str(run.seed_base)}
                return texts[part.name]
            case Macro("envvar", argument):
                return environment.get(str(argument), f"$({argument})")
            case Macro("args_json"):
                losses.add("${args_json}", f"values that vary are written as text, as {tool} has them")
                return json.dumps(values)
            case _:
                losses.add(str(part), f"{tool} gives trials no file of values; left out")
                return ""

    filled: list[str] = []
    for element in command:
        match parse_element(element):
            case (Macro(name, names),) if name in LIST_MACROS:
                if name in SWITCH_MACROS:
                    losses.add(f"${{{name}}}", "booleans with several values are passed as --name=True")
                filled += spread(name, names, values, spread_names(sweep.command))
            case parts:
                filled.append("".join(map(fill, parts)))
    return filled
