"""Check that everything of the bootstrap is in the cluster.

It prints hints, and exits with 5 if a part is not in place.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer
from rich.text import Text

from sweepledger.cli.options import ContextOption, InOption, PatienceOption
from sweepledger.cli.response import EXIT_DRIFT, Response, current_folder
from sweepledger.cli.text.style import untrusted_text
from sweepledger.commands.collection.record_store import bucket_results
from sweepledger.commands.repository import batch_records
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.commands.scaffold.bootstrap import recorded_source
from sweepledger.controllers import GITOPS
from sweepledger.controllers.controller import RequiredSecret
from sweepledger.controllers.git_source import GitSource
from sweepledger.controllers.platform_names import REMOTE, Names, patches_folder, platform_folder
from sweepledger.engine.cluster import collector_state, health, helper_pods, pods
from sweepledger.engine.cluster import kubectl as client
from sweepledger.engine.cluster.health import HealthFinding, HealthStatus
from sweepledger.engine.cluster.kubectl import ClusterError, Kubectl
from sweepledger.errors import GeneratorError, RepositoryError, ToolError
from sweepledger.formats import bootstrap_yaml, manifest_fields, yaml
from sweepledger.formats.record_json import format_time
from sweepledger.problems import TextError
from sweepledger.render import base_files, pod
from sweepledger.render.base_files import Bases
from sweepledger.render.platform import kueue, manual_setup
from sweepledger.render.platform.manual_setup import RequiredObject, required_objects, required_secrets
from sweepledger.repo import batches, files, kustomize
from sweepledger.repo.base_files import read_bases
from sweepledger.repo.git import Repository
from sweepledger.structs import kubernetes
from sweepledger.structs.file_tree import FileTree
from sweepledger.structs.names import SETTINGS_FILE
from sweepledger.structs.node_pool import Pool
from sweepledger.structs.program import LOCAL_IMAGE
from sweepledger.structs.settings import BucketSettings, ResultsStore, Settings


def doctor(
    context: ContextOption = None,
    cluster: InOption = None,
    prove: Annotated[
        bool, typer.Option("--prove", help="Run a temporary Job that writes results as a trial does.")
    ] = False,
    release: Annotated[
        bool,
        typer.Option(
            "--release",
            help="Release pods that are kept for records that no collector will read; then check.",
        ),
    ] = False,
    patience: PatienceOption = 300,
) -> Response:
    workspace = Workspace.find(current_folder()).in_cluster(cluster)
    kubectl = Kubectl(context)
    released = release_pods(workspace, kubectl, time.time()) if release else ()
    findings = diagnose(workspace, kubectl, prove=prove, patience=patience)
    lines = (Text(f"released: {len(held.names)} pods of {held.batch}") for held in released)
    return Response(
        {"findings": findings, "released": {held.batch: held.names for held in released}},
        (*lines, *map(_finding_text, findings)),
        exit_code=EXIT_DRIFT * any(finding.is_fault for finding in findings),
    )


def _finding_text(finding: HealthFinding) -> Text:
    message = f": {finding.message}" if finding.message else ""
    hint = f"\n  hint: {finding.hint}" if finding.hint and finding.state != "ok" else ""
    return untrusted_text(f"{finding.state}: {finding.part}: {finding.check}{message}{hint}")


INSTALL_HINTS = {
    **{own.domain: f"install {own.title}" for own in GITOPS.values()},
    "kueue.x-k8s.io": "install Kueue",
    "kubeflow.org": "install the Kubeflow controller of the kind",
}
"""Groups of custom resources, and what installs them."""


def examine_cluster(workspace: Workspace, kubectl: Kubectl) -> Iterator[HealthFinding]:
    """Yield a finding for each object that the cluster must have. Raises nothing: a check that fails is a finding."""
    settings = workspace.cluster_settings
    nodes = max((pool.max_nodes or 2 for pool in settings.trials.pools.values()), default=2)
    # Without manifests in the repository, a cluster needs its namespace.
    expected = _platform_manifests(workspace) or [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": settings.trials.namespace}}
    ]
    apply = _apply_hint(settings, _followed_source(workspace))
    for manifest in expected:
        yield _object_finding(manifest, kubectl, nodes=nodes, apply=apply)
    names = {(manifest["kind"], manifest["metadata"]["name"]) for manifest in expected}
    for name in sorted({*settings.results.claims.values(), *settings.trials.dataset_claims}):
        if ("PersistentVolumeClaim", name) not in names:
            yield _claim_finding(name, settings, kubectl, nodes=nodes)
    for required in _needed_secrets(workspace):
        yield _secret_finding(required, kubectl)
    names_here, authorities = Names.of(settings.trials, settings.fleet), settings.network.authorities
    for needed in required_objects(names_here, settings.trials, authorities, settings.platform.collector):
        yield _required_finding(needed, kubectl)
    if settings.platform.controller in GITOPS:
        yield from _collector_findings(settings, kubectl, time.time())
    yield from _held_findings(workspace, kubectl, time.time())
    if settings.results.bucket is not None:
        yield _bucket_finding(settings.results.bucket, workspace.repository)
        yield _kubelet_finding(kubectl)
    for queue in sorted({pool.queue for pool in settings.trials.pools.values() if pool.queue}):
        yield _queue_finding(queue, settings, kubectl)
    yield from node_findings(settings.trials.pools, kubectl)


def node_findings(pools: Mapping[str, Pool], kubectl: Kubectl) -> Iterator[HealthFinding]:
    """Yield whether a node has the labels of each pool; an autoscaler may make none before a pod asks for it."""
    for name, pool in sorted(pools.items()):
        if not pool.selector and not pool.gpu_type and (pool.queue is None or pool.flavor):
            continue
        what = f"nodes of pool {name}"
        text = ",".join(f"{label}={value}" for label, value in kueue.node_labels(pool).items())
        try:
            (*_, nodes) = kubectl.pages("/api/v1/nodes", text, size=1)
        except ClusterError as error:
            yield _unchecked_finding(what, error)
            continue
        if nodes:
            yield HealthFinding("cluster", what, HealthStatus.OK, text)
            continue
        hint = (
            "label its nodes, or change the pool; where an autoscaler makes them on demand, nothing is wrong"
        )
        yield HealthFinding("cluster", what, HealthStatus.NOT_CHECKED, f"no node has {text}", hint)


HELD_SECONDS = 3600
"""Time after its end for which the collector may leave a pod as it is: several runs, and a server that is away."""


@dataclass(frozen=True)
class HeldPods:
    """Pods of a batch that have ended and stay until their records are read, although nobody will read them."""

    batch: str
    names: tuple[str, ...]
    reason: str


def unreleased_pods(workspace: Workspace, kubectl: Kubectl, now: float) -> tuple[HeldPods, ...]:
    """Return the ended pods that the collector will not release, by batch. Raises ClusterError, RepositoryError."""
    repository, tip = workspace.repository, workspace.base_commit(None)
    stored = {batch.name: batch for batch in batches.in_commit(repository, tip)}
    waiting = {batch.name for batch in stored.values() if batch.is_active}
    waiting |= {
        batch.name for batch in batch_records.unrecorded_batches(repository, tip, list(stored.values()))
    }
    held: dict[str, list[str]] = {}
    for manifest in pods.held_pods(kubectl, workspace.settings.trials.namespace, apart_from=waiting):
        if pods.has_ended(manifest) and pods.ended_at(manifest) < now - HELD_SECONDS:
            batch = manifest_fields.text_at(manifest, "metadata", "labels", kubernetes.BATCH_LABEL)
            held.setdefault(batch, []).append(manifest_fields.text_at(manifest, "metadata", "name"))
    return tuple(
        HeldPods(
            batch,
            tuple(sorted(names)),
            "its results are recorded, and no collector has released them since"
            if batch in stored
            else "no commit of the branch has this batch, so the collector will not record it",
        )
        for batch, names in sorted(held.items())
    )


def release_pods(workspace: Workspace, kubectl: Kubectl, now: float) -> tuple[HeldPods, ...]:
    """Release the pods that nobody else will; return them. Raises ClusterError, RepositoryError."""
    released = unreleased_pods(workspace, kubectl, now)
    for held in released:
        pods.release(kubectl, workspace.settings.trials.namespace, held.names)
    return released


def _held_findings(workspace: Workspace, kubectl: Kubectl, now: float) -> Iterator[HealthFinding]:
    """Yield a finding for each batch with pods that nobody will release, whatever the store is now."""
    what = "pods that are kept for their records"
    try:
        listed = unreleased_pods(workspace, kubectl, now)
    except ClusterError as error:
        yield _unchecked_finding(what, error, part="storage")
        return
    for held in listed:
        hint = "`sweep cluster doctor --release` lets them go; what git does not have of them is lost then"
        text = f"{len(held.names)} pods of {held.batch} have ended: {held.reason}"
        yield HealthFinding("storage", what, HealthStatus.WRONG, text, hint)
    if not listed and workspace.settings.results.store.holds_pods:
        yield HealthFinding("storage", what, HealthStatus.OK, "none that the collector would not release")


OLDEST_KUBELET = (1, 29)
"""Older ones start no sidecars, and would wait for the end of a bucket's."""


