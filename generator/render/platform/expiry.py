"""The CronJob that deletes old folders from the volumes, where the settings say after how long.

It runs beside the trials, since their claims are there; it reads git, and writes nothing but these volumes.
"""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from generator.formats import yaml
from generator.render.platform.admission_rules import owned_by, text, texts
from generator.render.platform.collector import IMAGE, credential, let_clone
from generator.render.platform.names import EXPIRY_ACCOUNT, GIT_READ_SECRET, Manifest, Names, labels
from generator.render.platform.network import GIT
from generator.render.platform.source import Source
from generator.structs.labels import EGRESS_LABEL
from generator.structs.settings import Settings

BASE = "expiry/v1/cronjob.yaml"

ALONE = ("args", "envFrom", "lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
"""What no container of it has."""
PLACED = ("nodeSelector", "tolerations", "priorityClassName", "affinity")
"""What its Job does not say; to its pod the API server may add some."""
UNTYPED = frozenset({"resources", "emptyDir"})
"""Of these only the presence is compared: they hold quantities, which have many notations."""


def cron_job(settings: Settings, source: Source, bases: Mapping[str, bytes]) -> list[Manifest]:
    """Fill in the frozen base; nothing where results are kept for ever. Suspended like the collector."""
    if settings.results.keep_days is None:
        return []
    made: Manifest = deepcopy(yaml.load(bases[BASE]))
    ours = labels(settings, **{"app.kubernetes.io/component": EXPIRY_ACCOUNT})
    made["metadata"] |= {"namespace": Names.of(settings).trials, "labels": ours}
    made["spec"]["suspend"] = IMAGE not in settings.images
    job = made["spec"]["jobTemplate"]
    job["metadata"] = {"labels": dict(ours)}
    template = job["spec"]["template"]
    template["metadata"] = {"labels": {**ours, f"{EGRESS_LABEL}{GIT}": "true"}}
    _fill_pod(template["spec"], settings, source)
    return [made]


def _fill_pod(pod: Manifest, settings: Settings, source: Source) -> None:
    let_clone(pod, settings, source, [] if source.is_public else credential(source))
    clone, expire = pod["initContainers"][0], pod["containers"][0]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    volumes["git"]["secret"]["secretName"] = GIT_READ_SECRET
    volumes["results"]["persistentVolumeClaim"]["claimName"] = settings.results.claim
    if source.is_public:
        pod["volumes"].remove(volumes["git"])
        for container in (clone, expire):
            container["volumeMounts"] = [one for one in container["volumeMounts"] if one["name"] != "git"]
    for name, claim in further(settings).items():
        place = f"/sweep/{name}"
        expire["command"].append(f"--{name}={place}")
        expire["volumeMounts"].append({"name": name, "mountPath": place})
        pod["volumes"].append({"name": name, "persistentVolumeClaim": {"claimName": claim}})


def further(settings: Settings) -> dict[str, str]:
    """Name the claims beside that of the results, by what lies there."""
    results = settings.results
    named = {"checkpoints": results.checkpoints, "artifacts": results.artifacts}
    return {name: claim for name, claim in named.items() if claim not in {None, results.claim}}


def is_expiry(settings: Settings, source: Source, bases: Mapping[str, bytes], *, is_pod: bool) -> str:
    """Write in CEL that a Job, or a pod, is what this CronJob makes, to the last mount: no trial.

    Who made it is not enough, and what it is called even less: it may read a Secret, and write all results.
    """
    (made,) = cron_job(settings, source, bases)
    spec = made["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    at = "object.spec" if is_pod else "object.spec.template.spec"
    holds = [owned_by(["Job" if is_pod else "CronJob"]), *_equal(at, spec)]
    absent = [f"{at}.{key}" for key in ("hostAliases", "dnsConfig", "ephemeralContainers")]
    absent += [] if is_pod else [f"{at}.{key}" for key in PLACED]
    for sort in ("initContainers", "containers"):
        absent += [f"{at}.{sort}[0].{key}" for key in ALONE]
    return " && ".join([*holds, *(f"!has({path})" for path in absent)])


def _equal(path: str, value: Any) -> Iterator[str]:
    """Compare field by field: the API server adds its defaults, and types are no maps to it."""
    match value:
        case dict():
            for key, inner in value.items():
                yield f"has({path}.{key})"
                if key not in UNTYPED:
                    yield from _equal(f"{path}.{key}", inner)
            if "mountPath" in value:
                yield f"!has({path}.subPath) && !has({path}.subPathExpr)"
        case [str(), *_]:
            yield f"{path} == {texts(value)}"
        case list():
            yield f"{path}.size() == {len(value)}"
            for number, inner in enumerate(value):
                yield from _equal(f"{path}[{number}]", inner)
        case bool():
            yield f"{path} == {str(value).lower()}"
        case int():
            yield f"{path} == {value}"
        case _:
            yield f"{path} == {text(value)}"
