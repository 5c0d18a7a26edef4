"""`sweep cluster bootstrap`: the platform's files in `clusters/`, and the steps that remain manual.

A file that was edited is kept and reported until `--force`; `sweep check` compares by the same rule.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from sweepledger import controllers, storage
from sweepledger.controllers import GITOPS
from sweepledger.errors import RepositoryError, UsageError
from sweepledger.formats import bootstrap_yaml as file
from sweepledger.formats import yaml
from sweepledger.operations.repository.spec_edit import edit_settings
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.render.platform import batch_objects, readme
from sweepledger.render.platform.manual_setup import (
    RequiredObject,
    required_objects,
    required_secrets,
)
from sweepledger.render.platform.network import ports_to_anywhere
from sweepledger.render.platform.objects import BANNER
from sweepledger.render.platform.team import SIGNING_KEY
from sweepledger.render.platform.tree import platform_tree
from sweepledger.repo import base_files, batches
from sweepledger.repo.inputs import PlatformFiles, PlatformInputs
from sweepledger.spec import ParsedSpec
from sweepledger.structs.file_tree import FileTree
from sweepledger.structs.names import SETTINGS_FILE
from sweepledger.structs.platform import (
    CLUSTERS,
    DEFAULT_HOST,
    WITH_WORKFLOWS,
    GitSource,
    Names,
    RequiredSecret,
)
from sweepledger.structs.run_config import Shape
from sweepledger.structs.settings import (
    API_SERVER_EGRESS,
    GIT_EGRESS,
    Controller,
    FleetSettings,
    GitSettings,
    ResultsMode,
    Settings,
)
from sweepledger.structs.values import bytes_digest

OBJECT_WORD = re.compile(r"[A-Za-z0-9.:-]{0,253}", re.ASCII)
"""A kind, a name or a namespace."""
EXTRA_FOLDER = f"{CLUSTERS}/extra/"
"""A team's own files: nothing here writes or compares them, or applies them but the component of a platform."""


@dataclass(frozen=True, order=True)
class ClusterObject:
    """An object that a file of the platform declares."""

    cluster: str
    """Empty: the only cluster."""
    kind: str
    namespace: str
    """Empty: it belongs to the cluster."""
    name: str

    @property
    def deletion(self) -> str:
        """Return the command that deletes it."""
        where = f" --namespace {self.namespace}" if self.namespace else ""
        return f"kubectl delete {self.kind.lower()} {self.name}{where}"


@dataclass(frozen=True)
class PlatformComparison:
    """The expected platform files, and how the existing files differ from them."""

    expected: FileTree
    missing: tuple[str, ...]
    changed: tuple[str, ...]
    """Unedited files whose expected content changed; files of merged batches never change."""
    stale: tuple[str, ...]
    """Unedited files that are no longer expected."""
    undeclared: tuple[ClusterObject, ...]
    """Objects of these files that no expected file declares, sorted."""
    edited: tuple[str, ...]
    foreign: tuple[str, ...]
    """Files that are neither the platform's nor in the folder for a team's own."""


def _objects(path: str, content: bytes) -> Iterator[ClusterObject]:
    """Yield the objects in a file that the controller applies as a part of the platform."""
    folder, is_applied, _ = path.rpartition("/platform/")
    cluster = folder.removeprefix(CLUSTERS).removeprefix("/")
    if not is_applied or not path.endswith(".yaml"):
        return
    try:
        documents = yaml.load_all(content)
    except ValueError:
        return  # a record of the repository can claim any file
    for document in documents:
        metadata = document.get("metadata") if isinstance(document, dict) else None
        if isinstance(metadata, dict):
            given = (document.get("kind"), metadata.get("namespace", ""), metadata.get("name"))
            words = [word for word in given if isinstance(word, str) and OBJECT_WORD.fullmatch(word)]
            if len(words) == len(given):
                kind, namespace, name = words
                yield ClusterObject(cluster, kind, namespace, name)


