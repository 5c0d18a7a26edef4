"""The values that the settings and `base/` give to the variables of the admission policies."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import product
from typing import Any

from sweepledger.render.base_files import CLONE, CLONE_CREDENTIALS, component_patch
from sweepledger.render.manifest import Manifest
from sweepledger.render.platform.objects import documents
from sweepledger.render.pod import authorities_mount, authorities_volume
from sweepledger.render.scheduling import scheduling_fields, topology_annotations
from sweepledger.structs import pod_fields
from sweepledger.structs.kubernetes import (
    CODE_CONTAINER,
    COMPLETION_INDEX_VARIABLE,
    DATA_VARIABLE,
    EGRESS_LABEL,
    INDEX_VARIABLE,
    PARENT_FOLDER_VARIABLE,
    PARENT_VARIABLE,
    RANK_VARIABLE,
    RECORD_FINALIZER,
    STORE_CONTAINER,
    TRIAL_ACCOUNT,
)
from sweepledger.structs.node_pool import Pool
from sweepledger.structs.program import LOCAL_IMAGE
from sweepledger.structs.run_config import Shape
from sweepledger.structs.settings import (
    API_SERVER_EGRESS,
    COLLECTOR_IMAGE,
    AdmissionSettings,
    BucketSettings,
    CodeSource,
    NetworkSettings,
    ResultsSettings,
    TrialSettings,
)
from sweepledger.structs.settings.network import PEERS_EGRESS
from sweepledger.structs.space import MAX_TRIALS
from sweepledger.structs.values import canonical_json

ANYWHERE = "kueue.x-k8s.io/podset-unconstrained-topology"
"""Annotation that Kueue writes into what it starts, where its queue has a topology and the pods ask for no place."""
CODE_VARIABLES = ("CODE_BRANCH", "CODE_PATH", "CODE_TREE", "CODE_URL")
"""Variables of the init container that fetches the code that the batch decides."""
STORE_VARIABLES = (
    "SWEEP_BATCH",
    INDEX_VARIABLE,
    PARENT_VARIABLE,
    PARENT_FOLDER_VARIABLE,
    "SWEEP_POD_UID",
    RANK_VARIABLE,
    "SWEEP_RESULTS",
    DATA_VARIABLE,
    "SWEEP_STORE_DATA",
    "SWEEP_STORE_DATA_BYTES",
    "SWEEP_STORE_DATA_DIGEST",
    "SWEEP_STORE_GRACE",
    "SWEEP_STORE_KEEP_CHECKPOINTS",
    "SWEEP_STORE_KEY_FILE",
    "SWEEP_STORE_MOST_BYTES",
    "SWEEP_STORE_PACK",
    "SWEEP_STORE_SECRETS",
    "SWEEP_STORE_STATE",
    "SWEEP_STORE_TRIALS",
    "SWEEP_STORE_URL",
)
"""Variables of the sidecar, beside those of its library."""

FIELDS = ("metadata.", "spec.")
"""How the paths of a pod's fields begin that a variable may have."""

Values = dict[str, Any]
ACCOUNT = "serviceAccountName"
CLOUD_VARIABLES = [
    *("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_DEFAULT_REGION"),
    *("AWS_REGION", "AWS_ROLE_ARN", "AWS_STS_REGIONAL_ENDPOINTS", "AWS_WEB_IDENTITY_TOKEN_FILE"),
    *("AZURE_AUTHORITY_HOST", "AZURE_CLIENT_ID", "AZURE_FEDERATED_TOKEN_FILE", "AZURE_TENANT_ID"),
]
"""What the webhooks of clouds add to pods of an account with an identity: no address of a bucket."""