def _bucket_finding(bucket: BucketSettings, repository: Repository) -> HealthFinding:
    """Return whether this machine can list the bucket; pods have credentials of their own."""
    what = f"bucket {bucket.url}"
    try:
        found = bucket_results(bucket, repository).names()
    except GeneratorError as error:
        hint = "`sweep show --fetch` and `sweep logs` need it here; trials and collector have their own credentials"
        return HealthFinding("storage", what, HealthStatus.NOT_CHECKED, str(error), error.hint or hint)
    return HealthFinding("storage", what, HealthStatus.OK, f"{len(found)} folders are there")


def _kubelet_finding(kubectl: Kubectl) -> HealthFinding:
    """Return whether all nodes start sidecars."""
    what = "kubelets start sidecars"
    try:
        nodes = [node for page in kubectl.pages("/api/v1/nodes", "") for node in page]
    except ClusterError as error:
        return _unchecked_finding(what, error)
    old = [
        f"{manifest_fields.text_at(node, 'metadata', 'name')} ({version})"
        for node in nodes
        if (version := manifest_fields.text_at(node, "status", "nodeInfo", "kubeletVersion"))
        and (kubernetes.parse_server_version(version) or kubernetes.NEWEST_VERSION) < OLDEST_KUBELET
    ]
    if old:
        wanted = kubernetes.format_version(OLDEST_KUBELET)
        text = f"older than {wanted}: {', '.join(old[:5])}"
        hint = "upgrade these nodes, or keep trials from them by the selector of a pool"
        return HealthFinding("cluster", what, HealthStatus.WRONG, text, hint)
    return HealthFinding("cluster", what, HealthStatus.OK, f"{len(nodes)} nodes")


