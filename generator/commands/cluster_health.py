"""The cluster's part of `sweep doctor`: every object that the repository asks for, and what these rely on."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from generator.commands.workspace import Workspace
from generator.engine.cluster import health, proof
from generator.engine.cluster.health import Finding, State
from generator.engine.cluster.kubectl import ClusterError, Kubectl
from generator.formats import bootstrap, yaml
from generator.render import platform
from generator.render.platform import Needed, Source
from generator.structs.labels import TRIAL_ACCOUNT
from generator.structs.program import LOCAL_IMAGE
from generator.structs.settings import Controller, Settings

BEFORE = {
    "argoproj.io": "install Argo CD",
    "fluxcd.io": "install Flux",
    "kueue.x-k8s.io": "install Kueue",
    "kubeflow.org": "install the Kubeflow controller of the kind",
}
"""Groups of custom kinds, and what brings them."""


def look(workspace: Workspace, kubectl: Kubectl) -> Iterator[Finding]:
    """Look at one thing after another. Raises nothing: what cannot be looked at is a finding, too."""
    settings = workspace.settings
    nodes = max((pool.max_nodes or 2 for pool in settings.pools.values()), default=2)
    wanted = _wanted(workspace) or _least(settings)
    for manifest in wanted:
        yield _object(manifest, kubectl, nodes=nodes, settings=settings)
    named = {(one["kind"], one["metadata"]["name"]) for one in wanted}
    for name in _claims(settings):
        if ("PersistentVolumeClaim", name) not in named:
            yield _claim(name, settings, kubectl, nodes=nodes)
    for needed in _secrets(workspace):
        yield _secret(needed, kubectl)
    for queue in sorted({pool.queue for pool in settings.pools.values() if pool.queue}):
        yield _queue(queue, settings, kubectl)


def prove(settings: Settings, kubectl: Kubectl, *, patience: float) -> Finding:
    """Let a throw-away Job write to the results volume as a trial would."""
    image = settings.image_of(None)
    if image == LOCAL_IMAGE:
        says = "settings name no image for a pod"
        hint = "set defaults.image to one with Python"
        return Finding("storage", "a trial may write results", State.NOT_CHECKED, says, hint)
    return proof.prove(
        kubectl,
        proof.job(settings.namespace, settings.results.claim, image, TRIAL_ACCOUNT),
        patience=patience,
    )


def _wanted(workspace: Workspace) -> list[Mapping[str, Any]]:
    """Take what the controller of the settings is to have from the commit that it follows."""
    folders = ("platform", str(workspace.settings.controller))
    held = workspace.repository.read(workspace.standing(None), *(f"clusters/{name}" for name in folders))
    manifests = [
        one
        for path, content in sorted(held.items())
        if path.endswith(".yaml") and path.count("/") == 2  # noqa: PLR2004 - clusters/<folder>/<file>
        for one in yaml.load_all(content)
        if isinstance(one, dict) and "name" in one.get("metadata", {})
    ]
    return sorted(manifests, key=lambda one: one["kind"] != "Namespace")


def _least(settings: Settings) -> list[Mapping[str, Any]]:
    """Ask for what a cluster must have that no file of ours describes."""
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": settings.namespace}}]


def _object(manifest: Mapping[str, Any], kubectl: Kubectl, *, nodes: int, settings: Settings) -> Finding:
    apply = _apply(settings)
    try:
        found = kubectl.find(manifest)
    except ClusterError as error:
        if error.reason == "UnknownKind":
            group = str(manifest["apiVersion"]).partition("/")[0]
            install = next((way for name, way in BEFORE.items() if group.endswith(name)), apply)
            says = f"the cluster knows no {manifest['kind']} of {manifest['apiVersion']}"
            return Finding("controller", health.title(manifest), State.MISSING, says, install)
        return _unseen(health.title(manifest), error)
    return health.judge(manifest, found, nodes=nodes, apply=apply)


def _apply(settings: Settings) -> str:
    if settings.controller not in {Controller.ARGOCD, Controller.FLUX}:
        return "ask the platform team"
    return f"`{platform.applying.of_platform(settings)}`, then `{platform.applying.of_controller(settings)}`"


def _claims(settings: Settings) -> list[str]:
    claims = {settings.results.claim, settings.results.checkpoints, settings.results.artifacts}
    claims |= {dataset.claim for dataset in settings.datasets.values()}
    return sorted(claim for claim in claims if claim is not None)


def _claim(name: str, settings: Settings, kubectl: Kubectl, *, nodes: int) -> Finding:
    what = f"PersistentVolumeClaim {settings.namespace}/{name}"
    try:
        found = kubectl.get("persistentvolumeclaims", name, settings.namespace)
    except ClusterError as error:
        return _unseen(what, error, part="storage")
    if found is None:
        hint = "make it, or name another in sweepledger.yaml"
        return Finding("storage", what, State.MISSING, "the cluster has none", hint)
    return health.claim(found, nodes=nodes)


def _secrets(workspace: Workspace) -> tuple[Needed, ...]:
    """List every Secret that something waits for, as `sweep bootstrap` lists them."""
    settings = workspace.settings
    held = workspace.repository.read(workspace.standing(None), bootstrap.BOOTSTRAP_FILE)
    content = held.get(bootstrap.BOOTSTRAP_FILE)
    if content is not None:
        with suppress(ValueError):  # what it should say is told where it is read to be changed
            asked = bootstrap.read(content)
            source = Source(asked.url, asked.branch, asked.shapes, is_public=asked.is_public)
            return platform.secrets(settings, source)
    nowhere = Source("https://unknown.invalid/repository", settings.branch, is_public=True)
    trials = platform.Names.of(settings).trials
    return tuple(one for one in platform.secrets(settings, nowhere) if one.namespace == trials)


def _secret(needed: Needed, kubectl: Kubectl) -> Finding:
    what = f"Secret {needed.namespace}/{needed.name}"
    try:
        keys = kubectl.secret_keys(needed.name, needed.namespace)
    except ClusterError as error:
        return _unseen(what, error)
    if keys is None:
        says = f"the cluster has none ({needed.purpose})"
        hint = f"make it with {', '.join(needed.keys)}; `sweep bootstrap` prints the command"
        return Finding("cluster", what, State.MISSING, says, hint)
    missing = sorted(set(needed.keys) - set(keys))
    if missing:
        says = f"its keys are {', '.join(keys) or 'none'} ({needed.purpose})"
        return Finding("cluster", what, State.WRONG, says, f"add {', '.join(missing)}")
    return Finding("cluster", what, State.OK, needed.purpose)


def _queue(name: str, settings: Settings, kubectl: Kubectl) -> Finding:
    what = f"LocalQueue {settings.namespace}/{name}"
    try:
        found = kubectl.get("localqueues.kueue.x-k8s.io", name, settings.namespace)
    except ClusterError as error:
        if error.reason == "UnknownKind":
            return Finding(
                "controller", what, State.MISSING, "the cluster has no Kueue", BEFORE["kueue.x-k8s.io"]
            )
        return _unseen(what, error)
    if found is None:
        hint = "make it, or name another at the pool: clusters/optional/kueue.yaml is a sample"
        return Finding("cluster", what, State.MISSING, "trials would wait for ever", hint)
    return Finding("cluster", what, State.OK)


def _unseen(what: str, error: ClusterError, *, part: str = "cluster") -> Finding:
    """Say that a thing could not be looked at: nobody knows whether it is there."""
    if error.reason == "Forbidden":
        return Finding(part, what, State.NOT_CHECKED, "you may not look", "ask somebody who may")
    return Finding(part, what, State.NOT_CHECKED, str(error), error.hint)
