"""Volumes of a batch's pods: only those that the settings name; each trial writes to its own folder only."""

from collections.abc import Iterator, Mapping
from typing import Any

from sweepledger.policy.batch_rules.identity import RUNTIME_KIND, BatchContext, runs_all_trials, trial_index
from sweepledger.policy.objects import Finding, Object
from sweepledger.reader.document import DocumentPath
from sweepledger.reader.messages import safe_json, safe_repr
from sweepledger.structs.kubernetes import (
    ARTIFACTS_VOLUME,
    CHECKPOINTS_VOLUME,
    COMPLETION_INDEX_VARIABLE,
    DATA_PATH,
    DATA_VOLUME,
    INDEX_VARIABLE,
    PARENT_VOLUME,
    RESULTS_VOLUME,
    STORE_CONTAINER,
    STORE_CREDENTIALS,
    STORE_SEALS,
    STORE_VOLUME,
    is_data_volume,
    parent_mount,
    trial_folder,
    trial_folder_by_variable,
)
from sweepledger.structs.node_pool import TOKENS_VOLUME
from sweepledger.structs.settings import AUTHORITIES_VOLUME, Authorities

CODE = "volume-not-allowed"

PLAIN = frozenset(
    {"clone", "code", "launcher", PARENT_VOLUME, "scratch", "shared-memory", STORE_VOLUME, "table"}
)
WRITABLE = frozenset({ARTIFACTS_VOLUME, CHECKPOINTS_VOLUME, RESULTS_VOLUME})
CREDENTIALS = "clone-credentials"
OF_STORE = frozenset({STORE_CREDENTIALS, STORE_SEALS, STORE_VOLUME})
"""Volumes that only the sidecar of a bucket mounts."""
SECRET = "secret-"  # noqa: S105 - prefix of the name of a volume
SUBPATHS = ("subPath", "subPathExpr")

Volume = Mapping[str, Any]


def check(obj: Object, trials: BatchContext) -> Iterator[Finding]:
    """Yield the volumes and mounts of pods that the batch may not have."""
    own = _folder(obj, trials.batch)
    for pod in obj.pods:
        for number, volume in enumerate(pod.volumes):
            yield from _volume(volume, trials, (*pod.at, "volumes", number))
        volumes = {volume.get("name"): volume for volume in pod.volumes}
        for container in pod.containers:
            is_sidecar = (container.sort, container.data.get("name")) == ("initContainers", STORE_CONTAINER)
            for number, mount in enumerate(container.data.get("volumeMounts") or ()):
                if mount.get("name") in OF_STORE and not is_sidecar:
                    message = f"must be mounted by the sidecar alone, got {safe_repr(mount.get('name'))}"
                    yield Finding((*container.path, "volumeMounts", number), message, CODE)
                claim = (volumes.get(mount.get("name"), {}).get("persistentVolumeClaim") or {}).get(
                    "claimName"
                )
                if claim is not None:
                    at = (*container.path, "volumeMounts", number)
                    if mount != _parents(obj, trials):
                        yield from _mount(mount, claim, own, trials, at)


def _folder(obj: Object, batch: str) -> dict[str, str]:
    """Return the mount fields of a trial's own folder, by a variable in templates of many trials."""
    if runs_all_trials(obj):
        return trial_folder_by_variable(batch, COMPLETION_INDEX_VARIABLE)
    if obj.kind == RUNTIME_KIND:
        return trial_folder_by_variable(batch, INDEX_VARIABLE)
    return trial_folder(batch, str(trial_index(obj)))


def _parents(obj: Object, trials: BatchContext) -> Volume | None:
    """Return the mount of the checkpoints that a trial continues from, if it has a parent."""
    folder = {str(row): folder for row, folder in trials.parent_folders.items()}.get(trial_index(obj) or "")
    if folder is None or runs_all_trials(obj) or obj.kind != "Job":
        return None
    return parent_mount(trials.settings.results.checkpoints_volume, folder)


def _mount(
    mount: Volume, claim: str, own: Mapping[str, str], trials: BatchContext, at: DocumentPath
) -> Iterator[Finding]:
    subpaths = {key: mount[key] for key in SUBPATHS if key in mount}
    if not is_data_volume(str(mount.get("name"))):
        if subpaths != own:
            message = f"must have {safe_json(dict(own))}, the trial's own folder, got {safe_json(subpaths)}"
            yield Finding(at, message, CODE)
        return
    paths = [*_datasets(mount, claim, trials)]
    if mount.get("readOnly") is not True or subpaths not in paths:
        options = " or ".join(map(safe_json, paths)) or "none"
        message = f"must be read-only and the folder of a dataset ({options}), got {safe_json(dict(mount))}"
        yield Finding(at, message, CODE)


