"""Check that everything of the bootstrap is in the cluster.

It prints hints, and exits with 5 if a part is not in place.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rich.text import Text

from sweepledger import storage
from sweepledger.cli.options import ContextOption, InOption, PatienceOption, flag
from sweepledger.cli.response import EXIT_DRIFT, Response, current_folder
from sweepledger.cli.text.style import untrusted_text
from sweepledger.controllers import GITOPS
from sweepledger.engine.cluster import collector_state, health, helper_pods, pods
from sweepledger.engine.cluster import kubectl as client
from sweepledger.engine.cluster.health import HealthFinding, HealthStatus
from sweepledger.engine.cluster.kubectl import ClusterError, Kubectl
from sweepledger.errors import GeneratorError, RepositoryError, ToolError
from sweepledger.formats import bootstrap_yaml, manifest_fields, yaml
from sweepledger.formats.record_json import format_time
from sweepledger.operations.record_stores.bucket import bucket_results
from sweepledger.operations.repository import batch_records
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.operations.scaffold.bootstrap import needed_objects, needed_secrets, recorded_source
from sweepledger.problems import TextError
from sweepledger.render import base_files, pod
from sweepledger.render.platform import kueue, manual_setup, readme
from sweepledger.render.platform.manual_setup import RequiredObject
from sweepledger.repo import batches, files, kustomize
from sweepledger.repo.base_files import read_bases
from sweepledger.repo.git import Repository
from sweepledger.structs import kubernetes
from sweepledger.structs.file_tree import FileTree
from sweepledger.structs.names import SETTINGS_FILE
from sweepledger.structs.node_pool import Pool
from sweepledger.structs.platform import (
    REMOTE,
    GitSource,
    Names,
    RequiredSecret,
    patches_folder,
    platform_folder,
)
from sweepledger.structs.program import LOCAL_IMAGE
from sweepledger.structs.settings import BucketSettings, Settings


def doctor(
    context: ContextOption = None,
    cluster: InOption = None,
    prove: bool = flag("--prove", "Run a temporary Job that writes results as a trial does."),
    release: bool = flag(
        "--release", "Release pods that are kept for records that no collector will read; then check."
    ),
    write: bool = flag(
        "--write", "Tick the checklist in the README.md of the platform where a check passes."
    ),
    patience: PatienceOption = 300,
) -> Response:
    workspace = Workspace.find(current_folder()).in_cluster(cluster)
    kubectl = Kubectl(context)
    released = release_pods(workspace, kubectl, time.time()) if release else {}
    findings = diagnose(workspace, kubectl, prove=prove, patience=patience)
    lines = [Text(f"released: {len(names)} pods of {batch}") for batch, names in released.items()]
    for finding in findings:
        message = f": {finding.message}" if finding.message else ""
        hint = f"\n  hint: {finding.hint}" if finding.hint and finding.state is not OK else ""
        lines.append(untrusted_text(f"{finding.state}: {finding.part}: {finding.check}{message}{hint}"))
    path = workspace.root / platform_folder(workspace.cluster) / "README.md"
    if path.exists():
        states = {finding.check: finding.state is OK for finding in findings}
        page, items = readme.ticked(path.read_text(encoding="utf-8"), states)
        lines += map(Text, items)
        if write:
            storage.write_file(path, page.encode())
    return Response(
        {"findings": findings, "released": released},
        tuple(lines),
        exit_code=EXIT_DRIFT * any(finding.is_fault for finding in findings),
    )


INSTALL_HINTS = {
    **{own.domain: f"install {own.title}" for own in GITOPS.values()},
    "kueue.x-k8s.io": "install Kueue",
    "kubeflow.org": "install the Kubeflow controller of the kind",
}
"""Groups of custom resources, and what installs them."""

OK, MISSING, WRONG, NOT_CHECKED = HealthStatus
_Finding = Callable[..., HealthFinding]
"""Makes the finding of one check from its state, message and hint."""


def _checked(part: str, what: str, check: Callable[..., HealthFinding], *values: Any) -> HealthFinding:
    """Return the findings of a check, or the finding that it cannot read the cluster."""
    finding = partial(HealthFinding, part, what)
    try:
        return check(finding, *values)
    except ClusterError as error:
        return _unread(finding, error)


def _unread(finding: _Finding, error: ClusterError) -> HealthFinding:
    if error.reason == "Forbidden":
        return finding(NOT_CHECKED, "you may not read it", "ask an administrator for the permission")
    return finding(NOT_CHECKED, str(error), error.hint)


def examine_cluster(workspace: Workspace, kubectl: Kubectl) -> Iterator[HealthFinding]:
    """Yield a finding for each object that the cluster must have. Raises no errors: a check that fails is a finding."""
    settings = workspace.cluster_settings
    nodes = max((pool.max_nodes or 2 for pool in settings.trials.pools.values()), default=2)
    # Without manifests in the repository, a cluster needs its namespace.
    expected = _platform_manifests(workspace) or [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": settings.trials.namespace}}
    ]
    controller, fleet = settings.platform.controller, settings.fleet
    is_followed = controller in GITOPS
    source = _followed_source(workspace)
    apply = "ask the platform team"
    if source is not None and is_followed:
        then = manual_setup.apply_controller_command(fleet.cluster, controller, source)
        apply = f"`{manual_setup.apply_platform_command(fleet.cluster, controller, source)}`, then `{then}`"
    for manifest in expected:
        yield _checked("cluster", health.object_title(manifest), _object, kubectl, manifest, nodes, apply)
    names = {(manifest["kind"], manifest["metadata"]["name"]) for manifest in expected}
    namespace, pools = settings.trials.namespace, settings.trials.pools
    for name in sorted({*settings.results.claims.values(), *settings.trials.dataset_claims}):
        if ("PersistentVolumeClaim", name) not in names:
            what = f"PersistentVolumeClaim {namespace}/{name}"
            yield _checked("storage", what, _claim, kubectl, settings, name, nodes)
    for secret in _needed_secrets(settings, source):
        yield _checked("cluster", secret.title, _secret, kubectl, secret)
    for needed in needed_objects(settings):
        yield _checked("cluster", needed.title, _required, kubectl, needed)
    if is_followed:
        collector = Names.of(settings.trials, fleet).collector
        yield from _collector_findings(collector, settings.results.every_minutes, kubectl)
    yield from _held_findings(workspace, kubectl)
    if settings.results.bucket is not None:
        what = f"bucket {settings.results.bucket.url}"
        yield _checked("storage", what, _bucket, settings.results.bucket, workspace.repository)
        yield _checked("cluster", "kubelets start sidecars", _kubelets, kubectl)
    for queue in sorted({pool.queue for pool in pools.values() if pool.queue}):
        what = f"LocalQueue {namespace}/{queue}"
        yield _checked("cluster", what, check_queue, kubectl, namespace, queue, fleet.cluster)
    yield from node_findings(pools, kubectl)


def node_findings(pools: Mapping[str, Pool], kubectl: Kubectl) -> Iterator[HealthFinding]:
    """Yield whether a node has the labels of each pool; an autoscaler may add nodes only when a pod needs them."""
    for name, pool in sorted(pools.items()):
        if pool.selector or pool.gpu_type or (pool.queue is not None and not pool.flavor):
            labels = ",".join(f"{label}={value}" for label, value in kueue.node_labels(pool).items())
            yield _checked("cluster", f"nodes of pool {name}", _nodes, kubectl, labels)


def _nodes(finding: _Finding, kubectl: Kubectl, labels: str) -> HealthFinding:
    (*_, nodes) = kubectl.pages("/api/v1/nodes", labels, size=1)
    if nodes:
        return finding(OK, labels)
    hint = "label its nodes, or change the pool; where an autoscaler makes them on demand, nothing is wrong"
    return finding(NOT_CHECKED, f"no node has {labels}", hint)


HELD_SECONDS = 3600
"""Time after its end for which the collector may leave a pod as it is: several runs, and a server that is away."""


def unreleased_pods(
    workspace: Workspace, kubectl: Kubectl, now: float
) -> tuple[tuple[str, tuple[str, ...], str], ...]:
    """Return the ended pods that the collector will not release: batch, names and why. Raises ClusterError."""
    repository, tip = workspace.repository, workspace.base_commit(None)
    stored = {batch.name: batch for batch in batches.in_commit(repository, tip)}
    waiting = {batch.name for batch in stored.values() if batch.is_active}
    unrecorded = batch_records.unrecorded_batches(repository, tip, list(stored.values()))
    waiting.update(batch.name for batch in unrecorded)
    held: dict[str, list[str]] = {}
    for manifest in pods.held_pods(kubectl, workspace.settings.trials.namespace, apart_from=waiting):
        if pods.has_ended(manifest) and pods.ended_at(manifest) < now - HELD_SECONDS:
            batch = manifest_fields.text_at(manifest, "metadata", "labels", kubernetes.BATCH_LABEL)
            held.setdefault(batch, []).append(manifest_fields.text_at(manifest, "metadata", "name"))
    reasons = {
        True: "its results are recorded, and no collector has released them since",
        False: "no commit of the branch has this batch, so the collector will not record it",
    }
    return tuple(
        (batch, tuple(sorted(names)), reasons[batch in stored]) for batch, names in sorted(held.items())
    )


def release_pods(workspace: Workspace, kubectl: Kubectl, now: float) -> dict[str, tuple[str, ...]]:
    """Release the pods that the collector will not; return them by batch. Raises ClusterError, RepositoryError."""
    released = {batch: names for batch, names, _ in unreleased_pods(workspace, kubectl, now)}
    for names in released.values():
        pods.release(kubectl, workspace.settings.trials.namespace, names)
    return released


def _held_findings(workspace: Workspace, kubectl: Kubectl) -> Iterator[HealthFinding]:
    """Yield a finding for each batch with pods that the collector will not release, whatever the store is now."""
    finding = partial(HealthFinding, "storage", "pods that are kept for their records")
    try:
        listed = unreleased_pods(workspace, kubectl, time.time())
    except ClusterError as error:
        yield _unread(finding, error)
        return
    for batch, names, reason in listed:
        hint = "`sweep cluster doctor --release` lets them go; what git does not have of them is lost then"
        yield finding(WRONG, f"{len(names)} pods of {batch} have ended: {reason}", hint)
    if not listed and workspace.settings.results.store.facts.holds_pods:
        yield finding(OK, "none that the collector would not release")


OLDEST_KUBELET = (1, 29)
"""Older ones start no sidecars, and would wait for the end of a bucket's."""


