"""Rules for a batch as a set of files, which an API server cannot check, because it sees one object at a time.

Only the admission policies (`admission.py`) restrict pods, and only the schemas (`schema.py`) define their fields.
`sweep check` compares the files of a batch with the output of the generator.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from sweepledger.contract import admission, kubernetes_schemas
from sweepledger.contract.rendered_objects import Container, Finding, Object, Pod, to_problem, without_path
from sweepledger.controllers import GITOPS
from sweepledger.controllers.controller import SYNC_WAVE
from sweepledger.problems import DocumentPath, Problem
from sweepledger.reader.safe_repr import safe_json, safe_repr
from sweepledger.structs import kubernetes
from sweepledger.structs.kubernetes import (
    BATCH_LABEL,
    COMPLETION_INDEX_VARIABLE,
    DATA_PATH,
    DATA_VOLUME,
    GENERATOR_LABELS,
    INDEX_LABEL,
    INDEX_VARIABLE,
    PARENT_FOLDER_VARIABLE,
    STORE_CONTAINER,
    SWEEP_LABEL,
    TRIAL_LABEL,
    Manifest,
    parent_mount,
    trial_folder,
    trial_folder_by_variable,
)
from sweepledger.structs.names import split_batch_name
from sweepledger.structs.program import NO_IMAGE
from sweepledger.structs.run_config import SHAPE_KINDS
from sweepledger.structs.settings import Settings

BATCH_MANIFEST, GITOPS_UNSAFE, VOLUME = "batch-manifest", "gitops-unsafe", "volume-not-allowed"
NO_PARENTS: Mapping[int, str] = MappingProxyType({})
RUNTIME_KIND = kubernetes.TRAINING_RUNTIME.kind
"""The kind with the pod template of all trials; the objects that start the trials set the index."""
KINDS = frozenset(
    (kind.api_version, kind.kind)
    for kind in (
        kubernetes.CONFIG_MAP,
        *SHAPE_KINDS.values(),
        *(kind.shared for kind in SHAPE_KINDS.values() if kind.shared is not None),
    )
)
"""The kinds that a batch has."""
HOOKS = ("helm.sh/hook", *(hook for own in GITOPS.values() for hook in own.hooks))
"""How annotations begin by which a controller does something else than to apply an object."""
FIRST = (RUNTIME_KIND, SYNC_WAVE, "-1")
"""Kind, key and value of the only wave: the TrainJobs of a runtime cannot be deleted once it is gone."""
OPTIONS = tuple(own.options for own in GITOPS.values() if own.options is not None)
REWRITING = ("Force=true", "Replace=true")
TRAIN_JOB_KEYS = frozenset({"runtimeRef", "suspend", "trainer"})
"""Without those that change the pods of the runtime."""
OF_IMAGES = frozenset({"image-not-pinned", "image-not-listed"})
"""Codes that no batch without an image is refused by: it runs on laptops only."""
NUMBER = re.compile(r"0|[1-9][0-9]{0,5}", re.ASCII)


@dataclass(frozen=True, slots=True)
class BatchContext:
    """The values that a batch's objects are compared with."""

    batch: str
    settings: Settings
    config_maps: frozenset[str]
    """Names of the ConfigMaps in the same batch."""
    image: str | None = None
    """Image in the batch's lock, which the containers must run; None: not known."""
    parent_folders: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Folders of parent trials, whose checkpoints a trial may read, by the index of the trial that continues them."""


def check_batch(
    batch: str,
    settings: Settings,
    manifests: Sequence[Manifest],
    policies: Sequence[admission.Policy],
    *,
    file: str,
    image: str | None = None,
    parent_folders: Mapping[int, str] = NO_PARENTS,
) -> tuple[Problem, ...]:
    """Return the problems of the manifests that a batch renders; problems name `file`.

    `policies` are those of the batch's team. `image` is the image that its containers must run; None if the caller
    compares images with the lock. `parent_folders` are the folders whose checkpoints trials may read, by index.
    """
    objects = tuple(map(Object, manifests))
    config_maps = frozenset(obj.name for obj in objects if obj.kind == "ConfigMap")
    parents = {str(row): folder for row, folder in parent_folders.items()}
    trials = BatchContext(batch, settings, config_maps, image, parents)
    results: list[tuple[Object, Finding]] = []
    usable: list[Object] = []
    for obj in objects:
        malformed, rest = _read(obj, settings.platform.kubernetes)
        results += [(obj, finding) for finding in malformed]
        if rest is not None:
            usable.append(rest)
            results += [(obj, finding) for check in OBJECT_RULES for finding in check(rest, trials)]
    results += _same_trials(usable)
    excused = OF_IMAGES if image == NO_IMAGE else frozenset()
    results += admission.findings(policies, usable, excused=excused)
    return tuple(dict.fromkeys(to_problem(obj, finding, file) for obj, finding in results))


def _read(obj: Object, since: tuple[int, int]) -> tuple[tuple[Finding, ...], Object | None]:
    """Return the schema's findings and, if rules can rely on the object, the object without unknown fields."""
    if (obj.api, obj.kind) not in KINDS:
        message = f"must be a kind that batches have, got {safe_repr(obj.kind)} of {safe_repr(obj.api)}"
        hint = "ConfigMaps, Jobs, and the kinds of distributed trials"
        return (Finding((), message, BATCH_MANIFEST, hint),), None
    malformed = tuple(kubernetes_schemas.findings(obj.api, obj.kind, obj.data, since=since))
    data = obj.data
    for path in dict.fromkeys(finding.path for finding in malformed if finding.is_surplus):
        data = without_path(data, path)
    is_broken = malformed and any(kubernetes_schemas.findings(obj.api, obj.kind, data, since=since))
    return malformed, None if is_broken else Object(data)


