"""Several trials in one pod or one process: numbers, shapes, stores, and what the trials would share."""

import re
from collections.abc import Iterator

from sweepledger.problems import Problem
from sweepledger.reader import DocumentPath, safe_repr
from sweepledger.spec.draft import Draft
from sweepledger.spec.rules.methods import RESOURCE_METHODS
from sweepledger.spec.rules.metrics import reporting_path
from sweepledger.spec.rules.workload import chosen_shape
from sweepledger.spec.sections import sections
from sweepledger.spec.suggestions import did_you_mean, quoted_names
from sweepledger.structs.metric import MetricSource
from sweepledger.structs.run_config import Shape
from sweepledger.structs.settings import ResultsStore

PACK = ("run", "pack")


STACK, WARM = ("run", "stack"), ("run", "warm")


def _is_packed(draft: Draft) -> bool:
    return not {"pack", "stack"}.isdisjoint(draft.names("run"))


def _place(draft: Draft) -> DocumentPath:
    return PACK if "pack" in draft.names("run") else STACK


def pack_bounds(draft: Draft) -> Iterator[Problem]:
    """A pod runs at most its trials at once, and as many pods run as `parallelism` has room for."""
    trials, at_once = draft.number(*PACK, "trials"), draft.number(*PACK, "at_once") or 1
    if trials is not None and at_once > trials:
        message = f"must be at most pack.trials ({trials}), got {at_once}"
        yield draft.problem((*PACK, "at_once"), message, code="pack-bounds", hint="a pod has no other trials")
    parallelism = draft.number("run", "parallelism")
    if trials is not None and parallelism is not None and parallelism % at_once:
        below = int(parallelism // at_once * at_once)
        hint = " or ".join(str(number) for number in (below, below + at_once) if number)
        message = f"must be a multiple of pack.at_once ({at_once}), got {parallelism}"
        yield draft.problem(("run", "parallelism"), message, code="pack-bounds", hint=f"write {hint}")


def pack_shape(draft: Draft) -> Iterator[Problem]:
    """Only an Indexed Job of all trials has pods with several rows, and it counts their failures by pod."""
    if not _is_packed(draft):
        return
    shape, method = chosen_shape(draft), draft.get("method", kind=str)
    if shape not in {None, Shape.INDEXED}:
        message = f"needs shape 'indexed', got {str(shape)!r}"
        yield draft.problem(
            _place(draft), message, code="pack-shape", hint="delete one of both keys", at_key=True
        )
    if method in RESOURCE_METHODS:
        message = f"needs a method whose trials mount no other trial's checkpoints, got {safe_repr(method)}"
        hint = "delete the key: each trial of this method has a pod of its own"
        yield draft.problem(_place(draft), message, code="pack-shape", hint=hint, at_key=True)
    if "max_failed" in draft.names("run"):
        message = f"must be absent with {_place(draft)[-1]}: the Job would count pods, not trials"
        place = ("run", "max_failed")
        yield draft.problem(place, message, code="pack-shape", hint="delete one of both keys", at_key=True)


STORES_WITHOUT_PACKS = {
    ResultsStore.API: "only a message outlives a pod there, and the next pod could not know which trials are done",
    ResultsStore.CLAIM: "records travel in a pod's message there, which has room for that of one trial",
}


def pack_store(draft: Draft) -> Iterator[Problem]:
    """Pods of several trials need a store that has the records of all of them, and what earlier pods have begun."""
    store = draft.settings.results.store
    if not _is_packed(draft):
        return
    if why := STORES_WITHOUT_PACKS.get(store):
        message = f"needs results.store: volume or bucket, got {store}"
        hint = f"delete the key, or choose another store in sweepledger.yaml: {why}"
        yield draft.problem(_place(draft), message, code="store-pack", hint=hint, at_key=True)
    elif "stack" in draft.names("run") and store is not ResultsStore.VOLUME:
        message = f"needs results.store: volume, got {store}"
        hint = (
            "delete the key, or choose store: volume in sweepledger.yaml: trials of a stack end at one moment"
        )
        yield draft.problem(STACK, message, code="store-pack", hint=hint, at_key=True)


def pack_paths(draft: Draft) -> Iterator[Problem]:
    """Trials that run at the same time share a working directory, so none may be read there."""
    at_once = draft.number(*PACK, "at_once") or 1
    if at_once == 1 or draft.get("run", "hyperparams_file", kind=bool):
        return
    for place in (("metric", "path"), ("metrics", 0, "path")):
        path = draft.get(*place, kind=str)
        if path is not None and not path.startswith("$"):
            message = f"must be a path of the trial's own with pack.at_once, got {safe_repr(path)}"
            hint = "trials of a pod share the working directory: write the file below $SWEEP_ARTIFACTS"
            yield draft.problem(place, message, code="pack-path", hint=hint)


def stack_parameters(draft: Draft) -> Iterator[Problem]:
    """A stack varies parameters of the sweep."""
    every = list(sections(draft))
    known = {name for section in every for name in (*section.parameters, *section.derived)}
    if not all(section.is_whole for section in every):
        return
    for place, name in draft.items(*STACK, "parameters"):
        if isinstance(name, str) and name not in known:
            message = f"must be one of the parameters {quoted_names(known)}, got {safe_repr(name)}"
            yield draft.problem(place, message, code="stack-parameter", hint=did_you_mean(name, known))


ALONE = {
    ("early_terminate",): "a rule would end all trials of the process",
    (*PACK,): "a pod runs the trials of a stack already",
    ("run", "warm"): "a pod starts few processes",
    ("run", "hyperparams_file"): "the process has one working directory",
    ("metric", "capture"): "what is captured names no trial",
    ("metrics", 0, "capture"): "what is captured names no trial",
}
"""Keys that need a process for each trial, and why."""


def stack_conflicts(draft: Draft) -> Iterator[Problem]:
    """A stack is one process with one output, one working directory and one end."""
    if "stack" not in draft.names("run"):
        return
    for place, why in ALONE.items():
        if place[-1] in draft.names(*place[:-1]):
            message = f"must be absent with run.stack: {why}"
            hint = "delete one of both keys"
            yield draft.problem(place, message, code="stack-conflict", hint=hint, at_key=True)
    metric = reporting_path(draft)
    source, path = (draft.get(*metric, key, kind=str) for key in ("source", "path"))
    if source == MetricSource.STDOUT:
        message = f"must be 'result' with run.stack: its trials share stdout, got {safe_repr(source)}"
        hint = "delete the key, and write the result of each trial to the file that SWEEP_STACK names"
        yield draft.problem((*metric, "source"), message, code="stack-conflict", hint=hint)
    if path is not None and not path.startswith("$"):
        message = f"must be a path of the trial's own with run.stack, got {safe_repr(path)}"
        hint = "trials of a stack share the working directory: write the file below $SWEEP_ARTIFACTS"
        yield draft.problem((*metric, "path"), message, code="stack-conflict", hint=hint)


PYTHON = re.compile(r"(\$\{interpreter\}|(.*/)?python[0-9.]*)", re.ASCII)
"""Words of a command that start an interpreter of Python."""


def warm_program(draft: Draft) -> Iterator[Problem]:
    """Only trials of one pod can share an interpreter, and only Python programs without captured metrics run in it."""
    if not draft.get(*WARM, kind=bool):
        return
    if not _is_packed(draft):
        message = "needs run.pack: a pod of one trial starts one interpreter"
        hint = "add pack: {trials: 20}, or delete the key"
        yield draft.problem(WARM, message, code="warm-program", hint=hint, at_key=True)
    if draft.get(*reporting_path(draft), "capture", kind=bool):
        message = "must be absent if metrics are captured: that needs a new interpreter for each trial"
        yield draft.problem(WARM, message, code="warm-program", hint="delete one of both keys", at_key=True)
    command = draft.get("command", kind=list)
    words = [word for word in command or () if word not in {"${env}", "/usr/bin/env"}]
    if words and not (isinstance(words[0], str) and PYTHON.fullmatch(words[0])):
        message = f"needs a command that starts Python, got {safe_repr(words[0])}"
        hint = "begin the command with ${interpreter}, or delete run.warm: other programs start by themselves"
        yield draft.problem(WARM, message, code="warm-program", hint=hint, at_key=True)