def of_trials(
    trials: TrialSettings,
    network: NetworkSettings,
    results: ResultsSettings,
    admission: AdmissionSettings,
    code: CodeSource | None,
    max_trials: int | None,
    shapes: Iterable[Shape],
    appliers: Iterable[str],
    bases: Mapping[str, bytes],
) -> Values:
    """Return the values of `trials.yaml`, by variable, for a cluster that runs these distributed shapes."""
    finalizers = [RECORD_FINALIZER] if results.store.facts.holds_pods else []
    opened = [*sorted(network.egress.keys() - {API_SERVER_EGRESS}), PEERS_EGRESS]
    placed = _pods(trials)
    # Without a Secret for the bucket, the usual account has an identity of the cloud, too.
    has_identity = results.bucket is not None and results.bucket.secret is None
    return {
        "maxTrials": max_trials or MAX_TRIALS,
        "finalizers": finalizers,
        "owners": sorted({shape.kind.owner or shape.kind.kind for shape in shapes}),
        "egress": [f"{EGRESS_LABEL}{name}" for name in opened],
        **_images(trials, admission),
        **_queues(trials.pools, admission),
        "appliers": appliers,
        **placed,
        "identities": placed[ACCOUNT][0 if has_identity else 1 :],
        **_volumes(trials, network, code, results),
        **_store(trials, network, results.bucket, admission),
        **_variables(network, code, bases),
        "allowedVariables": admission.allowed_variables,
    }


SHARED = (
    *("queues", "poolsWithoutQueue", "placers", "nodeLabels", "gpuTypes", "taints", "imagePullSecrets"),
    "cloneVariables",
)
"""Lists that `workloads.yaml` has, too."""


def of_workloads(of_trials: Values) -> Values:
    """Return the values of `workloads.yaml`, by variable, from those of `trials.yaml`."""
    sidecar = {STORE_CONTAINER: of_trials["storeVariables"]} if "store" in of_trials else {}
    return {
        "initContainers": [CODE_CONTAINER, *sidecar],
        "storeVariables": [*sidecar.get(STORE_CONTAINER, ())],
        **{name: of_trials[name] for name in SHARED},
    }


def of_expiry(cron_job: Manifest, bucket: BucketSettings | None, admission: AdmissionSettings) -> Values:
    """Return the values of `expiry.yaml`, by variable: the fields of the CronJob that depend on settings."""
    pod = cron_job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    containers = (*pod["initContainers"], *pod["containers"])
    sources = {"secret": "secretName", "persistentVolumeClaim": "claimName", "configMap": "name"}
    words = {"persistentVolumeClaim": "claim"}
    named = [
        [
            f"{one['name']} {image} {one.get('workingDir', '')}"
            for image in sorted(with_mirrors(admission, {one["image"]}), key=one["image"].__ne__)
        ]
        for one in containers
    ]
    return {
        **_sidecars(admission),
        "containers": [one[0] for one in named],
        "mirrored": [list(each) for each in product(*named)][1:],
        "commands": [one["command"] for one in containers],
        "environments": [[f"{each['name']}={each['value']}" for each in one["env"]] for one in containers],
        "mounts": [
            [f"{each['name']} {each['mountPath']}" for each in one["volumeMounts"]] for one in containers
        ],
        "volumes": [
            " ".join(
                (volume["name"], words.get(kind, kind), *([source[sources[kind]]] if kind in sources else []))
            )
            for volume in pod["volumes"]
            for kind, source in volume.items()
            if kind != "name"
        ],
        "cloudVariables": CLOUD_VARIABLES if bucket is not None and bucket.secret is None else [],
        "nodeLabels": [f"{key}={value}" for key, value in pod.get("nodeSelector", {}).items()],
        "taints": [_taint(taint) for taint in pod.get("tolerations", ())],
        "priorityClasses": [pod["priorityClassName"]] if "priorityClassName" in pod else [],
    }


def _taint(taint: Mapping[str, str]) -> str:
    return f"{taint['key']}={taint.get('value', '')}:{taint['effect']}"


def _images(trials: TrialSettings, admission: AdmissionSettings) -> Values:
    """Return the allowed image repositories. Any digest is allowed, because a batch keeps its original image.

    If the settings name no image, specs choose freely.
    """
    default = trials.defaults.image
    named = {image.repository for image in trials.images.values()}
    if default != LOCAL_IMAGE and default not in trials.images:
        name = default.partition("@")[0]
        head, slash, last = name.rpartition("/")
        named.add(f"{head}{slash}{last.partition(':')[0]}")
    return {
        "images": _patterns(named),
        "mirrors": _patterns(with_mirrors(admission, named) - named),
        **_sidecars(admission),
    }