def prove_storage(settings: Settings, kubectl: Kubectl, bases: Bases, *, patience: float) -> HealthFinding:
    """Run a temporary Job like a trial: it writes to the volume or the bucket, or ends and is kept for its record."""
    image = settings.trials.image_of(None)
    if image == LOCAL_IMAGE:
        text = "settings name no image for a pod"
        hint = "set defaults.image to one with Python"
        return HealthFinding("storage", "a trial may write results", HealthStatus.NOT_CHECKED, text, hint)
    bucket, store = settings.results.bucket, None
    if bucket is not None:
        component = base_files.component_patch(bases, base_files.BUCKET_STORE)
        name = kubernetes.DOCTOR_POD.component
        store = pod.store_proof(name, settings.trials, settings.network, bucket, component)
    claim = settings.results.claims.get(kubernetes.RESULTS_VOLUME)
    is_held = settings.results.store.holds_pods
    job = helper_pods.write_test_job(
        settings.trials.namespace, claim, image, kubernetes.TRIAL_ACCOUNT, is_held=is_held, store=store
    )
    return helper_pods.run_write_test(kubectl, job, patience=patience)


def _platform_manifests(workspace: Workspace) -> list[Mapping[str, Any]]:
    """Return the manifests that this cluster must have, from the commit that its controller follows.

    Those of a controller in another cluster are not here.
    """
    settings = workspace.cluster_settings
    own = GITOPS.get(settings.platform.controller)
    is_remote = own is not None and own.is_remote(settings.platform)
    folders = ("platform", REMOTE if is_remote else str(settings.platform.controller))
    place, patches = platform_folder(workspace.cluster), patches_folder(workspace.cluster)
    paths = (*(f"{place}/{name}" for name in folders), patches)
    held = workspace.repository.read(workspace.base_commit(None), *paths)
    manifests: list[Mapping[str, Any]] = []
    if f"{patches}/kustomization.yaml" in held:
        with tempfile.TemporaryDirectory(prefix="sweep-platform-") as scratch:
            files.write_folder(Path(scratch), FileTree(held))
            manifests += kustomize.build(Path(scratch) / place / "platform")
        held = {path: content for path, content in held.items() if path.startswith(f"{place}/{folders[1]}/")}
    manifests += [
        manifest
        for path, content in sorted(held.items())
        if path.endswith(".yaml") and path.removeprefix(f"{place}/").count("/") == 1
        for manifest in _documents(path, content)
        if isinstance(manifest, dict) and "name" in manifest.get("metadata", {})
    ]
    return sorted(manifests, key=lambda manifest: manifest["kind"] != "Namespace")


