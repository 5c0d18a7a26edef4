"""A Job's pod template as a PodSpec. What a process cannot be given becomes a problem."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath

from generator.engine.local.place import Place
from generator.engine.local.quantities import Resources
from generator.engine.local.workload import (
    ConfigSource,
    ConfigVolume,
    DataVolume,
    FieldRef,
    KeptVolume,
    Literal,
    Mount,
    PodSpec,
    ResultsVolume,
    ScratchVolume,
    Variable,
    Volume,
)
from generator.structs import quantities

FIELD = re.compile(r"metadata\.(?:uid|name|namespace|(?:labels|annotations)\['[^']+'\])|spec\.nodeName")

CLAIMS: Mapping[str, Volume] = {
    "artifacts": KeptVolume("artifacts"),
    "checkpoints": KeptVolume("checkpoints"),
    "data": DataVolume(),
    "results": ResultsVolume(),
}
"""The claims of a trial by the name of their volume: which claim it is does not matter on one machine."""

CODE = "code"
"""The volume into which a cluster clones the code: here the refusal of the clone says all of it."""

DEFAULT_GRACE = 30.0
"""Kubernetes' own."""


def parse(template: Place) -> PodSpec:
    """Read a pod template, noting what cannot be honoured."""
    metadata = template.child("metadata")
    labels, annotations = metadata.table("labels"), metadata.table("annotations")
    metadata.meaningless("creationTimestamp")
    metadata.close()
    spec = template.child("spec")
    template.close()
    spec.only("restartPolicy", "Never")
    # Rights, tokens, queues and nodes are the cluster's: a process has those of the person who started it.
    spec.meaningless("automountServiceAccountToken", "enableServiceLinks", "securityContext")
    spec.meaningless("serviceAccountName", "priorityClassName", "schedulerName", "dnsPolicy")
    spec.meaningless("affinity", "imagePullSecrets", "nodeSelector", "tolerations")
    for container in spec.children("initContainers"):
        container.refuse(
            "name",
            f"must be absent on this machine, where only the trial runs, got {container.text('name')!r}",
            hint="code that a trial clones in the cluster is taken from this repository here: "
            "try it with `run: {code: {mode: image}}`",
        )
    grace, deadline = spec.count("terminationGracePeriodSeconds"), spec.count("activeDeadlineSeconds")
    volumes = dict(_volume(volume) for volume in spec.children("volumes"))
    containers = list(spec.children("containers"))
    spec.close()
    if len(containers) != 1:
        spec.refuse("containers", f"must hold exactly one container, got {len(containers)}")
    pod = _container(containers[0] if containers else spec.child("containers"), volumes)
    return replace(
        pod,
        grace=DEFAULT_GRACE if grace is None else float(grace),
        deadline=deadline,
        labels=labels,
        annotations=annotations,
    )


def _container(container: Place, volumes: Mapping[str, Volume]) -> PodSpec:
    container.text("name")
    # No image runs here, and the records say so; the launcher finds its termination log by environment.
    container.meaningless("image", "imagePullPolicy", "securityContext")
    container.meaningless("terminationMessagePath", "terminationMessagePolicy")
    command, arguments = container.texts("command"), container.texts("args")
    if not command:
        container.refuse("command", "must say what to run: no image is there to know")
    working_dir = container.text("workingDir")
    if not working_dir.startswith("/"):
        container.refuse("workingDir", f"must be an absolute path, got {working_dir!r}")
    found = [_variable(place) for place in container.children("env")]
    environment = tuple(variable for variable in found if variable is not None)
    mounts = tuple(_mount(place, volumes, working_dir) for place in container.children("volumeMounts"))
    resources = container.child("resources")
    limits, limited_scratch = _resources(resources.child("limits"))
    requests, wanted_scratch = _resources(resources.child("requests"))
    resources.close()
    container.close()
    return PodSpec(
        command=command,
        arguments=arguments,
        working_dir=working_dir,
        environment=environment,
        mounts=mounts,
        volumes=volumes,
        # As Kubernetes does it: what is limited but not requested is requested up to the limit.
        requests=Resources(
            requests.milli_cpus or limits.milli_cpus,
            requests.memory or limits.memory,
            requests.gpus or limits.gpus,
        ),
        limits=limits,
        scratch_limit=limited_scratch or wanted_scratch,
        grace=DEFAULT_GRACE,
        deadline=None,
    )


