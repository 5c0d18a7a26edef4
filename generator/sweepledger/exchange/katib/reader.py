"""A Katib Experiment, v1alpha3 or v1beta1, as a spec: every key is either used or listed as a loss.

This includes the algorithm and early stopping.
"""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from sweepledger.exchange.conversion import Imported, Loss, LossList
from sweepledger.exchange.fields import Fields, show_value
from sweepledger.exchange.katib.parameters import domain_keys
from sweepledger.exchange.kubernetes import ARGS, NO_HYPHENS, ImportedTrial
from sweepledger.exchange.spec_parts import (
    CODE_DIR,
    PROGRAM,
    ForeignSearch,
    metric_name,
    parameter_names,
    size_keys,
)
from sweepledger.formats import foreign_yaml
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.reader.launcher_parts import LONGEST_MATCH
from sweepledger.reader.metric_lines import pattern_error
from sweepledger.structs.metric import Reduce
from sweepledger.structs.names import environment_name, suggest_sweep_name

DEFAULT_FILTER = r"([\w|-]+)\s*=\s*([+-]?\d*(\.\d+)?([Ee][+-]?\d+)?)"
"""Katib's filter of lines `name=value`, which the format `text` finds, too."""

PRINT = "print lines `name=value`"
OTHER_COLLECTORS = {
    "TensorFlowEvent": (
        "the program must write its event files below its working directory: then write `source: result`, "
        f"`format: tensorboard`, and their folder as `path`; or {PRINT}"
    ),
    "PrometheusMetric": f"a trial serves no metrics here; {PRINT}",
    "Custom": f"a collector of your own does not run here; {PRINT}",
    "Push": f"the program reports to Katib's database; {PRINT}",
    "None": f"Katib reads no metrics; {PRINT}",
}


GROUP_NAMES = ("(?P<name>", "(?P<value>")
"""Katib reads the name and the value in the first two groups of a filter."""
ONLY_GO = re.compile(r"\[\[|\[:|&&|--|\|\||~~|\{,|[*+?}]\+|\(\?(?!:)")
"""What Go's regular expressions read in another way than Python's, or not at all."""
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?:|.", re.DOTALL)
"""An escape, a set of characters, the start of a group, or another character."""


def pattern_of_filter(text: str) -> str | None:
    """Return a pattern equivalent to a filter of Katib; None if there is none."""
    if len(text) > LONGEST_MATCH or ONLY_GO.search(text):
        return None
    names = iter(GROUP_NAMES)
    parts = [next(names, "(?:") if part == "(" else part for part in _TOKEN.findall(text)]
    pattern = "".join(parts)
    has_both = next(names, None) is None
    return pattern if has_both and not pattern_error(pattern) else None


def read_collector(
    collector: Fields, losses: LossList, *, is_renamed: bool
) -> tuple[dict[str, Any], str | None]:
    """Return the keys for how the program reports its metrics, and the file that it writes; None: standard output.

    `is_renamed`: the metric has another name here, which a filter would not find.
    """
    chosen, source = collector.inner("collector"), collector.inner("source")
    kind = chosen.text("kind") or "StdOut"
    filters = [str(item) for item in source.inner("filter").items("metricsFormat")]
    if set(filters) == {DEFAULT_FILTER}:
        filters = []
    is_read = not is_renamed and kind in {"StdOut", "File"}
    patterns = [found for text in filters if is_read and (found := pattern_of_filter(text)) is not None]
    can_read = len(patterns) == len(filters)
    keys, file = _from_file(source, losses) if kind == "File" and can_read else ({}, None)
    if file is None:
        keys = {"source": "stdout"}
        if kind == "File":
            losses.add(f"{source.at('fileSystemPath')}", f"{PRINT} instead of writing this file")
            source.inner("fileSystemPath").taken |= {"path", "kind"}
    if not can_read:
        why = f"has no equal pattern here; {PRINT}, or write `format: regex` and `patterns`"
        losses.add(f"{source.at('filter.metricsFormat')}: {show_value(filters)}", why)
    elif patterns and keys.get("format") != "jsonl":
        keys |= {"format": "regex", "patterns": patterns}
    if kind in OTHER_COLLECTORS:
        losses.add(f"{chosen.at('kind')}: {kind}", OTHER_COLLECTORS[kind])
    elif kind not in {"StdOut", "File"}:
        losses.add(f"{chosen.at('kind')}: {kind}", f"is not a collector of Katib; {PRINT}")
    return keys, file


