"""The volumes of trials: from where the settings say, and each trial writes into its own folder only."""

from collections.abc import Iterator, Mapping
from typing import Any

from generator.policy.findings import Finding
from generator.policy.ours.trials import COMPLETION_INDEX, SHARED, Trials, index, is_indexed
from generator.policy.workloads import Object
from generator.reader.paths import Path
from generator.reader.shown import shown, written
from generator.structs.labels import CHECKPOINTS, INDEX_VARIABLE, PARENT_PATH

CODE = "volume-not-allowed"

PLAIN = frozenset({"clone", "code", "launcher", "scratch", "shared-memory", "table"})
WRITABLE = frozenset({"artifacts", "checkpoints", "results"})
DATA = "data"
CREDENTIALS = "clone-credentials"
SECRET = "secret-"  # noqa: S105 - how the volume of a secret is called
SUBPATHS = ("subPath", "subPathExpr")

Volume = Mapping[str, Any]


def check(thing: Object, trials: Trials) -> Iterator[Finding]:
    """Find what pods would mount beside what is theirs."""
    own = _folder(thing, trials.batch)
    for pod in thing.pods:
        for number, volume in enumerate(pod.volumes):
            yield from _volume(volume, trials, (*pod.at, "volumes", number))
        volumes = {volume.get("name"): volume for volume in pod.volumes}
        for container in pod.containers:
            for number, mount in enumerate(container.data.get("volumeMounts") or ()):
                claim = (volumes.get(mount.get("name"), {}).get("persistentVolumeClaim") or {}).get(
                    "claimName"
                )
                if claim is not None:
                    at = (*container.path, "volumeMounts", number)
                    if mount != _parents(thing, trials):
                        yield from _mount(mount, claim, own, trials, at)


def _folder(thing: Object, batch: str) -> dict[str, str]:
    """Say which folder is a trial's own: in templates of many, which one the pod itself finds out."""
    if is_indexed(thing):
        return {"subPathExpr": f"{batch}/$({COMPLETION_INDEX})"}
    if thing.kind == SHARED:
        return {"subPathExpr": f"{batch}/$({INDEX_VARIABLE})"}
    return {"subPath": f"{batch}/{index(thing)}"}


def _parents(thing: Object, trials: Trials) -> Volume | None:
    """Give the one mount by which a trial reads the checkpoints that its batch says it goes on from."""
    folder = {str(row): folder for row, folder in trials.parent_folders.items()}.get(index(thing) or "")
    if folder is None or is_indexed(thing) or thing.kind != "Job":
        return None
    return {
        "name": "results" if trials.settings.results.checkpoints is None else CHECKPOINTS,
        "mountPath": PARENT_PATH,
        "readOnly": True,
        "subPath": f"{folder}/{CHECKPOINTS}",
    }


def _mount(mount: Volume, claim: str, own: Mapping[str, str], trials: Trials, at: Path) -> Iterator[Finding]:
    found = {key: mount[key] for key in SUBPATHS if key in mount}
    if mount.get("name") != DATA:
        if found != own:
            message = f"must have {written(dict(own))}, the trial's own folder, got {written(found)}"
            yield Finding(at, message, CODE)
        return
    paths = [*_datasets(claim, trials)]
    if mount.get("readOnly") is not True or found not in paths:
        options = " or ".join(map(written, paths)) or "none"
        message = f"must be read-only and the folder of a dataset ({options}), got {written(dict(mount))}"
        yield Finding(at, message, CODE)


def _datasets(claim: Any, trials: Trials) -> Iterator[dict[str, str]]:
    """Give the folders of a claim that hold data; the whole volume of results is none, not even to read."""
    results = {found for name in WRITABLE for found in _claims(name, trials)}
    for dataset in trials.settings.datasets.values():
        if dataset.claim == claim and (dataset.path or claim not in results):
            yield {"subPath": dataset.path} if dataset.path else {}


def _volume(volume: Volume, trials: Trials, at: Path) -> Iterator[Finding]:
    name = str(volume.get("name"))
    if name not in PLAIN | WRITABLE | {CREDENTIALS, DATA} and not name.startswith(SECRET):
        yield Finding(at, f"must be a volume of a trial, got {shown(name)}", CODE)
    for named in sorted(map(str, _config_maps(volume))):
        if named not in trials.config_maps:
            yield Finding(at, f"must be a ConfigMap of the batch, got {shown(named)}", CODE)
    claim = volume.get("persistentVolumeClaim")
    if claim is not None and claim.get("claimName") not in _claims(name, trials):
        found = shown(claim.get("claimName"))
        message = f"must be a claim that the settings give to {shown(name)}, got {found}"
        yield Finding((*at, "persistentVolumeClaim"), message, CODE)
    secret = volume.get("secret")
    if secret is not None and not _is_listed(name, secret, trials):
        message = f"must be a key of a Secret that the settings list, got {shown(secret.get('secretName'))}"
        yield Finding((*at, "secret"), message, CODE, "list it under secrets in sweepledger.yaml")
    medium = (volume.get("emptyDir") or {}).get("medium")
    if medium is not None and name != "shared-memory":
        yield Finding((*at, "emptyDir", "medium"), f"must be absent, got {shown(medium)}", CODE)


def _config_maps(volume: Volume) -> Iterator[Any]:
    places = [volume, *((volume.get("projected") or {}).get("sources") or ())]
    yield from (place["configMap"].get("name") for place in places if place.get("configMap"))


def _claims(volume: str, trials: Trials) -> set[str]:
    results = trials.settings.results
    owned = {"artifacts": results.artifacts, "checkpoints": results.checkpoints, "results": results.claim}
    if volume == DATA:
        return {dataset.claim for dataset in trials.settings.datasets.values()}
    claim = owned.get(volume)
    return set() if claim is None else {claim}


def _is_listed(volume: str, source: Volume, trials: Trials) -> bool:
    code = trials.settings.code
    if volume == CREDENTIALS:
        return code is not None and code.secret is not None and source.get("secretName") == code.secret
    asked = trials.settings.secrets.get(volume.removeprefix(SECRET))
    if asked is None or not volume.startswith(SECRET):
        return False
    only = [{"key": asked.key, "path": asked.key}]
    return source.get("secretName") == asked.secret and source.get("items") == only