def compare_platform(
    files: PlatformFiles,
    settings: Settings,
    source: GitSource,
    before: file.Bootstrap | None,
    active: Iterable[batches.StoredBatch],
) -> PlatformComparison:
    """Compare `clusters/` with the files for these settings, and with the active batches that can be read.

    Raises RepositoryError if the files in `base/` are not those of a platform.
    """
    clusters = {batch.name: batch.lock.cluster for batch in active}
    try:
        rendered = platform_tree(settings, source, files.bases, clusters, files.existing.keys())
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        # An edited base can lack anything that the rendering relies on, down to being YAML at all.
        raise RepositoryError(
            f"the platform cannot be made from the files in base/: {type(error).__name__}: {error}",
            hint="restore them: `git checkout COMMIT -- base`",
        ) from error
    digests = {path: digest for path, digest in rendered.digests.items() if not is_batch_file(path)}
    made_for = file.Bootstrap(
        controller=settings.platform.controller,
        url=source.url,
        branch=source.branch,
        shapes=source.shapes,
        public=source.is_public,
        files=digests,
    )
    record = file.write(made_for, banner=BANNER).encode()
    # A record is a file of the repository as others: no entry makes a team's own file one of the platform's.
    recorded = {
        path: digest
        for path, digest in (before.files if before else {}).items()
        if not path.startswith(EXTRA_FOLDER)
    }
    # What `sweep cluster doctor` has ticked is no edit.
    existing = {
        path: held.replace(readme.DONE.encode(), readme.OPEN.encode())
        if path.endswith("/README.md")
        else held
        for path, held in files.existing.items()
    }
    unedited = {path for path, held in existing.items() if recorded.get(path) == bytes_digest(held)}
    for path, held in existing.items():  # `sweep generate` writes these, and no record lists them
        match = batch_objects.BATCH_FILE.fullmatch(path)
        if match is not None:
            own, batch = Controller(match["controller"]), {match["batch"]: None}
            if held in batch_objects.batch_files(own, settings.trials.namespace, batch).values():
                unedited.add(path)
    expected = FileTree({**rendered.files, file.BOOTSTRAP_FILE: record})
    ours = {*expected.files, *recorded}
    changed = tuple(
        path
        for path, content in expected
        if existing.get(path, content) != content
        and (path in unedited or path == file.BOOTSTRAP_FILE)
        and not is_batch_file(path)
    )
    stale = tuple(sorted(unedited - expected.files.keys()))
    former = {one for path in (*changed, *stale) for one in _objects(path, existing.get(path, b""))}
    declared = (one for path, content in expected for one in _objects(path, content))
    edited = (
        path
        for path in (ours - unedited - {file.BOOTSTRAP_FILE}) & existing.keys()
        if existing[path] != expected.files.get(path) and not is_batch_file(path)
    )
    foreign = (
        path
        for path in existing.keys() - ours
        if not path.startswith(EXTRA_FOLDER) and not is_batch_file(path)
    )
    return PlatformComparison(
        expected,
        tuple(path for path, _ in expected if path not in existing),
        changed,
        stale,
        tuple(sorted(former.difference(declared))) if former else (),
        tuple(sorted(edited)),
        tuple(sorted(foreign)),
    )


def recorded_source(recorded: file.Bootstrap) -> GitSource:
    """Return the source for which the last bootstrap was made. Raises RepositoryError if no cluster can read it."""
    try:
        return GitSource(recorded.url, recorded.branch, recorded.shapes, is_public=recorded.public)
    except ValueError as error:
        raise RepositoryError(
            f"{file.BOOTSTRAP_FILE}: {error}",
            hint="`sweep cluster bootstrap --repo URL --branch NAME` writes it again",
        ) from error


def is_batch_file(path: str) -> bool:
    """Return whether a file belongs to a batch: `sweep generate` writes it, and no platform record lists it."""
    return batch_objects.BATCH_FILE.fullmatch(path) is not None