def _check_metadata(obj: Object, trials: BatchContext) -> Iterator[Finding]:
    """Yield a name or namespace that is not the batch's, and annotations that change the behaviour of controllers."""
    name, namespace = obj.name, obj.metadata.get("namespace")
    if name != trials.batch and not name.startswith(f"{trials.batch}-"):
        message = f"must begin with the batch's name {trials.batch!r}, got {safe_repr(name)}"
        yield Finding(("metadata", "name"), message, BATCH_MANIFEST)
    if namespace != trials.settings.trials.namespace:
        message = f"must be {trials.settings.trials.namespace!r}, got {safe_repr(namespace)}"
        yield Finding(("metadata", "namespace"), message, BATCH_MANIFEST)
    if obj.kind == "ConfigMap" and obj.data.get("immutable") is not True:
        yield Finding(("immutable",), "must be true: a running Job reads it", BATCH_MANIFEST)
    for path, metadata in [((), obj.metadata), *((pod.path, pod.metadata) for pod in obj.pods)]:
        if "ownerReferences" in metadata:
            message = "must be absent: the policies ask less of what a controller makes"
            yield Finding((*path, "metadata", "ownerReferences"), message, BATCH_MANIFEST)
    for key, value in (obj.metadata.get("annotations") or {}).items():
        rewrites = key in OPTIONS and any(option in str(value) for option in REWRITING)
        if rewrites or (key.startswith(HOOKS) and (obj.kind, key, value) != FIRST):
            message = f"must be absent: what is merged is applied as it is, got {safe_repr(value)}"
            yield Finding(("metadata", "annotations", key), message, GITOPS_UNSAFE)


def _check_labels(obj: Object, trials: BatchContext) -> Iterator[Finding]:
    """Yield labels that differ from the batch's and the settings', since networks, queues and bills depend on them."""
    parts = split_batch_name(trials.batch)
    known = {
        **trials.settings.trials.labels,
        **GENERATOR_LABELS,
        BATCH_LABEL: trials.batch,
        **({} if parts is None else {SWEEP_LABEL: parts[0]}),
    }
    own = obj.metadata.get("labels") or {}
    yield from _values(own, known, ("metadata", "labels"))
    number = _index(obj)
    if number is not None and NUMBER.fullmatch(number) is None:
        message = f"must be the number of a trial, got {safe_repr(number)}"
        yield Finding(("metadata", "labels", INDEX_LABEL), message, BATCH_MANIFEST)
    same = known | {key: own.get(key) for key in (INDEX_LABEL, TRIAL_LABEL)}
    for pod in obj.pods:
        yield from _values(pod.labels, same, (*pod.path, "metadata", "labels"))


def _values(
    labels: Mapping[str, Any], known: Mapping[str, str | None], at: DocumentPath
) -> Iterator[Finding]:
    for key, value in labels.items():
        if value != (wanted := known.get(key, value)):
            yield Finding((*at, key), f"must be {safe_repr(wanted)}, got {safe_repr(value)}", BATCH_MANIFEST)