def _datasets(mount: Volume, claim: Any, trials: BatchContext) -> Iterator[dict[str, str]]:
    """Yield the mount fields of a claim's datasets; never the whole results volume, not even read-only.

    One of several is mounted in the folder of its name.
    """
    results = frozenset(trials.settings.results.claims.values())
    for dataset in trials.settings.trials.datasets.values():
        is_placed = (
            mount.get("name") == DATA_VOLUME or mount.get("mountPath") == f"{DATA_PATH}/{dataset.name}"
        )
        if is_placed and dataset.claim == claim and (dataset.path or claim not in results):
            yield {"subPath": dataset.path} if dataset.path else {}


def _volume(volume: Volume, trials: BatchContext, at: DocumentPath) -> Iterator[Finding]:
    name = str(volume.get("name"))
    if name == AUTHORITIES_VOLUME and trials.settings.network.authorities is not None:
        yield from _authorities(volume, trials.settings.network.authorities, at)
        return
    if name == TOKENS_VOLUME:  # compared with the pool, as the account is
        return
    if _has_token(volume):
        yield Finding(at, f"must not hold a token, got {safe_json(dict(volume))}", CODE)
    is_known = name in PLAIN | WRITABLE | OF_STORE | {CREDENTIALS} or is_data_volume(name)
    if not is_known and not name.startswith(SECRET):
        yield Finding(at, f"must be a volume of a trial, got {safe_repr(name)}", CODE)
    for named in sorted(map(str, _config_maps(volume))):
        if named not in trials.config_maps:
            yield Finding(at, f"must be a ConfigMap of the batch, got {safe_repr(named)}", CODE)
    claim = volume.get("persistentVolumeClaim")
    if claim is not None and claim.get("claimName") not in _claims(name, trials):
        actual = safe_repr(claim.get("claimName"))
        message = f"must be a claim that the settings give to {safe_repr(name)}, got {actual}"
        yield Finding((*at, "persistentVolumeClaim"), message, CODE)
    secret = volume.get("secret")
    if secret is not None and not _is_listed(name, secret, trials):
        message = (
            f"must be a key of a Secret that the settings list, got {safe_repr(secret.get('secretName'))}"
        )
        yield Finding((*at, "secret"), message, CODE, "list it under secrets in sweepledger.yaml")
    medium = (volume.get("emptyDir") or {}).get("medium")
    if medium is not None and name != "shared-memory":
        yield Finding((*at, "emptyDir", "medium"), f"must be absent, got {safe_repr(medium)}", CODE)


def _authorities(volume: Volume, named: Authorities, at: DocumentPath) -> Iterator[Finding]:
    wanted = {"name": AUTHORITIES_VOLUME, "configMap": {"name": named.config_map, "defaultMode": 0o444}}
    if volume != wanted:
        message = f"must be the ConfigMap of the settings' authorities, got {safe_json(dict(volume))}"
        yield Finding(at, message, CODE)


def _has_token(volume: Volume) -> bool:
    sources = (volume.get("projected") or {}).get("sources") or ()
    return any(source.get("serviceAccountToken") is not None for source in sources)


def _config_maps(volume: Volume) -> Iterator[Any]:
    places = [volume, *((volume.get("projected") or {}).get("sources") or ())]
    yield from (place["configMap"].get("name") for place in places if place.get("configMap"))


def _claims(volume: str, trials: BatchContext) -> frozenset[str]:
    if is_data_volume(volume):
        return trials.settings.trials.dataset_claims
    claim = trials.settings.results.claims.get(volume)
    return frozenset() if claim is None else frozenset({claim})


def _is_listed(volume: str, source: Volume, trials: BatchContext) -> bool:
    code = trials.settings.git.code
    if volume == CREDENTIALS:
        return code is not None and code.secret is not None and source.get("secretName") == code.secret
    bucket = trials.settings.results.bucket
    if volume in {STORE_CREDENTIALS, STORE_SEALS}:
        own = None if bucket is None else bucket.secret if volume == STORE_CREDENTIALS else bucket.seals
        return own is not None and source.get("secretName") == own
    listed = trials.settings.trials.secrets.get(volume.removeprefix(SECRET))
    if listed is None or not volume.startswith(SECRET):
        return False
    only = [{"key": listed.key, "path": listed.key}]
    return source.get("secretName") == listed.secret and source.get("items") == only