def _bucket(finding: _Finding, bucket: BucketSettings, repository: Repository) -> HealthFinding:
    """Return whether this machine can list the bucket; pods have their own credentials."""
    try:
        return finding(OK, f"{len(bucket_results(bucket, repository).names())} folders are there")
    except GeneratorError as error:
        hint = "`sweep show --fetch` and `sweep logs` need it here; trials and collector have their own credentials"
        return finding(NOT_CHECKED, str(error), error.hint or hint)


def _kubelets(finding: _Finding, kubectl: Kubectl) -> HealthFinding:
    nodes = [node for page in kubectl.pages("/api/v1/nodes", "") for node in page]
    old = [
        f"{manifest_fields.text_at(node, 'metadata', 'name')} ({version})"
        for node in nodes
        if (version := manifest_fields.text_at(node, "status", "nodeInfo", "kubeletVersion"))
        and (kubernetes.parse_server_version(version) or kubernetes.NEWEST_VERSION) < OLDEST_KUBELET
    ]
    if not old:
        return finding(OK, f"{len(nodes)} nodes")
    hint = "upgrade these nodes, or keep trials from them by the selector of a pool"
    return finding(
        WRONG, f"older than {kubernetes.format_version(OLDEST_KUBELET)}: {', '.join(old[:5])}", hint
    )