def _from_file(source: Fields, losses: LossList) -> tuple[dict[str, Any], str | None]:
    """Return the keys and the path of a file with lines of text or JSON; None if the path is not a file."""
    place = source.inner("fileSystemPath")
    path, kind, form = place.text("path"), place.text("kind"), place.text("format") or "TEXT"
    if path is None or kind not in {None, "File"} or form not in {"TEXT", "JSON"}:
        return {}, None
    if form == "JSON":
        why = "numbers must be JSON numbers here; Katib also reads them in quotes, as hypertune writes them"
        losses.add(f"{place.at('format')}: JSON", why)
    return {"source": "result", "format": "jsonl" if form == "JSON" else "text"}, path


METHOD_OF_ALGORITHM = {
    "grid": "grid",
    "random": "random",
    "sobol": "sobol",
    "tpe": "tpe",
    "multivariate-tpe": "tpe",
    "bayesianoptimization": "bayes",
    "cmaes": "cma-es",
    "hyperband": "hyperband",
    "pbt": "pbt",
}
ARCHITECTURES = frozenset({"enas", "darts"})
USUAL_ROUND = 3
"""Katib's default parallelTrialCount."""
FEWEST_NUMBERS = 2
USUAL_POPULATION = 40
USUAL_ETA = 3

STOPPED_WHEN = "trials are stopped by medians of earlier batches; Katib compares running trials"


VERSIONS = ("kubeflow.org/v1alpha3", "kubeflow.org/v1beta1")
DEFAULT_STRATEGIES = {"maximize": "max", "minimize": "min"}
"""Katib's default strategies for the values that a trial prints."""
REDUCE_OF_STRATEGY = {"latest": Reduce.LAST, "max": Reduce.MAX, "min": Reduce.MIN}
"""Katib's strategies as reductions."""
OTHER_METRIC = "of metrics other than the objective, the last value counts here"
EVERY_METRIC = f"every metric that a trial reports is recorded without being listed; {OTHER_METRIC}"


def read(content: bytes, *, name: str) -> Imported:
    """Return a spec for an Experiment. Raises ForeignError."""
    root = Fields.of(foreign_yaml.load(content, version="go"), "")
    version, kind = root.text("apiVersion"), root.text("kind")
    if version not in VERSIONS or kind != "Experiment":
        raise ForeignError(
            f"must be an Experiment of {' or '.join(VERSIONS)}, got {kind!r} of {version!r}",
            hint="`kubectl get experiment NAME -o yaml` shows one",
        )
    return _Experiment(root, name).imported()