def _variable(place: Place) -> Variable | None:
    name = place.text("name")
    if "valueFrom" not in place:
        place.take("valueFrom")
        value = place.text("value")
        place.close()
        return Literal(name, value)
    source = place.child("valueFrom")
    reference = source.child("fieldRef")
    source.close()
    place.close()
    reference.only("apiVersion", "v1")
    field = reference.text("fieldPath")
    reference.close()
    if FIELD.fullmatch(field):
        return FieldRef(name, field)
    reference.refuse("fieldPath", f"is not known to the local engine, got {field!r}")
    return None


def _mount(place: Place, volumes: Mapping[str, Volume], working_dir: str) -> Mount:
    name, path = place.text("name"), place.text("mountPath")
    place.meaningless("readOnly")  # by contract, as the read-only root: no sandbox
    plain, expression = place.text("subPath"), place.text("subPathExpr")
    place.close()
    if name not in volumes:
        place.refuse("name", f"must be one of the pod's volumes, got {name!r}")
    place_of, working = PurePosixPath(path), PurePosixPath(working_dir)
    inside = name != CODE and (place_of.is_relative_to(working) or working.is_relative_to(place_of))
    if not path.startswith("/") or (working_dir and inside):
        place.refuse("mountPath", f"must be an absolute path outside the working directory, got {path!r}")
    sub_path = expression or plain
    if sub_path.startswith("/") or ".." in sub_path.split("/"):
        place.refuse("subPath", f"must stay inside the volume, got {sub_path!r}")
    return Mount(name, path.rstrip("/"), sub_path, expanded=bool(expression))


def _volume(place: Place) -> tuple[str, Volume]:
    name = place.text("name")
    volume: Volume = ConfigVolume(())
    if "configMap" in place:
        volume = ConfigVolume((_config(place.child("configMap"), "name"),))
    elif "projected" in place:
        volume = _projected(place.child("projected"))
    elif "emptyDir" in place or place.take("emptyDir") == {}:
        volume = _scratch(place.child("emptyDir"))
    elif "persistentVolumeClaim" in place:
        claim = place.child("persistentVolumeClaim")
        claim.text("claimName")
        claim.meaningless("readOnly")
        claim.close()
        if name not in CLAIMS:
            place.refuse("name", f"must be one of {sorted(CLAIMS)} for a claim on this machine, got {name!r}")
        volume = CLAIMS.get(name, volume)
    elif "secret" in place:
        secret = place.child("secret").text("secretName")
        hint = "run this sweep in the cluster, or try it here without `run.secrets`"
        place.refuse("secret", f"is the Secret {secret!r}, which stays in the cluster", hint=hint)
    else:
        place.refuse("", "is no kind of volume that the local engine has")
    place.close()
    return name, volume


def _projected(place: Place) -> ConfigVolume:
    place.meaningless("defaultMode")
    sources: list[ConfigSource] = []
    for source in place.children("sources"):
        sources.append(_config(source.child("configMap"), "name"))
        source.close()
    place.close()
    return ConfigVolume(tuple(sources))


def _config(place: Place, key: str) -> ConfigSource:
    name = place.text(key)
    place.meaningless("defaultMode")  # files are always written read-only
    items: list[tuple[str, str]] = []
    for item in place.children("items"):
        items.append((item.text("key"), item.text("path")))
        item.close()
        if items[-1][1].startswith("/") or ".." in items[-1][1].split("/"):
            item.refuse("path", f"must stay inside the volume, got {items[-1][1]!r}")
    place.close()
    return ConfigSource(name, tuple(items) or None)


def _scratch(place: Place) -> ScratchVolume:
    place.only("medium", "Memory")
    limit = _amount(place, "sizeLimit")
    place.close()
    return ScratchVolume(limit or None)


def _resources(place: Place) -> tuple[Resources, int | None]:
    amounts = Resources(
        _amount(place, "cpu", unit=1000), _amount(place, "memory"), _amount(place, "nvidia.com/gpu")
    )
    scratch = _amount(place, "ephemeral-storage")
    place.close()
    return amounts, scratch or None


def _amount(place: Place, key: str, *, unit: int = 1) -> int:
    value = place.take(key)
    if value is None:
        return 0
    try:
        return quantities.whole(value, unit=unit)
    except ValueError as error:
        place.refuse(key, str(error))
        return 0