PLATFORM_BASES = (
    *("platform/admission/v1", "platform/monitoring/v1", "platform/kueue/v1", "platform/team/v1"),
    *(f"platform/{name}/v1" for name in GITOPS),
)
"""Bases of the platform's files: the repository keeps its own, so that no newer version changes them."""


def needed_secrets(own: Settings, source: GitSource) -> tuple[RequiredSecret, ...]:
    """Return the Secrets of a cluster by its settings, including those in the controller's cluster."""
    names = Names.of(own.trials, own.fleet)
    of_controller = controllers.secrets(names, own.platform, source)
    return tuple(required_secrets(names, own.trials, own.git.code, own.results, of_controller, source))


def needed_objects(own: Settings) -> tuple[RequiredObject, ...]:
    """Return the objects other than Secrets that a person creates in a cluster, by its settings."""
    names = Names.of(own.trials, own.fleet)
    return required_objects(names, own.trials, own.network.authorities, own.platform.collector)


@dataclass(frozen=True)
class BootstrapRequest:
    """The options of the command; None: as in the last bootstrap, else as in the repository."""

    controller: Controller
    url: str | None = None
    branch: str | None = None
    shapes: tuple[Shape, ...] | None = None
    is_public: bool | None = None
    mode: ResultsMode | None = None
    monitoring: bool | None = None
    force: bool = False


@dataclass(frozen=True)
class Bootstrapped:
    """The written files and the manual steps."""

    settings: Settings
    source: GitSource
    workflows: tuple[str, ...]
    """Folders and files of the git host's workflows in the repository."""
    written: tuple[str, ...]
    removed: tuple[str, ...]
    kept: tuple[str, ...]
    """Files that were edited: the settings no longer change them."""
    changed_settings: tuple[str, ...]
    undeclared: tuple[ClusterObject, ...] = ()
    """Objects that the files declared before: no controller deletes them, because none prunes a platform."""
    former_url: str | None = None
    """The repository to which the platform's objects belonged, if it is another."""

    @property
    def secrets_by_cluster(self) -> tuple[tuple[str | None, tuple[RequiredSecret, ...]], ...]:
        """Return the Secrets to create, by cluster; first, without a name, those of the controller's own cluster."""
        required = {own.fleet.cluster: needed_secrets(own, self.source) for own in self.settings.in_clusters}
        here = {
            cluster: tuple(secret for secret in secrets if not secret.is_elsewhere)
            for cluster, secrets in required.items()
        }
        known = {secret for secrets in here.values() for secret in secrets}
        elsewhere = dict.fromkeys(
            secret
            for secrets in required.values()
            for secret in secrets
            if secret.is_elsewhere and replace(secret, is_elsewhere=False) not in known
        )
        return (*([(None, tuple(elsewhere))] if elsewhere else []), *here.items())

    @property
    def required_objects(self) -> tuple[tuple[str | None, tuple[RequiredObject, ...]], ...]:
        """Return the objects other than Secrets that a person creates, for each cluster that needs any."""
        needed = ((own.fleet.cluster, needed_objects(own)) for own in self.settings.in_clusters)
        return tuple((cluster, objects) for cluster, objects in needed if objects)

    @property
    def gaps(self) -> tuple[str, ...]:
        """Return settings that are missing, and what the platform lacks because of them."""
        lacking: dict[str, list[str]] = {}
        for own in self.settings.in_clusters:
            for gap in (*_unset_settings(own), *_egress_gaps(own, self.source)):
                lacking.setdefault(gap, []).append(own.fleet.cluster or "")
        every = len(self.settings.in_clusters)
        return tuple(
            gap if len(clusters) == every else f"{gap} (only in cluster {', '.join(clusters)})"
            for gap, clusters in lacking.items()
        )