def _storage(workspace: Workspace, kubectl: Kubectl, patience: float | None) -> HealthFinding:
    """Return whether a trial can write, which only a temporary Job like a trial shows; `patience` None runs no Job."""
    settings, finding = workspace.settings, partial(HealthFinding, "storage", kubernetes.WRITE_TEST_TITLE)
    is_held, bucket = settings.results.store.facts.holds_pods, settings.results.bucket
    if patience is None:
        unknown = "whether it is kept until it is released" if is_held else "how the volume's root is owned"
        hint = "`sweep cluster doctor --prove` runs one for a moment"
        return finding(NOT_CHECKED, f"only a pod can tell {unknown}", hint)
    image = settings.trials.image_of(None)
    if image == LOCAL_IMAGE:
        hint = "set defaults.image to one with Python"
        return finding(NOT_CHECKED, "settings name no image for a pod", hint)
    store = None
    if bucket is not None:
        component = base_files.component_patch(
            read_bases(workspace.root), settings.results.store.facts.component
        )
        name = helper_pods.WRITE_TEST_NAME
        store = pod.store_proof(name, settings.trials, settings.network, bucket, component)
    claim = settings.results.claims.get(kubernetes.RESULTS_VOLUME)
    job = helper_pods.write_test_job(
        settings.trials.namespace, claim, image, kubernetes.TRIAL_ACCOUNT, is_held=is_held, store=store
    )
    return helper_pods.run_write_test(kubectl, job, patience=patience)


