"""The rendered manifests of a batch, parsed: Jobs and ConfigMaps in, a BatchSpec or problems out. Pure."""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from generator.engine.local import pods
from generator.engine.local.place import Place
from generator.engine.local.workload import (
    BatchSpec,
    ConfigVolume,
    ExitRule,
    JobSpec,
    Literal,
    ResultsVolume,
    Row,
    Table,
    Verdict,
)
from generator.formats import json
from generator.formats.table import replicate_of, row_digest
from generator.problems import Problem
from generator.structs.labels import INDEX_VARIABLE, PARENT_PATH
from generator.structs.values import digest

NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?", re.ASCII)
KEY = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)
"""Names become folders and keys become files, so neither may lead anywhere else."""

DEFAULT_RETRIES = 6
"""Kubernetes' own backoffLimit."""


def parse(
    name: str, manifests: Sequence[Mapping[str, Any]], *, file: str | None = None
) -> BatchSpec | tuple[Problem, ...]:
    """Understand all of a batch, or say everything that cannot be honoured."""
    problems: list[Problem] = []
    places = [_place(manifest, file or f"overlays/active/{name}", problems) for manifest in manifests]
    config_maps = dict(_config_map(place) for place in places if place.take("kind") == "ConfigMap")
    # Stable whatever the order in which kustomize prints them.
    shared = digest({key: digest(value) for key, value in config_maps.items()})
    jobs = [
        _job(name, place, digest([shared, manifest]))
        for place, manifest in zip(places, manifests, strict=True)
        if place.take("kind") == "Job"
    ]
    for place in places:
        place.close()
    table = _table(config_maps)
    whole = _place({}, file or f"overlays/active/{name}", problems)
    for message in _contradictions(name, jobs, config_maps, table):
        whole.refuse("", message)
    if problems or isinstance(table, str):
        return tuple(sorted(_said_once(problems)))
    return BatchSpec(name, tuple(sorted(jobs, key=lambda job: job.indexes)), config_maps, table)


def _said_once(problems: Iterable[Problem]) -> Iterator[Problem]:
    """Say of the first Job what is said of all alike: they differ in their names alone."""
    seen: set[tuple[str, str]] = set()
    for problem in sorted(problems):
        said = (problem.path.partition(".")[2], problem.message)
        if not said[0] or said not in seen:
            yield problem
        seen.add(said)


def _contradictions(
    name: str, jobs: Sequence[JobSpec], config_maps: Mapping[str, Mapping[str, str]], table: Table | str
) -> Iterator[str]:
    """Say what is wrong between the manifests, each of which may be right by itself."""
    if not jobs:
        yield "holds no Job"
    if isinstance(table, str):
        yield table
    elif any(job.indexes[-1] >= len(table.rows) for job in jobs):
        yield f"must have a row for every index, got {len(table.rows)} rows"
    for text in [name, *(job.name for job in jobs), *(key for job in jobs for key in job.pod.volumes)]:
        if NAME.fullmatch(text) is None:
            yield f"must only have names of lower-case letters, digits and hyphens, got {text!r}"
    for job in jobs:
        sources = [volume.sources for volume in job.pod.volumes.values() if isinstance(volume, ConfigVolume)]
        for source in itertools.chain.from_iterable(sources):
            data = config_maps.get(source.name)
            if data is None or any(key not in data for key, _ in source.items or ()):
                yield f"must hold the ConfigMap {source.name!r} that {job.name} mounts, with its keys"
        yield from _results_problems(job)


def _results_problems(job: JobSpec) -> Iterator[str]:
    """Every index must have a folder of its own on the results volume, named by its number alone."""
    found = [
        mount
        for mount in job.pod.mounts
        if job.pod.volumes.get(mount.volume) == ResultsVolume() and mount.path != PARENT_PATH
    ]
    if len(found) != 1:
        yield f"must mount the results volume once in {job.name}, got {len(found)} mounts"
        return
    path = found[0].sub_path
    rest = path.replace("$(JOB_COMPLETION_INDEX)", "")
    if not path or "$(" in rest or found[0].expanded is not job.indexed or job.indexed is (rest == path):
        yield f"must mount one folder of the results volume for each index of {job.name}, got {path!r}"


def _place(manifest: Mapping[str, Any], file: str, problems: list[Problem]) -> Place:
    name = (manifest.get("metadata") or {}).get("name", "")
    place = Place(manifest, f"{manifest.get('kind', '')}/{name}".strip("/"), file, problems)
    if manifest:
        known = {"Job": "batch/v1", "ConfigMap": "v1"}
        kind, version = place.take("kind"), place.take("apiVersion")
        if kind not in known or known[kind] != version:
            place.refuse(
                "kind", f"must be a Job of batch/v1 or a ConfigMap of v1, got {kind!r} of {version!r}"
            )
            place.meaningless(*manifest)
    return place