def bootstrap(workspace: Workspace, request: BootstrapRequest) -> Bootstrapped:
    """Write the platform's files and set `controller:` and `results.mode:`; a second run changes nothing.

    Edited files are overwritten only with `force`. Raises UsageError, RepositoryError, SpecError.
    """
    inputs = PlatformInputs.read(workspace.repository, CLUSTERS)
    recorded, active = inputs.recorded, inputs.active
    source = _source(workspace, request, inputs)
    edit = edit_settings(inputs.settings, _edits(workspace, request, source, recorded))
    settings = edit.settings
    # A controller deletes the Jobs of active batches whose cluster is gone.
    for batch, text, hint in unapplied_batches(active, settings.fleet):
        raise RepositoryError(f"{batch.name} {text}", hint=f"{hint}; then run this again")
    compared = compare_platform(inputs.platform, settings, source, recorded, active)
    kept, undeclared = () if request.force else compared.edited, compared.undeclared
    due = {*compared.missing, *compared.changed, *(compared.edited if request.force else ())}
    written = tuple(sorted(due & compared.expected.files.keys()))
    for path in written:
        storage.write_file(workspace.root / path, compared.expected[path])
    for path in compared.stale:
        with storage.storage_errors(workspace.root / path):
            (workspace.root / path).unlink()
    base_files.write_bases(workspace.root, PLATFORM_BASES)
    if edit.changes:
        storage.write_file(workspace.root / SETTINGS_FILE, edit.text.encode())
    former = _followed_url(workspace.settings.git, recorded)
    hosts = (host for host in WITH_WORKFLOWS.values() if (workspace.root / host.workflows[-1]).exists())
    return Bootstrapped(
        settings,
        source,
        tuple(f"/{path}" for path in next(hosts, DEFAULT_HOST).workflows),
        written,
        compared.stale,
        kept,
        edit.changes,
        undeclared=undeclared,
        former_url=former if former != source.url else None,
    )


def unapplied_batches(
    active: Iterable[batches.StoredBatch], fleet: FleetSettings
) -> Iterator[tuple[batches.StoredBatch, str, str]]:
    """Yield the active batches that no cluster of the settings would run, with their clusters and remedies."""
    own = {*fleet.live_clusters} if fleet.clusters else {None}
    for batch in active:
        cluster, cancel = batch.lock.cluster, f"`sweep cancel {batch.sweep} --replace`"
        if cluster in own:
            continue
        if cluster in fleet.lost_clusters:
            where = f"is active in cluster {cluster!r}, which was given up"
            yield batch, where, f"remove `cluster: {cluster}` from its spec if it has it, and run {cancel}"
        else:
            place = "the only cluster" if cluster is None else f"cluster {cluster!r}"
            where = f"is active in {place}, which the settings do not have"
            yield batch, where, f"wait until it is recorded, or run {cancel}"


def _unset_settings(own: Settings) -> Iterator[str]:
    """Yield settings that are missing or do not fit, each with the consequence."""
    trials, results, names = own.trials, own.results, Names(own.trials.namespace)
    lost = (
        "`sweep check` refuses the collector's branches"
        if results.mode is ResultsMode.BRANCH
        else "no signature protects results"
    )
    rules = {
        "images.collector: not set, so the collector is suspended; `sweep cluster pin collector` sets it": (
            "collector" not in trials.images
        ),
        "images.sync: not set, so nothing is written to the stores of results.sync": (
            results.sync and "sync" not in trials.images
        ),
        f"signers: not set, so {lost}; list the public half of the key {SIGNING_KEY!r}": (
            not own.git.signers
        ),
        f"results.nfs: not set, so no volume is written; make the claim {results.claim!r} in {names.trials} "
        f"(ReadWriteMany) and in {names.collector} (ReadOnlyMany) over the same data": (
            results.nfs is None and results.store.facts.is_shared
        ),
        f"results.claim: no volume is written; make the claim {results.claim!r} in {names.trials} "
        "(ReadWriteOnce), of a class whose volumes honour fsGroup": (
            results.store.facts.has_claims and not results.store.facts.is_shared
        ),
        "pools: without max_nodes for each, the quota bounds no cpu, memory or GPUs; nor is there a "
        "sample of such a pool's queue": (
            not trials.pools or any(pool.max_nodes is None for pool in trials.pools.values())
        ),
    }
    return (text for text, is_gap in rules.items() if is_gap)