def _documents(path: str, content: bytes) -> tuple[Any, ...]:
    try:
        return yaml.load_all(content)
    except TextError as error:
        raise RepositoryError(
            f"{path}:{error.line}: {error}", hint="`sweep cluster bootstrap` writes it again"
        ) from error


def _object_finding(
    manifest: Mapping[str, Any], kubectl: Kubectl, *, nodes: int, apply: str
) -> HealthFinding:
    try:
        observed = kubectl.find(manifest)
    except ClusterError as error:
        if error.reason == "UnknownKind":
            group = str(manifest["apiVersion"]).partition("/")[0]
            install = next((way for name, way in INSTALL_HINTS.items() if group.endswith(name)), apply)
            text = f"the cluster knows no {manifest['kind']} of {manifest['apiVersion']}"
            return HealthFinding(
                "controller", health.object_title(manifest), HealthStatus.MISSING, text, install
            )
        return _unchecked_finding(health.object_title(manifest), error)
    return health.check_object(manifest, observed, nodes=nodes, apply=apply)


def _apply_hint(settings: Settings, source: GitSource | None) -> str:
    if source is None or settings.platform.controller not in GITOPS:
        return "ask the platform team"
    chosen = (settings.fleet.cluster, settings.platform.controller, source)
    controller = manual_setup.apply_controller_command(*chosen)
    return f"`{manual_setup.apply_platform_command(*chosen)}`, then `{controller}`"


def _followed_source(workspace: Workspace) -> GitSource | None:
    """Return what the bootstrap that the cluster follows was made for; None without one that can be read."""
    held = workspace.repository.read(workspace.base_commit(None), bootstrap_yaml.BOOTSTRAP_FILE)
    content = held.get(bootstrap_yaml.BOOTSTRAP_FILE)
    if content is None:
        return None
    try:
        return recorded_source(bootstrap_yaml.read(content))
    except (ValueError, RepositoryError):
        return None  # `sweep cluster bootstrap` reports an invalid file


def _claim_finding(name: str, settings: Settings, kubectl: Kubectl, *, nodes: int) -> HealthFinding:
    results = settings.results
    if results.store is ResultsStore.CLAIM and name in results.claims.values():
        nodes = 1  # whatever the pools are: that is what this store means
    label = f"PersistentVolumeClaim {settings.trials.namespace}/{name}"
    try:
        claim = kubectl.get("persistentvolumeclaims", name, settings.trials.namespace)
    except ClusterError as error:
        return _unchecked_finding(label, error, part="storage")
    if claim is None:
        hint = "make it, or name another in sweepledger.yaml"
        return HealthFinding("storage", label, HealthStatus.MISSING, "the cluster does not have it", hint)
    return health.check_claim(claim, nodes=nodes)


def _needed_secrets(workspace: Workspace) -> tuple[RequiredSecret, ...]:
    """Return the Secrets that the cluster needs, as `sweep cluster bootstrap` lists them."""
    settings, source = workspace.cluster_settings, _followed_source(workspace)
    nowhere = GitSource("https://unknown.invalid/repository", settings.git.branch, is_public=True)
    needed = required_secrets(
        Names.of(settings.trials, settings.fleet),
        settings.trials,
        settings.git.code,
        settings.results,
        settings.platform,
        source or nowhere,
    )
    if source is not None:
        return tuple(secret for secret in needed if not secret.is_elsewhere)
    return tuple(secret for secret in needed if secret.namespace == settings.trials.namespace)