def _config_map(place: Place) -> tuple[str, Mapping[str, str]]:
    metadata = place.child("metadata")
    place.meaningless("immutable")  # all are, here
    data = place.table("data")
    if bad := sorted(key for key in data if KEY.fullmatch(key) is None or ".." in key):
        place.refuse("data", f"must have keys that are file names, got {bad[0]!r}")
    return metadata.text("name"), data


def _job(batch: str, place: Place, identity: str) -> JobSpec:
    metadata, spec = place.child("metadata"), place.child("spec")
    pod = pods.parse(spec.child("template"))
    mode = spec.text("completionMode", "NonIndexed")
    if mode not in {"Indexed", "NonIndexed"}:
        spec.refuse("completionMode", f"must be 'Indexed' or 'NonIndexed', got {mode!r}")
    indexed = mode == "Indexed"
    completions, parallelism = spec.count("completions"), spec.count("parallelism")
    if not completions or (not indexed and completions != 1):
        spec.refuse("completions", f"must be a whole number from 1, and 1 without indexes, got {completions}")
    indexes = tuple(range(completions or 1)) if indexed else _single(spec, pod.environment)
    per_index, whole_job = spec.count("backoffLimitPerIndex"), spec.count("backoffLimit")
    retries = whole_job if per_index is None else per_index
    spec.only("podReplacementPolicy", "Failed")
    spec.only("suspend", False)
    max_failed, deadline = spec.count("maxFailedIndexes"), spec.count("activeDeadlineSeconds")
    rules = _rules(spec.child("podFailurePolicy"))
    spec.close()
    return JobSpec(
        name=metadata.text("name"),
        batch=batch,
        namespace=metadata.text("namespace", "default"),
        indexed=indexed,
        indexes=indexes,
        parallelism=1 if parallelism is None else parallelism,
        retries=DEFAULT_RETRIES if retries is None else retries,
        per_index=per_index is not None,
        max_failed=max_failed,
        rules=rules,
        deadline=deadline,
        pod=pod,
        digest=identity,
    )


def _single(spec: Place, environment: Sequence[object]) -> tuple[int, ...]:
    for variable in environment:
        if isinstance(variable, Literal) and variable.name == INDEX_VARIABLE and variable.value.isdecimal():
            return (int(variable.value),)
    spec.refuse("template", f"must set {INDEX_VARIABLE} to a row's number, as the Job has no indexes")
    return (0,)


def _rules(policy: Place) -> tuple[ExitRule, ...]:
    rules: list[ExitRule] = []
    for place in policy.children("rules"):
        action = place.text("action")
        if action not in set(Verdict):
            place.refuse("action", f"must be one of {sorted(Verdict)}, got {action!r}")
            action = Verdict.COUNT
        if "onPodConditions" in place:
            _disruption(place, action)
        else:
            codes = place.child("onExitCodes")
            codes.text("containerName")
            operator, values = codes.text("operator"), codes.take("values")
            codes.close()
            if operator not in {"In", "NotIn"} or not isinstance(values, list | tuple):
                codes.refuse("operator", f"must be 'In' or 'NotIn' with a list of values, got {operator!r}")
            else:
                rules.append(ExitRule(Verdict(action), frozenset(values), negated=operator == "NotIn"))
        place.close()
    policy.close()
    return tuple(rules)


def _disruption(place: Place, action: str) -> None:
    """A pod that is lost with its engine never counts: that is the one condition known here."""
    for condition in place.children("onPodConditions"):
        condition.only("type", "DisruptionTarget")
        condition.only("status", "True")
        condition.close()
    if action != Verdict.IGNORE:
        place.refuse("action", f"must be 'Ignore' for a disruption, got {action!r}")


def _table(config_maps: Mapping[str, Mapping[str, str]]) -> Table | str:
    """Read the batch's rows, or say why that cannot be done."""
    files = {key: text for data in config_maps.values() for key, text in data.items()}
    try:
        launch = json.load(files["launch.json"])
        rows: list[Row] = []
        for shard in launch["shards"]:
            header, *lines = files[shard["file"]].rstrip("\n").split("\n")
            rows += (
                Row(
                    line.split(",")[0],
                    row_digest(launch["program"], header, line),
                    launch["seed_base"] + replicate_of(header, line),
                )
                for line in lines
            )
        return Table(launch["code"], launch["data"], tuple(rows))
    except (KeyError, TypeError, ValueError, IndexError) as error:
        return f"must hold launch.json and the table it names: {type(error).__name__} {error}"