def _check_runs(obj: Object, trials: BatchContext) -> Iterator[Finding]:
    """Yield causes for two pods to write to one folder, or for pods to run that are not the batch's."""
    spec = obj.data.get("spec") or {}
    if obj.kind == "Job":
        if _index(obj) is not None and spec.get("completions") != 1:
            message = f"must be 1 in the Job of one trial, got {safe_repr(spec.get('completions'))}"
            yield Finding(("spec", "completions"), message, BATCH_MANIFEST)
        if spec.get("podReplacementPolicy") != "Failed":  # two pods of one trial would run side by side
            message = f"must be 'Failed', got {safe_repr(spec.get('podReplacementPolicy'))}"
            yield Finding(("spec", "podReplacementPolicy"), message, BATCH_MANIFEST)
    if obj.kind == "TrainJob":
        for key in sorted(spec.keys() - TRAIN_JOB_KEYS):
            message = f"must be absent: its pods are those of its runtime, got {safe_json(spec[key])}"
            yield Finding(("spec", key), message, BATCH_MANIFEST)
        runtime = str((spec.get("runtimeRef") or {}).get("name"))
        if runtime != trials.batch and not runtime.startswith(f"{trials.batch}-"):
            message = f"must be the runtime of the batch, got {safe_repr(runtime)}"
            yield Finding(("spec", "runtimeRef", "name"), message, BATCH_MANIFEST)
    for pod in obj.pods:
        names = [each.data.get("name") for each in pod.containers if each.list_name == "containers"]
        if len(names) != 1:
            message = f"must be the one container of the trial, got {safe_json(names)}"
            yield Finding((*pod.path, "spec", "containers"), message, BATCH_MANIFEST)
    for container in obj.containers:
        yield from _container(obj, container, trials)


def _container(obj: Object, container: Container, trials: BatchContext) -> Iterator[Finding]:
    data, variables = container.data, container.data.get("env") or ()
    is_store = (container.list_name, data.get("name")) == ("initContainers", STORE_CONTAINER)
    wanted: dict[str, str | None] = {}
    if is_store:
        wanted = {PARENT_FOLDER_VARIABLE: trials.parent_folders.get(_index(obj) or "")}
    elif container.list_name != "initContainers":
        shared = obj.kind == RUNTIME_KIND or _runs_all(obj)
        wanted = {COMPLETION_INDEX_VARIABLE: None, INDEX_VARIABLE: None if shared else _index(obj)}
        image = data.get("image")
        if trials.image is not None and image != trials.image and ("image" in data or obj.kind != "TrainJob"):
            must = f"must be the image that the batch has locked, {safe_repr(trials.image)}"
            yield Finding((*container.path, "image"), f"{must}, got {safe_repr(image)}", BATCH_MANIFEST)
    if container.list_name == "trainer" and "command" in data:
        message = f"must be absent: the runtime starts the launcher, got {safe_json(data['command'])}"
        yield Finding((*container.path, "command"), message, BATCH_MANIFEST)
    values = {each.get("name"): each.get("value") for each in variables}
    kind = SHAPE_KINDS.get(obj.kind)
    for name, value in wanted.items():
        if kind is not None and kind.waits in container.path[2:3]:
            continue  # in sshd, which passes no variables on
        if (name in values, values.get(name)) != (value is not None, value):
            actual = safe_repr(values[name]) if name in values else "none"
            must = f"must set {name} to {safe_repr(value)}" if value is not None else f"must not set {name}"
            yield Finding((*container.path, "env"), f"{must}, got {actual}", BATCH_MANIFEST)


def _check_volumes(obj: Object, trials: BatchContext) -> Iterator[Finding]:
    """Yield ConfigMaps of other batches, and mounts of claims that expose more than the trial's folders."""
    own, parents, folder = _folder(obj, trials.batch), None, trials.parent_folders.get(_index(obj) or "")
    if folder is not None and obj.kind == "Job" and not _runs_all(obj):  # it continues another trial
        parents = parent_mount(trials.settings.results.checkpoints_volume, folder)
    for pod in obj.pods:
        yield from _config_maps(pod, trials)
        claims = {
            volume.get("name"): volume["persistentVolumeClaim"].get("claimName")
            for volume in pod.volumes
            if volume.get("persistentVolumeClaim")
        }
        for container in pod.containers:
            for number, mount in enumerate(container.data.get("volumeMounts") or ()):
                if (claim := claims.get(mount.get("name"))) is not None:
                    at = (*container.path, "volumeMounts", number)
                    yield from _mount(mount, claim, (own, parents), trials, at)