def _required_finding(needed: RequiredObject, kubectl: Kubectl) -> HealthFinding:
    try:
        is_there = kubectl.get(needed.resource, needed.name, needed.namespace) is not None
    except ClusterError as error:
        if error.reason != "UnknownKind":
            return _unchecked_finding(needed.title, error)
        is_there = False
    if is_there:
        return HealthFinding("cluster", needed.title, HealthStatus.OK, needed.purpose)
    hint = f"make it, or name another in {SETTINGS_FILE}"
    return HealthFinding("cluster", needed.title, HealthStatus.MISSING, f"{needed.purpose} needs it", hint)


def _secret_finding(needed: RequiredSecret, kubectl: Kubectl) -> HealthFinding:
    name = f"Secret {needed.namespace}/{needed.name}"
    try:
        keys = kubectl.secret_keys(needed.name, needed.namespace)
    except ClusterError as error:
        return _unchecked_finding(name, error)
    if keys is None:
        text = f"the cluster has none ({needed.purpose})"
        hint = f"make it with {', '.join(needed.keys)}; `sweep cluster bootstrap` prints the command"
        return HealthFinding("cluster", name, HealthStatus.MISSING, text, hint)
    missing = sorted(set(needed.keys) - set(keys))
    if missing:
        text = f"its keys are {', '.join(keys) or 'none'} ({needed.purpose})"
        return HealthFinding("cluster", name, HealthStatus.WRONG, text, f"add {', '.join(missing)}")
    return HealthFinding("cluster", name, HealthStatus.OK, needed.purpose)


def _collector_findings(settings: Settings, kubectl: Kubectl, now: float) -> Iterator[HealthFinding]:
    """Yield whether the collector succeeds, and when it last did; nothing if its CronJob is missing or suspended."""
    namespace = Names.of(settings.trials, settings.fleet).collector
    name = f"collector of {namespace}"
    try:
        state = collector_state.read_collector(kubectl, namespace, settings.results.every_minutes)
    except ClusterError as error:
        yield _unchecked_finding(name, error)
        return
    if not state.exists or state.is_suspended:
        return  # the finding of the CronJob says so
    trouble = state.trouble(now)
    if trouble is not None:
        yield HealthFinding("cluster", name, HealthStatus.WRONG, *trouble)
    elif state.last_success is None:
        yield HealthFinding("cluster", name, HealthStatus.NOT_CHECKED, "it has not run yet")
    else:
        text = f"it last succeeded at {format_time(state.last_success)}"
        yield HealthFinding("cluster", name, HealthStatus.OK, text)


def _queue_finding(name: str, settings: Settings, kubectl: Kubectl) -> HealthFinding:
    what = f"LocalQueue {settings.trials.namespace}/{name}"
    try:
        queue = kubectl.get("localqueues.kueue.x-k8s.io", name, settings.trials.namespace)
    except ClusterError as error:
        if error.reason != "UnknownKind":
            return _unchecked_finding(what, error)
        text, hint = "the cluster has no Kueue", INSTALL_HINTS["kueue.x-k8s.io"]
        return HealthFinding("controller", what, HealthStatus.MISSING, text, hint)
    if queue is None:
        sample = f"{platform_folder(settings.fleet.cluster)}/optional/kueue.yaml"
        hint = f"make it, or name another at the pool: {sample} is a sample"
        return HealthFinding("cluster", what, HealthStatus.MISSING, "trials would wait for ever", hint)
    return HealthFinding("cluster", what, HealthStatus.OK)


def _unchecked_finding(name: str, error: ClusterError, *, part: str = "cluster") -> HealthFinding:
    text, hint = str(error), error.hint
    if error.reason == "Forbidden":
        text, hint = "you may not read it", "ask an administrator for the permission"
    return HealthFinding(part, name, HealthStatus.NOT_CHECKED, text, hint)