def _platform_manifests(workspace: Workspace) -> list[Mapping[str, Any]]:
    """Return the manifests that this cluster must have, from the commit that its controller follows.

    Manifests of a controller in another cluster are not among them.
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
        hint = "`sweep cluster bootstrap` writes it again"
        raise RepositoryError(f"{path}:{error.line}: {error}", hint=hint) from error


def _object(
    finding: _Finding, kubectl: Kubectl, manifest: Mapping[str, Any], nodes: int, apply: str
) -> HealthFinding:
    try:
        observed = kubectl.find(manifest)
    except ClusterError as error:
        if error.reason != "UnknownKind":
            raise
        group = str(manifest["apiVersion"]).partition("/")[0]
        install = next((way for name, way in INSTALL_HINTS.items() if group.endswith(name)), apply)
        text = f"the cluster knows no {manifest['kind']} of {manifest['apiVersion']}"
        return replace(finding(MISSING, text, install), part="controller")
    return health.check_object(manifest, observed, nodes=nodes, apply=apply)


def _followed_source(workspace: Workspace) -> GitSource | None:
    """Return the source for which the followed bootstrap was made; None if no bootstrap can be read."""
    held = workspace.repository.read(workspace.base_commit(None), bootstrap_yaml.BOOTSTRAP_FILE)
    content = held.get(bootstrap_yaml.BOOTSTRAP_FILE)
    if content is None:
        return None
    try:
        return recorded_source(bootstrap_yaml.read(content))
    except (ValueError, RepositoryError):
        return None  # `sweep cluster bootstrap` reports an invalid file


def _claim(finding: _Finding, kubectl: Kubectl, settings: Settings, name: str, nodes: int) -> HealthFinding:
    if not settings.results.store.facts.is_shared and name in settings.results.claims.values():
        nodes = 1  # whatever the pools are: that is what this store means
    claim = kubectl.get("persistentvolumeclaims", name, settings.trials.namespace)
    if claim is None:
        hint = "make it, or name another in sweepledger.yaml"
        return finding(MISSING, "the cluster does not have it", hint)
    return health.check_claim(claim, nodes=nodes)


def _needed_secrets(settings: Settings, source: GitSource | None) -> tuple[RequiredSecret, ...]:
    """Return the Secrets that the cluster needs, as `sweep cluster bootstrap` lists them."""
    nowhere = GitSource("https://unknown.invalid/repository", settings.git.branch, is_public=True)
    needed = needed_secrets(settings, source or nowhere)
    if source is not None:
        return tuple(secret for secret in needed if not secret.is_elsewhere)
    return tuple(secret for secret in needed if secret.namespace == settings.trials.namespace)


def _required(finding: _Finding, kubectl: Kubectl, needed: RequiredObject) -> HealthFinding:
    try:
        is_there = kubectl.get(needed.resource, needed.name, needed.namespace) is not None
    except ClusterError as error:
        if error.reason != "UnknownKind":
            raise
        is_there = False
    if is_there:
        return finding(OK, needed.purpose)
    return finding(MISSING, f"{needed.purpose} needs it", f"make it, or name another in {SETTINGS_FILE}")


def _secret(finding: _Finding, kubectl: Kubectl, needed: RequiredSecret) -> HealthFinding:
    keys = kubectl.secret_keys(needed.name, needed.namespace)
    if keys is None:
        hint = f"make it with {', '.join(needed.keys)}; `sweep cluster bootstrap` prints the command"
        return finding(MISSING, f"the cluster has none ({needed.purpose})", hint)
    if missing := sorted(set(needed.keys) - set(keys)):
        text = f"its keys are {', '.join(keys) or 'none'} ({needed.purpose})"
        return finding(WRONG, text, f"add {', '.join(missing)}")
    return finding(OK, needed.purpose)


def _collector_findings(namespace: str, every_minutes: int, kubectl: Kubectl) -> Iterator[HealthFinding]:
    """Yield whether and when the collector last succeeded; nothing if its CronJob is missing or suspended."""
    finding = partial(HealthFinding, "cluster", f"collector of {namespace}")
    try:
        state = collector_state.read_collector(kubectl, namespace, every_minutes)
    except ClusterError as error:
        yield _unread(finding, error)
        return
    if not state.exists or state.is_suspended:
        return  # the finding of the CronJob says so
    if (trouble := state.trouble(time.time())) is not None:
        yield finding(WRONG, *trouble)
    elif state.last_success is None:
        yield finding(NOT_CHECKED, "it has not run yet")
    else:
        yield finding(OK, f"it last succeeded at {format_time(state.last_success)}")


def check_queue(
    finding: _Finding, kubectl: Kubectl, namespace: str, name: str, cluster: str | None
) -> HealthFinding:
    try:
        queue = kubectl.get("localqueues.kueue.x-k8s.io", name, namespace)
    except ClusterError as error:
        if error.reason != "UnknownKind":
            raise
        unknown = finding(MISSING, "the cluster has no Kueue", INSTALL_HINTS["kueue.x-k8s.io"])
        return replace(unknown, part="controller")
    if queue is None:
        sample = f"{platform_folder(cluster)}/optional/kueue.yaml"
        hint = f"make it, or name another at the pool: {sample} is a sample"
        return finding(MISSING, "trials would wait for ever", hint)
    whole = manifest_fields.text_at(queue, "spec", "clusterQueue")
    try:
        quotas = kubectl.get("clusterqueues.kueue.x-k8s.io", whole, None) or {}
    except ClusterError as error:
        if error.reason != "Forbidden":  # it belongs to the cluster
            raise
        quotas = {}
    unbounded = sorted(
        {
            manifest_fields.text_at(resource, "name")
            for group in manifest_fields.objects_at(quotas, "spec", "resourceGroups")
            for flavor in manifest_fields.objects_at(group, "flavors")
            for resource in manifest_fields.objects_at(flavor, "resources")
            if manifest_fields.text_at(resource, "nominalQuota") == kueue.NO_BOUND
        }
    )
    if unbounded:
        text = (
            f"its quota of {', '.join(unbounded)} is the placeholder {kueue.NO_BOUND}, which bounds nothing"
        )
        return finding(NOT_CHECKED, text, f"write what its nodes have into ClusterQueue {whole}")
    return finding(OK)


def diagnose(
    workspace: Workspace, kubectl: Kubectl, *, prove: bool = False, patience: float = 300.0
) -> tuple[HealthFinding, ...]:
    """Check tools, repository and cluster; with `prove`, a temporary Job also writes like a trial.

    Changes nothing else. Findings have the order in which a user fixes them; a check that cannot run is a finding.
    """
    repository, server = workspace.repository, _server(kubectl, workspace.settings.platform.kubernetes)
    findings = [
        _tool("tools", "kustomize", lambda: f"{kustomize.version()} ({' '.join(kustomize.command())})"),
        _tool("tools", "kubectl", lambda: f"{client.version()} ({' '.join(client.command())})"),
        _tool("tools", "git", lambda: repository.run("--version").strip().removeprefix("git version ")),
        *_repository(workspace),
        server,
    ]
    if server.state is MISSING:
        return (*findings, HealthFinding("cluster", "everything in it", NOT_CHECKED, "no cluster answers"))
    findings += examine_cluster(workspace, kubectl)
    return (*findings, _storage(workspace, kubectl, patience if prove else None))


def _tool(part: str, what: str, check: Callable[[], str]) -> HealthFinding:
    try:
        return HealthFinding(part, what, OK, check())
    except GeneratorError as error:
        return HealthFinding(part, what, MISSING, str(error), error.hint)


def _repository(workspace: Workspace) -> Iterator[HealthFinding]:
    settings, repository, remote = workspace.settings, workspace.repository, workspace.remote

    def address() -> str:
        parts = urlsplit(url := workspace.remote_url())
        is_ssh = parts.scheme == "ssh" and parts.password is None  # the user in an ssh URL is not secret
        return url if is_ssh else parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()

    def branch() -> str:
        if found := repository.run("ls-remote", "--", remote, f"refs/heads/{settings.git.branch}").strip():
            return found[:8]
        raise RepositoryError("the remote answers, and has no such branch", hint="push it")

    finding = _tool("repository", f"remote {remote}", address)
    yield finding
    if finding.state is OK:
        yield _tool("repository", f"branch {remote}/{settings.git.branch}", branch)
    if settings.platform.controller in GITOPS:
        place = platform_folder(workspace.cluster)
        finding = HealthFinding("repository", f"{place}/ on the branch", OK)
        text = "the controller has nothing to follow"
        hint = f"`sweep cluster bootstrap {settings.platform.controller}`, then merge what it writes"
        is_there = bool(repository.files(workspace.base_commit(None), f"{place}/platform"))
        yield finding if is_there else replace(finding, state=MISSING, message=text, hint=hint)


def _server(kubectl: Kubectl, oldest: tuple[int, int]) -> HealthFinding:
    finding = partial(HealthFinding, "cluster", "server version")
    try:
        _, server = kubectl.versions()
    except ToolError as error:
        return finding(MISSING, str(error), error.hint)
    version = kubernetes.parse_server_version(server)
    if version is None:
        return finding(NOT_CHECKED, f"{server!r} is no version")
    if version < oldest:
        return finding(
            WRONG, f"{server} is older than {kubernetes.format_version(oldest)}", "upgrade the cluster"
        )
    return finding(OK, server)