def _config_maps(pod: Pod, trials: BatchContext) -> Iterator[Finding]:
    authorities = trials.settings.network.authorities
    known = trials.config_maps | ({authorities.config_map} if authorities else set())
    for number, volume in enumerate(pod.volumes):
        for source in (volume, *((volume.get("projected") or {}).get("sources") or ())):
            if source.get("configMap") and (name := str(source["configMap"].get("name"))) not in known:
                message = f"must be a ConfigMap of the batch, got {safe_repr(name)}"
                yield Finding((*pod.path, "spec", "volumes", number), message, VOLUME)


def _mount(
    mount: Manifest,
    claim: Any,
    folders: tuple[Mapping[str, str], Manifest | None],
    trials: BatchContext,
    at: DocumentPath,
) -> Iterator[Finding]:
    own, parents = folders
    subpaths = {key: mount[key] for key in ("subPath", "subPathExpr") if key in mount}
    if not re.fullmatch(rf"{DATA_VOLUME}(?:-[0-9]{{1,2}})?", str(mount.get("name")), re.ASCII):
        if subpaths != own and mount != parents:
            message = f"must have {safe_json(dict(own))}, the trial's own folder, got {safe_json(subpaths)}"
            yield Finding(at, message, VOLUME)
        return
    paths = [*_datasets(mount, claim, trials)]
    if mount.get("readOnly") is not True or subpaths not in paths:
        options = " or ".join(map(safe_json, paths)) or "none"
        message = f"must be read-only and the folder of a dataset ({options}), got {safe_json(dict(mount))}"
        yield Finding(at, message, VOLUME)


def _datasets(mount: Manifest, claim: Any, trials: BatchContext) -> Iterator[dict[str, str]]:
    """Yield the mount fields of a claim's datasets; never the whole results volume, not even read-only.

    Each of several datasets is mounted in a folder of its name.
    """
    results = frozenset(trials.settings.results.claims.values())
    for dataset in trials.settings.trials.datasets.values():
        is_placed = (
            mount.get("name") == DATA_VOLUME or mount.get("mountPath") == f"{DATA_PATH}/{dataset.name}"
        )
        if is_placed and dataset.claim == claim and (dataset.path or claim not in results):
            yield {"subPath": dataset.path} if dataset.path else {}


def _folder(obj: Object, batch: str) -> dict[str, str]:
    """Return the mount fields of a trial's own folder; templates of many trials use a variable."""
    if _runs_all(obj):
        return trial_folder_by_variable(batch, COMPLETION_INDEX_VARIABLE)
    if obj.kind == RUNTIME_KIND:
        return trial_folder_by_variable(batch, INDEX_VARIABLE)
    return trial_folder(batch, str(_index(obj)))


def _runs_all(obj: Object) -> bool:
    """Return whether an object is an Indexed Job whose completion indexes are the rows of the table."""
    is_indexed = obj.kind == "Job" and (obj.data.get("spec") or {}).get("completionMode") == "Indexed"
    return is_indexed and _index(obj) is None


def _index(obj: Object) -> str | None:
    index = (obj.metadata.get("labels") or {}).get(INDEX_LABEL)
    return None if index is None else str(index)


def _same_trials(objects: Sequence[Object]) -> Iterator[tuple[Object, Finding]]:
    """Yield objects of the same trial, as they would write to the same folder."""
    first: dict[str, str] = {}
    for obj in objects:
        number = None if obj.kind in {"ConfigMap", RUNTIME_KIND} else _index(obj)
        if number is not None and first.setdefault(number, obj.name) != obj.name:
            message = f"must be a trial of its own, got {safe_repr(number)} as {first[number]} has it"
            yield obj, Finding(("metadata", "labels", INDEX_LABEL), message, BATCH_MANIFEST)


OBJECT_RULES: tuple[Callable[[Object, BatchContext], Iterator[Finding]], ...] = (
    _check_metadata,
    _check_labels,
    _check_runs,
    _check_volumes,
)
"""The rules for one object and the rest of its batch."""
