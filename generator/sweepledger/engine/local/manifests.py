"""The rendered manifests of a batch, parsed into a BatchSpec or into problems. Pure.

A key that the parser does not read is a problem, so that nothing is ignored silently.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from sweepledger.engine.local.code_clone import CodeClone, is_sidecar, take_clone
from sweepledger.engine.local.job_spec import (
    BatchSpec,
    ConfigSource,
    ConfigVolume,
    DataVolume,
    ExitCodeRule,
    FailureAction,
    FieldVariable,
    JobSpec,
    KeptVolume,
    LiteralVariable,
    Mount,
    PodSpec,
    PodVolume,
    ResourceAmounts,
    ResultsVolume,
    ScratchVolume,
    TrialRow,
    TrialTable,
    Variable,
)
from sweepledger.engine.local.manifest_node import ManifestNode
from sweepledger.formats import json, launch_json
from sweepledger.formats.hyperparams_csv import replicate_of, row_digest, trial_id_of
from sweepledger.problems import Problem
from sweepledger.structs import quantities
from sweepledger.structs.kubernetes import (
    CHECKPOINTS_FOLDER,
    CODE_VARIABLE,
    DATA_PATH,
    DATA_VOLUME,
    INDEX_VARIABLE,
    PARENT_FOLDER_VARIABLE,
    PARENT_PATH,
    PARENT_VOLUME,
    RESULTS_VOLUME,
    SCRATCH_PATH,
    STORE_CREDENTIALS,
    STORE_SEALS,
    STORE_VOLUME,
    is_data_volume,
)
from sweepledger.structs.node_pool import GPU_RESOURCE
from sweepledger.structs.run_config import Pack
from sweepledger.structs.values import digest

FIELD = re.compile(r"metadata\.(?:uid|name|namespace|(?:labels|annotations)\['[^']+'\])|spec\.nodeName")

CLAIMS: Mapping[str, PodVolume] = {
    "artifacts": KeptVolume("artifacts"),
    "checkpoints": KeptVolume("checkpoints"),
    "results": ResultsVolume(),
}
"""Claims by the name of their volume, data apart; the name of the claim does not matter on one machine."""

OF_SIDECAR = frozenset({STORE_VOLUME, STORE_CREDENTIALS, STORE_SEALS})
"""Volumes that only the sidecar of a bucket mounts."""
DEFAULT_GRACE = 30.0
"""The default of Kubernetes."""


def parse_pod(template: ManifestNode, clone: CodeClone | None = None) -> PodSpec:
    """Return the pod of a template, which may clone its code as `clone` says; problems are added to the node."""
    metadata = template.child("metadata")
    labels, annotations = metadata.table("labels"), metadata.table("annotations")
    metadata.meaningless("creationTimestamp", "finalizers")
    metadata.close()
    spec = template.child("spec")
    template.close()
    spec.only("restartPolicy", "Never")
    # Rights, tokens, queues and nodes belong to the cluster: a process has the rights of its user.
    spec.meaningless("automountServiceAccountToken", "enableServiceLinks", "securityContext")
    spec.meaningless(
        "serviceAccountName", "priorityClassName", "schedulerName", "dnsPolicy", "runtimeClassName"
    )
    spec.meaningless("affinity", "imagePullSecrets", "nodeSelector", "tolerations")
    unused = take_clone(spec, clone) | OF_SIDECAR
    parent = _restored_parent(spec)
    grace, deadline = spec.count("terminationGracePeriodSeconds"), spec.count("activeDeadlineSeconds")
    volumes = dict(_volume(node) for node in spec.children("volumes") if node.data.get("name") not in unused)
    containers = list(spec.children("containers"))
    spec.close()
    if len(containers) != 1:
        spec.refuse("containers", f"must contain exactly one container, got {len(containers)}")
    pod = _container(containers[0] if containers else spec.child("containers"), volumes, unused)
    return replace(
        pod,
        mounts=tuple(
            replace(mount, sub_path=parent) if mount.volume == PARENT_VOLUME else mount
            for mount in pod.mounts
        ),
        grace=DEFAULT_GRACE if grace is None else float(grace),
        deadline=deadline,
        labels=labels,
        annotations=annotations,
    )


def _restored_parent(spec: ManifestNode) -> str:
    """Return the folder of checkpoints that the sidecar of a bucket would restore; here it is among the results."""
    sidecars = [node.data for node in spec.children("initContainers") if is_sidecar(node.data)]
    for variable in (variable for sidecar in sidecars for variable in sidecar.get("env") or ()):
        if variable.get("name") == PARENT_FOLDER_VARIABLE:
            return f"{variable.get('value')}/{CHECKPOINTS_FOLDER}"
    return ""


def _container(container: ManifestNode, volumes: Mapping[str, PodVolume], unused: frozenset[str]) -> PodSpec:
    container.text("name")
    # No image is used, which records show; a variable tells the launcher where its termination log is.
    container.meaningless("image", "imagePullPolicy", "securityContext")
    container.meaningless("terminationMessagePath", "terminationMessagePolicy")
    command, arguments = container.texts("command"), container.texts("args")
    if not command:
        container.refuse("command", "must be set, because no image is used on this machine")
    container.only("workingDir", SCRATCH_PATH)
    variables = [_variable(node) for node in container.children("env")]
    environment = tuple(variable for variable in variables if variable is not None)
    code = next((variable for variable in environment if variable.name == CODE_VARIABLE), None)
    folder = code.value if isinstance(code, LiteralVariable) else ""
    if not folder.startswith("/"):
        container.refuse("env", f"must set {CODE_VARIABLE} to an absolute path, got {folder!r}")
    mounts = tuple(
        _mount(node, volumes, folder)
        for node in container.children("volumeMounts")
        if node.data.get("name") not in unused
    )
    resources = container.child("resources")
    limits, limited_scratch = _resources(resources.child("limits"))
    requests, wanted_scratch = _resources(resources.child("requests"))
    resources.close()
    container.close()
    return PodSpec(
        command=command,
        arguments=arguments,
        code=folder,
        environment=environment,
        mounts=mounts,
        volumes=volumes,
        # As in Kubernetes, the limit is the default of the request.
        requests=ResourceAmounts(
            requests.milli_cpus or limits.milli_cpus,
            requests.memory or limits.memory,
            requests.gpus or limits.gpus,
        ),
        limits=limits,
        scratch_limit=limited_scratch or wanted_scratch,
        grace=DEFAULT_GRACE,
        deadline=None,
    )


def _variable(node: ManifestNode) -> Variable | None:
    name = node.text("name")
    if "valueFrom" not in node:
        node.take("valueFrom")
        value = node.text("value")
        node.close()
        return LiteralVariable(name, value)
    source = node.child("valueFrom")
    reference = source.child("fieldRef")
    source.close()
    node.close()
    reference.only("apiVersion", "v1")
    field = reference.text("fieldPath")
    reference.close()
    if FIELD.fullmatch(field):
        return FieldVariable(name, field)
    reference.refuse("fieldPath", f"is not supported by the local engine, got {field!r}")
    return None


def _mount(node: ManifestNode, volumes: Mapping[str, PodVolume], code: str) -> Mount:
    name, path = node.text("name"), node.text("mountPath")
    node.meaningless("readOnly")  # trials are not confined on this machine
    plain, expression = node.text("subPath"), node.text("subPathExpr")
    node.close()
    if name not in volumes:
        node.refuse("name", f"must be one of the pod's volumes, got {name!r}")
    mount_path, of_code = PurePosixPath(path), PurePosixPath(code)
    inside = mount_path.is_relative_to(of_code) or of_code.is_relative_to(mount_path)
    if not path.startswith("/") or (code and inside):
        node.refuse("mountPath", f"must be an absolute path outside the code, got {path!r}")
    sub_path = expression or plain
    if sub_path.startswith("/") or ".." in sub_path.split("/"):
        node.refuse("subPath", f"must stay inside the volume, got {sub_path!r}")
    if isinstance(volumes.get(name), DataVolume) and mount_path.is_relative_to(DATA_PATH):
        path = DATA_PATH  # several datasets are in one folder here, by their names
    return Mount(name, path.rstrip("/"), sub_path, expanded=bool(expression))


def _volume(node: ManifestNode) -> tuple[str, PodVolume]:
    name = node.text("name")
    volume: PodVolume = ConfigVolume(())
    if "configMap" in node:
        volume = ConfigVolume((_config_source(node.child("configMap"), "name"),))
    elif "projected" in node:
        volume = _projected(node.child("projected"))
    elif "emptyDir" in node or node.take("emptyDir") == {}:
        volume = _scratch(node.child("emptyDir"))
        # In the cluster these end with the pod; here the folder is kept, and data has one already.
        if name in {RESULTS_VOLUME, PARENT_VOLUME}:
            volume = ResultsVolume()
        elif is_data_volume(name):
            volume = DataVolume()
    elif "persistentVolumeClaim" in node:
        claim = node.child("persistentVolumeClaim")
        claim.text("claimName")
        claim.meaningless("readOnly")
        claim.close()
        known = DataVolume() if is_data_volume(name) else CLAIMS.get(name)
        if known is None:
            names = sorted((*CLAIMS, DATA_VOLUME))
            node.refuse("name", f"must be one of {names} for a claim on this machine, got {name!r}")
        volume = known or volume
    elif "secret" in node:
        secret = node.child("secret").text("secretName")
        hint = "run this sweep in the cluster, or remove `run.secrets` to try it here"
        node.refuse(
            "secret",
            f"must be absent on this machine, which does not have the cluster's Secret {secret!r}",
            hint=hint,
        )
    else:
        node.refuse("", "has a volume type that the local engine does not support")
    node.close()
    return name, volume


def _projected(node: ManifestNode) -> ConfigVolume:
    node.meaningless("defaultMode")
    sources: list[ConfigSource] = []
    for source in node.children("sources"):
        if "serviceAccountToken" in source:  # this machine has no accounts: the file is missing
            source.meaningless("serviceAccountToken")
            source.close()
            continue
        sources.append(_config_source(source.child("configMap"), "name"))
        source.close()
    node.close()
    return ConfigVolume(tuple(sources))


def _config_source(node: ManifestNode, key: str) -> ConfigSource:
    name = node.text(key)
    node.meaningless("defaultMode")  # files are always written read-only
    items: list[tuple[str, str]] = []
    for item in node.children("items"):
        items.append((item.text("key"), item.text("path")))
        item.close()
        if items[-1][1].startswith("/") or ".." in items[-1][1].split("/"):
            item.refuse("path", f"must stay inside the volume, got {items[-1][1]!r}")
    node.close()
    return ConfigSource(name, tuple(items) or None)


def _scratch(node: ManifestNode) -> ScratchVolume:
    node.only("medium", "Memory")
    limit = _amount(node, "sizeLimit")
    node.close()
    return ScratchVolume(limit or None)


def _resources(node: ManifestNode) -> tuple[ResourceAmounts, int | None]:
    amounts = ResourceAmounts(
        _amount(node, "cpu", unit=1000), _amount(node, "memory"), _amount(node, GPU_RESOURCE)
    )
    scratch = _amount(node, "ephemeral-storage")
    node.close()
    return amounts, scratch or None


def _amount(node: ManifestNode, key: str, *, unit: int = 1) -> int:
    value = node.take(key)
    if value is None:
        return 0
    try:
        return quantities.whole_quantity(value, unit=unit)
    except ValueError as error:
        node.refuse(key, str(error))
        return 0


NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?", re.ASCII)
KEY = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)
"""Names become folders and keys become files, so neither may contain a path."""


def parse_batch(
    name: str,
    manifests: Sequence[Mapping[str, Any]],
    *,
    file: str | None = None,
    clone: CodeClone | None = None,
) -> BatchSpec | tuple[Problem, ...]:
    """Return the parsed manifests of a batch, or all problems if there are any.

    `clone` is how its pods may clone their code; None: not at all.
    """
    problems: list[Problem] = []
    nodes = [_manifest_node(manifest, file or f"overlays/active/{name}", problems) for manifest in manifests]
    config_maps = dict(_config_map(node) for node in nodes if node.take("kind") == "ConfigMap")
    # Independent of the order in which kustomize prints them.
    shared = digest({key: digest(value) for key, value in config_maps.items()})
    jobs = [
        _job(name, node, digest([shared, manifest]), clone)
        for node, manifest in zip(nodes, manifests, strict=True)
        if node.take("kind") == "Job"
    ]
    for node in nodes:
        node.close()
    table = _table(config_maps)
    batch = _manifest_node({}, file or f"overlays/active/{name}", problems)
    for message in _contradictions(name, jobs, config_maps, table):
        batch.refuse("", message)
    if problems or isinstance(table, str):
        return tuple(sorted(_without_repeats(problems)))
    jobs = [job if table.pack is None else _packed(job, table) for job in jobs]
    return BatchSpec(name, tuple(sorted(jobs, key=lambda job: job.indexes)), config_maps, table)


def _packed(job: JobSpec, table: TrialTable) -> JobSpec:
    """Return a Job whose pods run several rows: their launchers count the attempts at each row."""
    rows = tuple(range(len(table.rows)))
    return replace(job, pack=table.pack, indexes=rows, retries=table.attempts - 1, max_failed=None)


def _without_repeats(problems: Iterable[Problem]) -> Iterator[Problem]:
    """Yield the problems; of equal problems in different Jobs, only the first."""
    seen: set[tuple[str, str]] = set()
    for problem in sorted(problems):
        key = (problem.path.partition(".")[2], problem.message)
        if not key[0] or key not in seen:
            yield problem
        seen.add(key)


def _contradictions(
    name: str, jobs: Sequence[JobSpec], config_maps: Mapping[str, Mapping[str, str]], table: TrialTable | str
) -> Iterator[str]:
    """Yield contradictions between manifests that are valid separately."""
    if not jobs:
        yield "must contain a Job"
    if isinstance(table, str):
        yield table
    elif table.pack is not None and any(
        job.has_own_row or len(job.indexes) != table.pack.pods(len(table.rows)) for job in jobs
    ):
        yield f"must have {table.pack.pods(len(table.rows))} completions in one Job, as launch.json packs its rows"
    elif table.pack is None and any(job.indexes[-1] >= len(table.rows) for job in jobs):
        yield f"must have a row for every index, got {len(table.rows)} rows"
    for text in [name, *(job.name for job in jobs), *(key for job in jobs for key in job.pod.volumes)]:
        if NAME.fullmatch(text) is None:
            yield f"must have names of lower-case letters, digits and hyphens, got {text!r}"
    for job in jobs:
        sources = [volume.sources for volume in job.pod.volumes.values() if isinstance(volume, ConfigVolume)]
        for source in itertools.chain.from_iterable(sources):
            data = config_maps.get(source.name)
            if data is None or any(key not in data for key, _ in source.items or ()):
                yield f"must contain the ConfigMap {source.name!r} that {job.name} mounts, with its keys"
        yield from _results_problems(job)


def _results_problems(job: JobSpec) -> Iterator[str]:
    """Yield problems unless every index has its own folder on the results volume, named by its number."""
    mounts = [
        mount
        for mount in job.pod.mounts
        if job.pod.volumes.get(mount.volume) == ResultsVolume() and mount.path != PARENT_PATH
    ]
    if len(mounts) != 1:
        yield f"must mount the results volume once in {job.name}, got {len(mounts)} mounts"
        return
    path = mounts[0].sub_path
    rest = path.replace("$(JOB_COMPLETION_INDEX)", "")
    is_shared = not job.has_own_row
    if not path or "$(" in rest or mounts[0].expanded is not is_shared or is_shared is (rest == path):
        yield f"must mount one folder of the results volume for each index of {job.name}, got {path!r}"


def _manifest_node(manifest: Mapping[str, Any], file: str, problems: list[Problem]) -> ManifestNode:
    name = (manifest.get("metadata") or {}).get("name", "")
    node = ManifestNode(manifest, f"{manifest.get('kind', '')}/{name}".strip("/"), file, problems)
    if manifest:
        known = {"Job": "batch/v1", "ConfigMap": "v1"}
        kind, version = node.take("kind"), node.take("apiVersion")
        if kind not in known or known[kind] != version:
            node.refuse(
                "kind", f"must be a Job of batch/v1 or a ConfigMap of v1, got {kind!r} of {version!r}"
            )
            node.meaningless(*manifest)
    return node


def _config_map(node: ManifestNode) -> tuple[str, Mapping[str, str]]:
    metadata = node.child("metadata")
    node.meaningless("immutable")  # all ConfigMaps are immutable here
    data = node.table("data")
    if bad := sorted(key for key in data if KEY.fullmatch(key) is None or ".." in key):
        node.refuse("data", f"must have keys that are file names, got {bad[0]!r}")
    return metadata.text("name"), data


def _job(batch: str, node: ManifestNode, identity: str, clone: CodeClone | None) -> JobSpec:
    metadata, spec = node.child("metadata"), node.child("spec")
    pod = parse_pod(spec.child("template"), clone)
    if (mode := spec.text("completionMode", "")) != "Indexed":
        spec.refuse("completionMode", f"must be 'Indexed', got {mode!r}")
    completions, parallelism = spec.count("completions"), spec.count("parallelism")
    row = _own_row(pod.environment)
    has_own_row = row is not None
    if not completions or (has_own_row and completions != 1):
        message = f"must be a whole number from 1, and 1 for the Job of one trial, got {completions}"
        spec.refuse("completions", message)
    indexes = tuple(range(completions or 1)) if row is None else (row,)
    retries = spec.count("backoffLimitPerIndex")
    if retries is None:
        spec.refuse("backoffLimitPerIndex", "must be a whole number, got none")
    spec.only("podReplacementPolicy", "Failed")
    spec.only("suspend", False)
    max_failed, deadline = spec.count("maxFailedIndexes"), spec.count("activeDeadlineSeconds")
    rules = _rules(spec.child("podFailurePolicy"))
    spec.close()
    return JobSpec(
        name=metadata.text("name"),
        batch=batch,
        namespace=metadata.text("namespace", "default"),
        has_own_row=has_own_row,
        indexes=indexes,
        parallelism=1 if parallelism is None else parallelism,
        retries=retries or 0,
        max_failed=max_failed,
        rules=rules,
        deadline=deadline,
        pod=pod,
        digest=identity,
    )


def _own_row(environment: Sequence[object]) -> int | None:
    """Return the row that the environment names; None if it names none."""
    values = (
        variable.value
        for variable in environment
        if isinstance(variable, LiteralVariable) and variable.name == INDEX_VARIABLE
    )
    return next((int(value) for value in values if value.isdecimal()), None)


def _rules(policy: ManifestNode) -> tuple[ExitCodeRule, ...]:
    rules: list[ExitCodeRule] = []
    for node in policy.children("rules"):
        action = node.text("action")
        if action not in set(FailureAction):
            node.refuse("action", f"must be one of {sorted(FailureAction)}, got {action!r}")
            action = FailureAction.COUNT
        if "onPodConditions" in node:
            _disruption(node, action)
        else:
            codes = node.child("onExitCodes")
            codes.text("containerName")
            operator, values = codes.text("operator"), codes.take("values")
            codes.close()
            if operator not in {"In", "NotIn"} or not isinstance(values, list | tuple):
                codes.refuse("operator", f"must be 'In' or 'NotIn' with a list of values, got {operator!r}")
            else:
                rules.append(
                    ExitCodeRule(FailureAction(action), frozenset(values), negated=operator == "NotIn")
                )
        node.close()
    policy.close()
    return tuple(rules)


def _disruption(node: ManifestNode, action: str) -> None:
    """Accept only Ignore for disruptions: a pod that is killed with its engine never counts as a failure."""
    for condition in node.children("onPodConditions"):
        condition.only("type", "DisruptionTarget")
        condition.only("status", "True")
        condition.close()
    if action != FailureAction.IGNORE:
        node.refuse("action", f"must be 'Ignore' for a disruption, got {action!r}")


def _table(config_maps: Mapping[str, Mapping[str, str]]) -> TrialTable | str:
    """Return the rows of the batch, or a problem's message."""
    files = {key: text for data in config_maps.values() for key, text in data.items()}
    try:
        launch = json.load(files[launch_json.LAUNCH_FILE])
        rows: list[TrialRow] = []
        for file in launch_json.read_table_layout(files[launch_json.LAUNCH_FILE]).files:
            header, *lines = files[file].rstrip("\n").split("\n")
            rows += (
                TrialRow(
                    trial_id_of(line),
                    row_digest(launch["program"], header, line),
                    launch["seed_base"] + replicate_of(header, line),
                )
                for line in lines
            )
        data = launch.get("pack", {})
        pack = Pack(data["rows"], data["at_once"]) if "rows" in data else None
        return TrialTable(launch["code"], launch["data"], tuple(rows), pack, data.get("attempts", 1))
    except (KeyError, TypeError, ValueError, IndexError) as error:
        return f"must contain launch.json and the table that it names: {type(error).__name__} {error}"