class _Experiment:
    """An Experiment; every key that is not read is a loss."""

    def __init__(self, root: Fields, name: str) -> None:
        self.root, self.fields, self.losses = root, root.inner("spec"), LossList()
        metadata = root.inner("metadata")
        foreign = metadata.text("name")
        self.name = suggest_sweep_name(foreign or "") or name  # its own if a sweep can have it
        if foreign not in {None, self.name}:
            self.losses.add(f"metadata.name: {foreign}", f"is named {self.name} here")
        self.losses += metadata.rest("belongs to the cluster")
        self.losses += root.lost("status", "is the state in a cluster, not part of the experiment")
        algorithm = self.fields.inner("algorithm")
        self.algorithm = algorithm.text("algorithmName") or ""
        self.place = f"{algorithm.at('algorithmName')}: {self.algorithm}"
        if self.algorithm in ARCHITECTURES:
            raise ForeignError(
                f"{self.place} searches neural architectures, not hyperparameters",
                hint="a sweep varies values; let the program build the network from them",
            )
        self.settings = _settings(algorithm)
        self.method = METHOD_OF_ALGORITHM.get(self.algorithm, "random")
        self.seed = None if self.method == "grid" else self.settings.count("random_state")
        self.metric, self.result_file = self._metric()
        # Versions have it in different places.
        rules = (self._early_stopping(each.inner("earlyStopping")) for each in (self.fields, algorithm))
        rule = next(filter(None, rules), None)
        self.stopping = {} if rule is None else {"early_terminate": rule}

    def imported(self) -> Imported:
        """Return the spec."""
        fields, losses = self.fields, self.losses
        entries = fields.each("parameters")
        self.names = parameter_names([entry.text("name") or "" for entry in entries], losses)
        notes = {name: LossList() for name in self.names.values()}
        self.parameters = {
            name: domain_keys(entry, foreign, self.algorithm, notes[name])
            for entry, (foreign, name) in zip(entries, self.names.items(), strict=True)
        }
        if not self.parameters:
            is_nas = fields.data.get("nasConfig")
            why = "neural architecture search is not supported" if is_nas else "it has none"
            raise ForeignError(f"spec.parameters must contain at least one parameter: {why}")
        keys = self._search()
        resource = keys.get("resource", {}).get("parameter")
        chosen = {name: keys for name, keys in self.parameters.items() if name != resource}
        spec: dict[str, Any] = {"name": self.name, **keys, "metric": self.metric, "parameters": chosen}
        if self.algorithm not in METHOD_OF_ALGORITHM:
            losses.add(self.place, "is not an algorithm of Katib; written as random")
        losses += [loss for name in chosen for loss in notes[name]]
        spec |= self.stopping
        trial = read_trial_template(fields.inner("trialTemplate"), self.names, self.result_file)
        losses += trial.losses
        if self.result_file is not None and not trial.passes_result_file:
            why = "is the file that Katib reads; write the metrics to the file $SWEEP_RESULT instead"
            losses.add(f"spec.metricsCollectorSpec: {self.result_file}", why)
        parallel = fields.whole("parallelTrialCount")
        if parallel is None:
            losses.add("spec.parallelTrialCount", "the file has none; written as 3, Katib's default")
        spec |= {"program": PROGRAM} if trial.command is None else {"command": trial.command}
        spec["run"] = {"parallelism": USUAL_ROUND if parallel is None else parallel, **trial.run}
        # How many failed trials a batch tolerates, only an Indexed Job counts.
        if "shape" in trial.run or spec["method"] in {"hyperband", "pbt"}:
            what = f"shape {trial.run['shape']}" if "shape" in trial.run else f"method {spec['method']}"
            losses += fields.lost("maxFailedTrialCount", f"with {what}, a failed trial does not stop others")
        elif (most := fields.whole("maxFailedTrialCount")) is not None:
            spec["run"]["max_failed"] = most
        losses += fields.lost("resumePolicy", "Katib's service is not used here")
        return Imported(spec, (*losses, *self.root.rest()))

    def _search(self) -> dict[str, Any]:
        keys: dict[str, Any] | None = None
        cap, method = self.fields.whole("maxTrialCount"), self.method
        numeric = sum(map(_is_numeric, self.parameters.values()))
        if method == "hyperband":
            keys = self._hyperband()
            method = "tpe" if keys is None else method
        elif method == "pbt":
            keys = self._population()
        elif method == "cma-es" and numeric < FEWEST_NUMBERS:
            self.losses.add(self.place, "needs two numeric parameters; written as tpe")
            method = "tpe"
        if keys is not None:
            keys = {"method": method, "seed": self.seed or 0, **keys}
            return keys if cap is None else keys | {"run_cap": cap}
        search = ForeignSearch(
            "Katib",
            method,
            self.parameters,
            cap=cap,
            seed=self.seed,
            at_once=self.fields.whole("parallelTrialCount") or USUAL_ROUND,
            uses_results=bool(self.stopping) or "target" in self.metric,
        )
        return {"method": method} | size_keys(search, self.losses)

    def _hyperband(self) -> dict[str, Any] | None:
        most, eta = self.settings.count("r_l"), self.settings.count("eta") or USUAL_ETA
        name = self.names.get(self.settings.text("resource_name") or "")
        if most is None or name is None or most < eta or eta < 2:  # noqa: PLR2004 - eta is at least 2
            why = "needs r_l, at least eta, and the resource_name of a parameter; written as tpe"
            self.losses.add(self.place, why)
            return None
        steps = int(math.log(most, eta) + 1e-9)
        resource = {"parameter": name, "min": max(1, most // eta**steps), "max": most, "eta": eta}
        why = f"is set by the method here, from {resource['min']} to {most}; its feasible space is left out"
        self.losses.add(f"parameters: {name}", why)
        return {"rounds": {"size": eta**steps}, "resource": resource}

    def _population(self) -> dict[str, Any]:
        settings, losses = self.settings, self.losses
        size = settings.count("n_population") or USUAL_POPULATION
        why = "the folder of checkpoints; here the program reads $SWEEP_PARENT and writes $SWEEP_CHECKPOINTS"
        losses += settings.lost("suggestion_trial_dir", why)
        why = "Katib trains a fixed amount a generation; here `epochs` is how far each goes in all: adapt it"
        losses.add("resource", why)
        for name in ("truncation_threshold", "resample_probability"):
            losses += settings.lost(name, "a fifth is replaced, and a quarter drawn anew, here")
        resource = {"parameter": "epochs", "min": 1, "max": 10}
        return {"rounds": {"size": max(2, size)}, "resource": resource}

    def _early_stopping(self, stopping: Fields) -> dict[str, Any] | None:
        if not stopping.data:
            return None
        name = stopping.text("algorithmName") or ""
        if name != "medianstop":
            why = "is not a rule of Katib; trials run to their end"
            self.losses.add(f"{stopping.at('algorithmName')}: {name}", why)
            return None
        self.losses.add(f"{stopping.path}: medianstop", STOPPED_WHEN)
        settings = _settings(stopping)
        least, first = (settings.count(key, least=1) for key in ("min_trials_required", "start_step"))
        return {"type": "median", "min_trials": least or 3, "min_iter": first or 4}

    def _metric(self) -> tuple[dict[str, Any], str | None]:
        objective = self.fields.inner("objective")
        foreign, goal = objective.text("objectiveMetricName"), objective.text("type")
        if foreign is None or goal not in {"maximize", "minimize"}:
            raise ForeignError(
                "spec.objective must have an objectiveMetricName, and the type maximize or minimize"
            )
        name, target = metric_name(foreign, self.losses), objective.data.get("goal")
        if isinstance(target, int | float) and not isinstance(target, bool):
            objective.take("goal")
        else:
            target = None
            self.losses += objective.lost("goal", "is not a number; no value ends the sweep")
        self.losses += objective.lost("additionalMetricNames", EVERY_METRIC)
        reduce = self._reduced(objective, foreign, DEFAULT_STRATEGIES[goal])
        collector = self.fields.inner("metricsCollectorSpec")
        keys, file = read_collector(collector, self.losses, is_renamed=name != foreign)
        reduction = {} if reduce is Reduce.LAST else {"reduce": str(reduce)}
        target_key = {} if target is None else {"target": target}
        return {"name": name, "goal": goal, **keys, **reduction, **target_key}, file

    def _reduced(self, objective: Fields, foreign: str, usual: str) -> Reduce:
        """Return which reported value of the objective counts; strategies of other metrics are losses."""
        strategy = usual
        for entry in objective.each("metricStrategies"):
            name, value = entry.text("name"), entry.text("value") or usual
            if name == foreign and value not in REDUCE_OF_STRATEGY:
                raise ForeignError(f"{entry.at('value')} must be latest, max or min, got {value!r}")
            if name == foreign:
                strategy = value
            elif value != "latest":
                self.losses.add(f"{entry.path}: {name}: {value}", OTHER_METRIC)
        return REDUCE_OF_STRATEGY[strategy]


def _is_numeric(keys: dict[str, Any]) -> bool:
    """Return whether all values are numbers, as CMA-ES demands of two parameters."""
    values = keys.get("values", ())
    return (
        not any(isinstance(value, str) for value in values) if values else not {"min", "mu"}.isdisjoint(keys)
    )


def _settings(owner: Fields) -> Fields:
    """Return the settings of an algorithm as the keys of a mapping; keys that nothing reads are losses."""
    settings = {entry.text("name") or "": entry.text("value") for entry in owner.each("algorithmSettings")}
    return owner.child(settings, owner.at("algorithmSettings"))


CONDITIONS = {
    "successCondition": 'status.conditions.#(type=="Complete")#|#(status=="True")#',
    "failureCondition": 'status.conditions.#(type=="Failed")#|#(status=="True")#',
}
"""Katib's default conditions for a Job, which also apply to trials here."""

CODE_LOSS = Loss(
    "the code of the trial",
    f"Katib's trials run the code in their image; here they run a folder of this repository: used {CODE_DIR}",
)


def read_trial_template(template: Fields, names: Mapping[str, str], result_file: str | None) -> ImportedTrial:
    """Return the trial of `spec.trialTemplate`, in either version, for parameters by their foreign names.

    The program writes its metrics to `result_file`, if that is given. Raises ForeignError.
    """
    trial = ImportedTrial({}, result_file)
    if template.data.get("goTemplate") is not None:
        _go_template(template.inner("goTemplate"), names, trial)
    else:
        _structured(template, names, trial)
    for key, usual in CONDITIONS.items():
        if template.data.get(key) == usual:
            template.taken.add(key)
    if trial.command is None:
        why = f"the command of the trial is not in the file; used {CODE_DIR}/{PROGRAM}: write your command"
        trial.losses.add(template.path, why)
    elif ARGS not in trial.command and NO_HYPHENS not in trial.command:
        for name in names.values():
            variable = environment_name(name)
            if f"${{envvar:{variable}}}" not in " ".join(trial.command):
                why = f"the command does not pass it; the program can read ${variable}"
                trial.losses.add(f"parameters: {name}", why)
    trial.losses.append(CODE_LOSS)
    return trial


def _structured(template: Fields, names: Mapping[str, str], trial: ImportedTrial) -> None:
    declared: dict[str, str] = {}
    for entry in template.each("trialParameters"):
        name, reference = entry.text("name"), entry.text("reference")
        if name is not None and reference is not None and reference in names:
            declared[name] = names[reference]
        elif name is not None:
            trial.losses.add(f"{entry.path}: {name}", f"refers to {reference}, which is not a parameter")
        entry.taken.add("description")
    _config_map(template, "configMap", trial)
    trial.names, trial.primary = declared, template.text("primaryContainerName")
    if template.data.get("trialSpec") is not None:
        trial.read_manifest(template.inner("trialSpec"))


def _go_template(template: Fields, names: Mapping[str, str], trial: ImportedTrial) -> None:
    _config_map(template, "templateSpec", trial)
    raw = template.text("rawTemplate")
    if raw is not None:
        path = template.at("rawTemplate")
        text = _plain_manifest(raw, names, path, trial.losses)
        try:
            manifest = foreign_yaml.load(text.encode(), version="go")
        except ForeignError as error:
            trial.losses.add(path, f"cannot be parsed after its loop is replaced by a macro: {error}")
        else:
            trial.read_manifest(template.child(manifest, path))


def _config_map(template: Fields, key: str, trial: ImportedTrial) -> None:
    reference = template.inner(key)
    if reference.data:
        parts = ("configMapNamespace", "configMapName", "templatePath")
        where = "/".join(str(reference.take(part)) for part in parts if reference.data.get(part) is not None)
        trial.losses.add(f"{reference.path}: {where}", "the manifest is only in the cluster")


ACTION = re.compile(r"\{\{-?\s*(?P<action>[^}]*?)\s*-?\}\}")
BLOCK = re.compile(r"^\s*(?:\{\{-?\s*(?:with|range|end|else)[^}]*\}\}\s*)+$")
PAIR = re.compile(r"(?P<dashes>-*)\{\{-?\s*\.Name\s*-?\}\}=\{\{-?\s*\.Value\s*-?\}\}")


def _plain_manifest(text: str, foreign_names: Iterable[str], path: str, losses: LossList) -> str:
    """Return a v1alpha3 Go template as plain YAML: its loop over the parameters becomes a macro."""
    dashed = all(name.startswith("--") for name in foreign_names)

    def pair(match: re.Match[str]) -> str:
        if dashed or match["dashes"]:
            return ARGS
        if any(name.startswith("-") for name in foreign_names):
            losses.add(f"{path}: {match[0]}", f"written {ARGS}, which puts -- before every name")
            return ARGS
        return NO_HYPHENS

    def action(match: re.Match[str]) -> str:
        if match["action"] in {".Trial", ".NameSpace"}:
            return "trial"
        losses.add(f"{path}: {match[0]}", "an action of the template that has no counterpart; left out")
        return ""

    lines = [PAIR.sub(pair, line) for line in text.splitlines() if not BLOCK.match(line)]
    return "\n".join(ACTION.sub(action, line) for line in lines) + "\n"