def _sidecars(admission: AdmissionSettings) -> Values:
    return {
        "sidecars": [
            f"{_patterns([name])[0]}={pattern}"
            for name, sidecar in sorted(admission.sidecars.items())
            for pattern in _patterns(with_mirrors(admission, {sidecar.image}))
        ],
        "sidecarVolumes": sorted({name for one in admission.sidecars.values() for name in one.volumes}),
    }


def with_mirrors(admission: AdmissionSettings, repositories: set[str]) -> set[str]:
    """Return repositories and their mirrors, which the cluster may substitute."""
    return repositories | {
        mirror + name.removeprefix(place)
        for name in repositories
        for place, mirror in admission.mirrors.items()
        if f"{name}/".startswith(f"{place}/")
    }


def _patterns(repositories: Iterable[str]) -> list[str]:
    return [re.escape(name).replace(r"\-", "-") for name in sorted(repositories)]


def _queues(pools: Mapping[str, Pool], admission: AdmissionSettings) -> Values:
    queues = {pool.queue for pool in pools.values() if pool.queue is not None}
    without = [name for name, pool in sorted(pools.items()) if pool.queue is None]
    namespace, _, account = admission.kueue.partition("/")
    placers = [f"system:serviceaccount:{namespace}:{account}"] if queues else []
    return {"queues": sorted(queues), "poolsWithoutQueue": without, "placers": placers}


def _pods(trials: TrialSettings) -> Values:
    pools = [pool for _, pool in sorted(trials.pools.items())]
    fields = [scheduling_fields(pool, has_gpus=False) for pool in pools]
    taints = {_taint(taint) for pod in fields for taint in pod.get("tolerations", ())}
    # Where the cluster is set so, the API server lets pods with GPUs bear the taint called like these.
    taints |= {f"{pool.gpu_resource}=:NoSchedule" for pool in pools if pool.node.gpu}
    places = {
        f"{key}={value}"
        for pool in pools
        for templates in (1, 2)
        for key, value in {**pool.pod.annotations, **topology_annotations(pool, templates)}.items()
    }
    tokens = {
        f"{pool.pod.service_account} {name} {token.audience}"
        for pool in pools
        for name, token in pool.pod.tokens.items()
    }
    devices = {f"{name}={template}" for pool in pools for name, template in pool.pod.claims.items()}
    return {
        **_fields(trials),
        "tokens": sorted(tokens),
        "devices": sorted(devices),
        "nodeLabels": sorted(
            {f"{key}={value}" for pod in fields for key, value in pod.get("nodeSelector", {}).items()}
        ),
        "gpuTypes": sorted({pool.gpu_type for pool in pools if pool.gpu_type is not None}),
        "taints": sorted(taints),
        "spreads": sorted({f"{key}={skew}" for pool in pools for key, skew in pool.pod.spread.items()}),
        "places": sorted({*places, f"{ANYWHERE}=true"}),
    }


def _fields(trials: TrialSettings) -> dict[str, list[Any]]:
    """Return the allowed values of each pod field that a single key sets; the usual account is the first account."""
    fields: dict[str, list[Any]] = {name: [] for name in pod_fields.field_paths(TrialSettings)}
    fields[ACCOUNT].append(TRIAL_ACCOUNT)
    stated = {
        (name, canonical_json(content)): content
        for value in (trials, *(pool.pod for pool in trials.pools.values()))
        for name, content in pod_fields.allowed(value)
    }
    for (name, _), content in sorted(stated.items()):
        if content not in fields[name]:
            fields[name].append(content)
    return fields


def _volumes(
    trials: TrialSettings, network: NetworkSettings, code: CodeSource | None, results: ResultsSettings
) -> Values:
    own = {one.secret for one in trials.secrets.values()}
    of_code = {code.secret} if code is not None and code.secret else set[str]()
    secrets = own | of_code
    if results.bucket is not None:
        secrets.update(results.bucket.secrets)
    return {
        "resultClaims": sorted(set(results.claims.values())),
        "dataClaims": sorted(trials.dataset_claims),
        "dataFolders": sorted(
            f"{data.claim}/{data.path}" for data in trials.datasets.values() if data.claim and data.path
        ),
        "configMaps": [] if network.authorities is None else [network.authorities.config_map],
        "secrets": sorted(secrets),
        "codeSecrets": sorted(of_code - own),
    }