def _egress_gaps(own: Settings, source: GitSource) -> Iterator[str]:
    """Yield hosts that the network policy allows without need, and required hosts that it blocks."""
    network, is_set = own.network, GIT_EGRESS in own.network.egress
    server = network.egress.get(GIT_EGRESS)
    if server is not None and source.port not in (None, *server.ports) and network.proxy is None:
        opened = ", ".join(map(str, server.ports))
        yield (
            f"egress.{GIT_EGRESS}.ports: {opened}, without {source.port} of {source.origin}, so the collector cannot "
            f"reach the repository where the network enforces NetworkPolicies; add {source.port}"
        )
    if own.results.keep_days is not None and not is_set and source.port is not None:
        yield (
            f"egress.{GIT_EGRESS}: not set, so what deletes old results may reach every host on port {source.port}"
        )
    if own.git.code is not None and not is_set and network.proxy is None:
        yield (
            f"egress.{GIT_EGRESS}: not set, so trials cannot clone code where the network enforces NetworkPolicies; "
            "name the address of the git server"
        )
    ports = ports_to_anywhere(network, source)
    if ports:
        listed = ", ".join(map(str, ports))
        yield (
            f"egress.{GIT_EGRESS}, egress.{API_SERVER_EGRESS}: not both set, so the collector may reach every host "
            f"on ports {listed}; name the addresses of the git server and of the API server"
        )


def _source(workspace: Workspace, request: BootstrapRequest, inputs: PlatformInputs) -> GitSource:
    """Return the requested source, else that of the last bootstrap, else that of the repository.

    Shapes of active batches and of specs are always allowed.
    """
    recorded = inputs.recorded
    url = request.url or _followed_url(workspace.settings.git, recorded) or workspace.remote_url()
    branch = request.branch or (recorded.branch if recorded else workspace.settings.git.branch)
    shapes = {*(request.shapes if request.shapes is not None else (recorded.shapes if recorded else ()))}
    specs = (workspace.parse(path) for path in inputs.specs)  # wrong ones are ignored
    requested = (parsed.sweep.run.shape for parsed in specs if isinstance(parsed, ParsedSpec))
    in_use = {*inputs.shapes, *filter(None, requested)}
    shapes |= {shape for shape in in_use if shape.is_distributed}
    public = request.is_public if request.is_public is not None else bool(recorded and recorded.public)
    try:
        source = GitSource(url, branch, tuple(sorted(shapes)), is_public=public)
    except ValueError as error:
        raise UsageError(
            str(error), hint="--repo https://git.example/team/sweeps.git --branch main"
        ) from error
    own = GITOPS[request.controller]
    if source.scheme == "file" and not own.reads_folders:
        raise UsageError(f"{own.title} reads no file:// URL", hint="serve the repository by https or ssh")
    if not all(shape.is_distributed for shape in source.shapes):
        raise UsageError("--shape is for distributed shapes; plain Jobs are always allowed")
    return source


def _followed_url(git: GitSettings, recorded: file.Bootstrap | None) -> str | None:
    """Return the address that the cluster follows now; None before the first bootstrap."""
    return git.repository or (recorded.url if recorded else None)


def _edits(
    workspace: Workspace, request: BootstrapRequest, source: GitSource, recorded: file.Bootstrap | None
) -> Mapping[tuple[str, ...], object]:
    """Return the values to set, by key. A changed address is set, so that a reviewer sees it."""
    settings = workspace.settings
    mode = request.mode or settings.results.mode
    edits: dict[tuple[str, ...], object] = {
        ("controller",): request.controller.value,
        ("results", "mode"): mode.value,
    }
    if request.monitoring is not None and request.monitoring is not settings.platform.monitoring.enabled:
        edits["monitoring",] = {} if request.monitoring else None
    if settings.git.branch != source.branch:
        edits["branch",] = source.branch
    if source.url != (_followed_url(settings.git, recorded) or source.url):
        edits["repository",] = source.url
    return edits
