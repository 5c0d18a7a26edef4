"""The rules of the admission policies, in CEL: the same that `sweep check` has, once more at the gate.

Only what every supported API server and every CEL implementation knows is used: no optional types.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from generator.render.platform.flux import ACTIVE, SOURCE_NAME
from generator.render.platform.names import APPLIER_ACCOUNT, ROOT_ACCOUNT, TRIAL_ACCOUNT, Manifest
from generator.render.platform.source import Source
from generator.structs.settings import Settings
from generator.structs.sweep import Shape

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
VOLUMES = ("configMap", "downwardAPI", "emptyDir", "persistentVolumeClaim", "projected", "secret")


@dataclass(frozen=True, slots=True)
class Rule:
    """What must hold, and what is said where it does not."""

    message: str
    expression: str


def variables(pod: str) -> list[Manifest]:
    """Name the parts of a pod that rules look at, absent lists as empty ones."""
    return [
        {"name": "pod", "expression": pod},
        {
            "name": "containers",
            "expression": "variables.pod.containers"
            " + (has(variables.pod.initContainers) ? variables.pod.initContainers : [])",
        },
        {
            "name": "volumes",
            "expression": "has(variables.pod.volumes) ? variables.pod.volumes : []",
        },
    ]


def of_pods(settings: Settings, source: Source) -> tuple[Rule, ...]:
    """Say what holds for every pod of a trial."""
    pull = [settings.image_pull_secret] if settings.image_pull_secret else []
    sources = " || ".join(f"has(v.{kind})" for kind in VOLUMES)
    return (
        Rule(
            f"a trial runs as service account {TRIAL_ACCOUNT}",
            "has(variables.pod.serviceAccountName)"
            f" && variables.pod.serviceAccountName == {_text(TRIAL_ACCOUNT)}",
        ),
        Rule(
            "a trial has no service account token",
            "has(variables.pod.automountServiceAccountToken)"
            " && variables.pod.automountServiceAccountToken == false"
            " && variables.volumes.all(v, !has(v.projected) || !has(v.projected.sources)"
            " || v.projected.sources.all(s, !has(s.serviceAccountToken)))",
        ),
        Rule(
            "images are named by digest",
            "variables.containers.all(c, has(c.image) && c.image.matches('@sha256:[0-9a-f]{64}$'))",
        ),
        Rule(
            "every container has requests and limits of cpu and memory",
            "variables.containers.all(c, has(c.resources) && has(c.resources.requests)"
            " && has(c.resources.limits) && ['cpu', 'memory'].all(r,"
            " r in c.resources.requests && r in c.resources.limits))",
        ),
        Rule(
            f"volumes are {', '.join(VOLUMES[:-1])} or {VOLUMES[-1]}; never hostPath, gitRepo or inline nfs",
            f"variables.volumes.all(v, {sources})",
        ),
        *_secrets(settings, source),
        Rule(
            "image pull secrets are the one that sweepledger.yaml names",
            "!has(variables.pod.imagePullSecrets)"
            f" || variables.pod.imagePullSecrets.all(s, s.name in {_texts(pull)})",
        ),
    )


def _secrets(settings: Settings, source: Source) -> tuple[Rule, ...]:
    """Keep every Secret away from trials but those that the platform team listed."""
    listed = {secret.secret for secret in settings.secrets.values()}
    if settings.code is not None and settings.code.secret is not None:
        listed.add(settings.code.secret)
    known = _texts(sorted(listed))
    # The MPI operator gives launcher and workers a key pair of its own making, one an MPIJob.
    made = " || v.secret.secretName.endsWith('-ssh')" if Shape.MPI_JOB in source.shapes else ""
    return (
        Rule(
            "volumes hold no Secret that sweepledger.yaml does not list",
            f"variables.volumes.all(v, (!has(v.secret) || v.secret.secretName in {known}{made})"
            " && (!has(v.projected) || !has(v.projected.sources)"
            f" || v.projected.sources.all(s, !has(s.secret) || s.secret.name in {known})))",
        ),
        Rule(
            "the environment holds no Secret: what is listed comes as a file",
            "variables.containers.all(c,"
            " (!has(c.env) || c.env.all(e, !has(e.valueFrom) || !has(e.valueFrom.secretKeyRef)))"
            " && (!has(c.envFrom) || c.envFrom.all(e, !has(e.secretRef))))",
        ),
    )


def of_jobs(settings: Settings, source: Source) -> tuple[Rule, ...]:
    """Say what holds for Jobs beside their pods."""
    return (
        Rule(
            "a Job that git asks for has no TTL: deleted, it would run again",
            "!has(object.spec.ttlSecondsAfterFinished)",
        ),
        Rule(
            "a Job has the name that git gives it, not a generated one",
            "!has(object.metadata.generateName) || object.metadata.generateName == ''",
        ),
        *_queue(settings, source),
    )


def _queue(settings: Settings, source: Source) -> tuple[Rule, ...]:
    """Where every pool has a queue no Job may go past them; no other queue may be named in any case."""
    queues = sorted({pool.queue for pool in settings.pools.values() if pool.queue is not None})
    if not queues:
        return ()
    label = _text(QUEUE_LABEL)
    has_label = f"has(object.metadata.labels) && {label} in object.metadata.labels"
    named = f"object.metadata.labels[{label}] in {_texts(queues)}"
    if any(pool.queue is None for pool in settings.pools.values()):
        expression = f"!({has_label}) || {named}"
    else:
        expression = f"{has_label} && {named}"
        if source.shapes:  # Kueue holds the owner back; the Jobs that it makes bear no label
            expression = f"has(object.metadata.ownerReferences) || ({expression})"
    return (Rule(f"a Job goes through one of the queues {', '.join(queues)}", expression),)


def of_kustomizations() -> tuple[Rule, ...]:
    """Say what holds for what Flux applies: the rights, the source and the folder that were agreed on."""
    account, path = "object.spec.serviceAccountName", "object.spec.path"
    root = f"{account} == {_text(ROOT_ACCOUNT)} && {path} == {_text(f'./{ACTIVE}')}"
    batch = f"{account} == {_text(APPLIER_ACCOUNT)} && {path} == './overlays/active/' + object.metadata.name"
    return (
        Rule(
            "a Kustomization here applies clusters/flux/active, or one batch, with the account for it",
            "has(object.spec.serviceAccountName) && has(object.spec.path)"
            f" && ((object.metadata.name == {_text(SOURCE_NAME)} && {root}) || {batch})",
        ),
        Rule(
            "a Kustomization here reads this repository",
            "object.spec.sourceRef.kind == 'GitRepository'"
            f" && object.spec.sourceRef.name == {_text(SOURCE_NAME)}"
            " && !has(object.spec.sourceRef.namespace)",
        ),
        Rule(
            "a Kustomization here neither forces, nor substitutes, nor goes to another cluster",
            "(!has(object.spec.force) || object.spec.force == false) && !has(object.spec.postBuild)"
            " && !has(object.spec.kubeConfig) && !has(object.spec.decryption)"
            " && !has(object.spec.patches) && !has(object.spec.targetNamespace)",
        ),
    )


def _text(text: str) -> str:
    return json.dumps(text)


def _texts(texts: Iterable[str]) -> str:
    return json.dumps(list(texts))