def _store(
    trials: TrialSettings,
    network: NetworkSettings,
    bucket: BucketSettings | None,
    admission: AdmissionSettings,
) -> Values:
    if bucket is None:
        return {}
    images = {trials.images[COLLECTOR_IMAGE].repository} if COLLECTOR_IMAGE in trials.images else set()
    clients = network.client_variables(network.egress)
    copied = sorted((data.copied_from, name) for name, data in trials.datasets.items() if data.copied_from)
    named = "|".join(_patterns(f"{name}={folder}" for folder, name in copied))
    return {
        "store": [bucket.url],
        "storeImages": _patterns(images),
        "storeMirrors": _patterns(with_mirrors(admission, images) - images),
        "storeVariables": sorted({*STORE_VARIABLES, *bucket.variables, COMPLETION_INDEX_VARIABLE, *clients}),
        "storeValues": [f"{name}={value}" for name, value in sorted({**bucket.variables, **clients}.items())],
        "storeSecrets": bucket.secrets,
        "cloudVariables": CLOUD_VARIABLES if bucket.secret is None else [],
        "datasets": sorted({folder for folder, _ in copied}),
        "severalDatasets": [f"^({named})( ({named}))*$"] if named else [],
    }


def _variables(network: NetworkSettings, code: CodeSource | None, bases: Mapping[str, bytes]) -> Values:
    """Return the variables that `base/` sets: folders, files, and all variables of the container that fetches code."""
    fixed = {
        (variable, container, value)
        for path, content in bases.items()
        if path.endswith(".yaml") and not path.startswith("platform/") and b"env:" in content
        for variable, container, value in _file_variables(content)
        if container == CODE_CONTAINER
        or value.startswith("/")
        # Of which pod the launcher writes a record. The rank is a field in some kinds, and a number in others.
        or (variable.startswith("SWEEP_") and variable != RANK_VARIABLE and value.startswith(FIELDS))
    }
    of_code = {variable for variable, container, _ in fixed if container == CODE_CONTAINER}
    clients = network.client_variables(network.egress)
    return {
        "clone": []
        if code is None
        else component_patch(bases, CLONE)["spec"]["initContainers"][0]["command"],
        "cloneMounts": [] if code is None else _clone_mounts(network, code, bases),
        "codeUrls": [] if code is None else [code.url],
        "cloneVariables": sorted({*of_code, *CODE_VARIABLES, COMPLETION_INDEX_VARIABLE, *clients}),
        "fixedVariables": sorted({variable for variable, _, _ in fixed}),
        "fixedValues": sorted({f"{variable}={value}" for variable, _, value in fixed}),
    }


def _clone_mounts(network: NetworkSettings, code: CodeSource, bases: Mapping[str, bytes]) -> list[str]:
    """Return the mounts of the init container that fetches code: path, kind and name of the volume."""
    names = {"secret": code.secret}
    if network.authorities is not None:
        names["configMap"] = network.authorities.config_map
    components = (CLONE, CLONE_CREDENTIALS) if code.secret else (CLONE,)
    pods = [component_patch(bases, name)["spec"] for name in components]
    volumes = [*authorities_volume(network.authorities), *(one for pod in pods for one in pod["volumes"])]
    mounts = authorities_mount(network.authorities)
    mounts += [one for pod in pods for one in pod["initContainers"][0]["volumeMounts"]]
    kinds = {one["name"]: kind for one in volumes for kind in one if kind != "name"}
    return sorted(
        " ".join(filter(None, (one["mountPath"], kinds[one["name"]], names.get(kinds[one["name"]]))))
        for one in mounts
    )


@cache
def _file_variables(content: bytes) -> tuple[tuple[str, str, str], ...]:
    return tuple(
        (str(variable["name"]), str(container.get("name")), str(value))
        for container in _containers(documents(content))
        for variable in container["env"]
        for field in [variable.get("valueFrom", {}).get("fieldRef", {})]
        if (value := variable.get("value", field.get("fieldPath"))) is not None
    )


def _containers(node: object) -> Iterator[Mapping[str, Any]]:
    """Find all containers with variables in a document of any kind."""
    if isinstance(node, Mapping):
        if isinstance(node.get("env"), list):
            yield node
        for value in node.values():
            yield from _containers(value)
    elif isinstance(node, list | tuple):
        for item in node:
            yield from _containers(item)