def diagnose(
    workspace: Workspace, kubectl: Kubectl, *, prove: bool = False, patience: float = 300.0
) -> tuple[HealthFinding, ...]:
    """Check tools, repository and cluster; with `prove`, a temporary Job also writes like a trial.

    Changes nothing else. Findings have the order in which a user fixes them; a check that cannot run is a finding.
    """
    repository, server = workspace.repository, _server(kubectl, workspace.settings.platform.kubernetes)
    findings = [
        _tool_finding("kustomize", lambda: f"{kustomize.version()} ({' '.join(kustomize.command())})"),
        _tool_finding("kubectl", lambda: f"{client.version()} ({' '.join(client.command())})"),
        _tool_finding("git", lambda: repository.run("--version").strip().removeprefix("git version ")),
        *_repository(workspace),
        server,
    ]
    if server.state is HealthStatus.MISSING:
        text = "no cluster answers"
        return (*findings, HealthFinding("cluster", "everything in it", HealthStatus.NOT_CHECKED, text))
    findings += examine_cluster(workspace, kubectl)
    return (*findings, _proof(workspace, kubectl, patience if prove else None))


def _tool_finding(what: str, check: Callable[[], str], part: str = "tools") -> HealthFinding:
    try:
        return HealthFinding(part, what, HealthStatus.OK, check())
    except GeneratorError as error:
        return HealthFinding(part, what, HealthStatus.MISSING, str(error), error.hint)


def _repository(workspace: Workspace) -> Iterator[HealthFinding]:
    settings, repository, remote = workspace.settings, workspace.repository, workspace.remote
    finding = _tool_finding(
        f"remote {remote}", lambda: _without_credential(workspace.remote_url()), "repository"
    )
    yield finding
    if finding.state is HealthStatus.OK:
        yield _branch(workspace, f"{remote}/{settings.git.branch}")
    if settings.platform.controller in GITOPS:
        place = platform_folder(workspace.cluster)
        held = repository.files(workspace.base_commit(None), f"{place}/platform")
        finding = HealthFinding("repository", f"{place}/ on the branch", HealthStatus.OK)
        text = "the controller has nothing to follow"
        hint = f"`sweep cluster bootstrap {settings.platform.controller}`, then merge what it writes"
        yield finding if held else replace(finding, state=HealthStatus.MISSING, message=text, hint=hint)


def _without_credential(url: str) -> str:
    parts = urlsplit(url)
    is_ssh = parts.scheme == "ssh" and parts.password is None  # the user in an ssh URL is not secret
    return url if is_ssh else parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _branch(workspace: Workspace, followed: str) -> HealthFinding:
    def listed() -> str:
        name = f"refs/heads/{workspace.settings.git.branch}"
        if found := workspace.repository.run("ls-remote", "--", workspace.remote, name).strip():
            return found[:8]
        raise RepositoryError("the remote answers, and has no such branch", hint="push it")

    return _tool_finding(f"branch {followed}", listed, "repository")


def _server(kubectl: Kubectl, oldest: tuple[int, int]) -> HealthFinding:
    what = "server version"
    try:
        _, server = kubectl.versions()
    except ToolError as error:
        return HealthFinding("cluster", what, HealthStatus.MISSING, str(error), error.hint)
    version = kubernetes.parse_server_version(server)
    if version is None:
        return HealthFinding("cluster", what, HealthStatus.NOT_CHECKED, f"{server!r} is no version")
    if version < oldest:
        text = f"{server} is older than {kubernetes.format_version(oldest)}"
        return HealthFinding("cluster", what, HealthStatus.WRONG, text, "upgrade the cluster")
    return HealthFinding("cluster", what, HealthStatus.OK, server)


def _proof(workspace: Workspace, kubectl: Kubectl, patience: float | None) -> HealthFinding:
    if patience is not None:
        return prove_storage(workspace.settings, kubectl, read_bases(workspace.root), patience=patience)
    is_held = workspace.settings.results.store.holds_pods
    unknown = "whether it is kept until it is released" if is_held else "how the volume's root is owned"
    text, hint = f"only a pod can tell {unknown}", "`sweep cluster doctor --prove` runs one for a moment"
    return HealthFinding("storage", "a trial may write results", HealthStatus.NOT_CHECKED, text, hint)
