"""Build or serve a site to browse and compare sweeps and trials.

It opens from a folder or from any web server, and makes no network requests. Only the pages of sweeps that
changed since the last build are computed. With --serve, a server on this machine builds it again when the
branch moves, and shows the curves of running trials, which are never committed.
"""

# The pages of a sweep are kept if everything that they are computed from has the same blobs as before. What was
# built before is believed only if this clone's state folder has the digest of its manifest.
#
# The server listens on loopback only, and only answers GET. Running trials are read from the results folder of
# `sweep run` and `sweep cluster local`, or with kubectl from the pods' logs. Everything read was written by trials,
# and is text and numbers only.

import hashlib
import re
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import unquote, urlsplit

import typer
from rich.text import Text

from sweepledger import __version__, storage
from sweepledger.cli.options import ContextOption, StateOption
from sweepledger.cli.response import Response, current_folder
from sweepledger.commands.collection.attempts import evaluate_here
from sweepledger.commands.reports.history import HistoryReader
from sweepledger.commands.reports.status import TrialState, live_batches, local_states
from sweepledger.commands.repository import costs
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.engine.cluster import pods
from sweepledger.engine.cluster.kubectl import ClusterError, Kubectl
from sweepledger.engine.cluster.pods import PodPhase
from sweepledger.engine.local import store
from sweepledger.engine.local.volumes import reported_lines
from sweepledger.errors import GeneratorError, StorageError, UsageError
from sweepledger.formats import json
from sweepledger.plan import counts_towards
from sweepledger.reader.metric_lines import objective_points
from sweepledger.repo import batches, files, volume
from sweepledger.repo.batches import ACTIVE, ARCHIVE, StoredBatch
from sweepledger.repo.git import Entry, commit_time
from sweepledger.repo.state import create_state, state_folder
from sweepledger.site import pages as site_pages
from sweepledger.site.fragment import sweep_pages
from sweepledger.site.history import MonthlyCost, monthly_times
from sweepledger.structs.file_tree import FileTree
from sweepledger.structs.names import RESULTS, SETTINGS_FILE, SPECS, SUFFIX, is_sweep_name
from sweepledger.structs.record import CurvePoint
from sweepledger.structs.values import bytes_digest, digest

MANIFEST = "site.json"
HOME, COMPARE, DATA = "index.html", "compare.html", "data.json"
PAGE = re.compile(r"sweeps/[^/]+/(?:index\.html|trials\.html|data\.json)")
"""Paths of the pages of sweeps."""
MOST_FOLLOWED = 200
"""Trials of a batch whose curves are read: more lines cannot be told apart, and each is a file, or a request."""
MOST_POINTS = 200
LONGEST_OUTPUT = 2000
LOG_LINES = 2000
LOG_BYTES = 256 * 1024

Points = tuple[tuple[int, float], ...]


def site(
    revision: Annotated[
        str, typer.Argument(metavar="[COMMIT]", help="Commit, branch or tag that is shown.")
    ] = "HEAD",
    out: Annotated[
        Path,
        typer.Option("--out", metavar="DIR", help="Folder of the site: new, empty, or of an earlier site."),
    ] = Path("site"),
    serve: Annotated[
        bool,
        typer.Option(
            "--serve", help="Show it in a browser of this machine: follow the branch, and what runs."
        ),
    ] = False,
    port: Annotated[
        int,
        typer.Option(
            "--port", min=0, max=65535, metavar="N", help="Port of --serve on 127.0.0.1; 0: a free one."
        ),
    ] = 8571,
    state: StateOption = None,
    cluster: Annotated[
        bool,
        typer.Option("--cluster", help="With --serve, read running trials from the cluster, with kubectl."),
    ] = False,
    context: ContextOption = None,
) -> Response:
    workspace = Workspace.find(current_folder())
    if serve:
        folder = state_folder(workspace.repository, state)
        kubectl = Kubectl(context) if cluster or context is not None else None
        server = SiteServer(workspace, out, revision, state=folder, kubectl=kubectl).listen(port)
        with suppress(KeyboardInterrupt):
            print(f"{server.url} shows {revision} until Ctrl-C", file=sys.stderr, flush=True)
            server.serve()
        return Response({"url": server.url})
    built = build_site(workspace, out, revision)
    counts = (
        f"{built.sweeps} sweep(s), {len(built.rebuilt)} computed, {built.files['written']} file(s) written"
    )
    lines = (
        *(Text(f"not shown: {line}", "yellow") for line in built.unreadable),
        Text(f"{built.out / HOME}: {counts}"),
    )
    return Response(built, lines)


@dataclass(frozen=True)
class BuiltSite:
    """What `sweep site` wrote."""

    out: Path
    commit: str
    sweeps: int
    rebuilt: tuple[str, ...]
    """Sweeps whose pages were computed; those of the others were kept."""
    unreadable: tuple[str, ...]
    """Why the results of some sweeps are not shown."""
    files: Mapping[str, int]
    """How many there are in total, how many were written because they changed, and how many removed."""


@dataclass(frozen=True)
class _Previous:
    """The site that is in the folder; empty unless it is this clone's own."""

    sweeps: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Inputs, card and problem by sweep."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Digest of each file by path."""


def build_site(workspace: Workspace, out: Path, revision: str = "HEAD") -> BuiltSite:
    """Build the site of a commit in a folder. Raises UsageError, RepositoryError, StorageError."""
    commit = workspace.commit(revision)
    target = storage.output_path(out, is_folder=True)
    name = hashlib.sha256(str(target).encode()).hexdigest()
    state = create_state(workspace.repository) / "site" / name
    previous = _read_previous(target, state)
    builder = _SiteBuilder(workspace, commit, target, previous)
    for sweep in builder.sweeps:
        builder.add(sweep)
    tree = builder.tree()
    written, removed = _write(target, tree)
    storage.write_file(state, bytes_digest(tree[MANIFEST]).encode())
    problems = tuple(f"{name}: {made['problem']}" for name, made in builder.made.items() if made["problem"])
    counts = {"total": len(tree.files), "written": written, "removed": removed}
    return BuiltSite(out, commit, len(builder.made), tuple(builder.rebuilt), problems, counts)


def _read_previous(target: Path, state: Path) -> _Previous:
    """Return what this clone built there before, if its file in the state folder has the digest of the manifest.

    Raises StorageError for a folder with other files.
    """
    present = files.list_folder(target)
    if not present:
        return _Previous()
    if MANIFEST not in present:
        raise StorageError(
            f"{target} has files, but no {MANIFEST} of an earlier site",
            hint="choose a new or an empty folder: files of the site replace others",
        )
    content = files.read_file(target / MANIFEST)
    if not state.is_file() or files.read_file(state) != bytes_digest(content).encode():
        return _Previous()
    data = json.load(content)
    if data["generator"] != __version__ or data["assets"] != site_pages.assets_digest():
        return _Previous()
    return _Previous(data["sweeps"], data["files"])


def _write(target: Path, tree: FileTree) -> tuple[int, int]:
    """Write what differs, the manifest last, and remove pages of an earlier site; return both numbers."""
    if not target.is_dir():
        files.write_folder(target, tree)
        return len(tree.files), 0
    ordered = [path for path, _ in tree if path != MANIFEST] + [MANIFEST]
    written = sum(storage.write_file(target / path, tree[path]) for path in ordered)
    # Only what a site can have: the folder may have files that something else added, such as CNAME.
    stale = [path for path in files.list_folder(target) if PAGE.fullmatch(path) and path not in tree.files]
    for path in stale:
        storage.remove_file(target / path)
        parent = (target / path).parent
        if parent != target and not any(parent.iterdir()):
            parent.rmdir()
    return written, len(stale)


class _SiteBuilder:
    def __init__(self, workspace: Workspace, commit: str, target: Path, previous: _Previous) -> None:
        self._workspace = workspace
        self._repository = workspace.repository
        self._commit = commit
        self._target = target
        self._previous = previous
        self._reader = HistoryReader(self._repository, commit)
        self._entries = self._reader.entries
        listing = self._reader.listing
        by_sweep: dict[str, dict[str, Entry]] = defaultdict(dict)
        for path, entry in listing.items():
            sweep = _sweep_of(path)
            if sweep and is_sweep_name(sweep):
                by_sweep[sweep][path] = entry
        self._inputs = by_sweep
        self._settings_blob = listing[SETTINGS_FILE].id if SETTINGS_FILE in listing else ""
        self._files: dict[str, bytes] = {}
        self.made: dict[str, dict[str, Any]] = {}
        self.rebuilt: list[str] = []

    @property
    def sweeps(self) -> Sequence[str]:
        """The sweeps of the commit, by name."""
        return sorted(self._inputs)

    def add(self, sweep: str) -> None:
        """Add the pages of a sweep: those of the earlier site if nothing that they show has changed."""
        entries = [(one.commit, one.kind, one.text) for one in self._entries[sweep]]
        blobs = {path: entry.id for path, entry in self._inputs[sweep].items()}
        inputs = digest([blobs, entries, self._settings_blob, self._reader.evidence])
        if not self._keep(sweep, inputs):
            shown = self._reader.history(sweep, self._inputs[sweep])
            # A page does not change with the commits of other sweeps.
            last = self._entries[sweep][-1].commit if self._entries[sweep] else self._commit
            pages = sweep_pages(shown, last)
            self.made[sweep] = {
                "inputs": inputs,
                "card": pages.card.as_data(),
                "problem": shown.problem,
                "ranked": shown.ranked,
            }
            self.rebuilt.append(sweep)
            self._files |= {f"{_folder(sweep)}{name}": content for name, content in pages.files.items()}

    def _keep(self, sweep: str, inputs: str) -> bool:
        """Take over the pages of the earlier site, if it has them unchanged; return whether it has."""
        before = self._previous.sweeps.get(sweep, {})
        paths = [path for path in self._previous.files if path.startswith(_folder(sweep))]
        if before.get("inputs") != inputs or not paths:
            return False
        # Which of several programs is ranked depends on the code of the commit, too.
        if (ranked := before.get("ranked")) is not None and ranked != self._reader.ranked_program(sweep):
            return False
        try:
            contents = {path: files.read_file(self._target / path) for path in paths}
        except StorageError:
            return False
        if any(bytes_digest(content) != self._previous.files[path] for path, content in contents.items()):
            return False
        self.made[sweep] = dict(before)
        self._files |= contents
        return True

    def tree(self) -> FileTree:
        """Return all files of the site; its manifest lists all others."""
        cards = [made["card"] for made in self.made.values()]
        made_at = datetime.fromtimestamp(commit_time(self._repository, self._commit), UTC)
        commit = {"id": self._commit, "day": made_at.strftime("%Y-%m-%d")}
        times = monthly_times(card["months"] for card in cards)
        home = site_pages.home_page(
            cards,
            [event for event in self._reader.log if event.sweep in self.made],
            times=times,
            costs=tuple(self._costs([time.month for time in times])),
            commit=commit,
            currency=self._reader.settings.teams.currency,
        )
        fragments = [
            self._files[path] for sweep in self.made if (path := _folder(sweep) + DATA) in self._files
        ]
        contents = {**self._files, HOME: home, COMPARE: site_pages.compare_page(fragments, commit)}
        manifest = {
            "version": 1,
            "generator": __version__,
            "assets": site_pages.assets_digest(),
            "commit": self._commit,
            "sweeps": self.made,
            "files": {path: bytes_digest(contents[path]) for path in sorted(contents)},
        }
        return FileTree({**contents, MANIFEST: json.dump(manifest).encode()})

    def _costs(self, months: Iterable[str]) -> Iterator[MonthlyCost]:
        settings, budgets = self._reader.settings, self._reader.settings.teams.budgets
        if not budgets:
            return
        merged = [batch for listed in self._reader.batches.values() for batch in listed]
        for month in months:
            specs, pools = self._reader.specs, settings.trials.pools
            ledger = costs.month_ledger(specs, self._commit, budgets, pools, month, merged=merged)
            for team, budget in sorted(budgets.items()):
                charges = [one for one in ledger.used if counts_towards(budget, one.sweep)]
                hours, money = sum(one.gpu_hours for one in charges), sum(one.money for one in charges)
                yield MonthlyCost(month, team, hours, money)


def _folder(sweep: str) -> str:
    return f"sweeps/{sweep}/"


def _sweep_of(path: str) -> str:
    parts = path.split("/")
    if parts[0] == RESULTS and len(parts) > 2:  # noqa: PLR2004 - a file in the folder of a sweep
        return parts[1]
    if path.startswith((f"{ACTIVE}/", f"{ARCHIVE}/")):
        return StoredBatch("/".join(parts[:3]), FileTree({})).sweep
    return parts[1].removesuffix(SUFFIX) if path == f"{SPECS}/{parts[-1]}" and path.endswith(SUFFIX) else ""


HOST = "127.0.0.1"
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


@dataclass(frozen=True, slots=True)
class ServedFile:
    """The content of a path, and its media type."""

    content: bytes
    media_type: str = "text/html; charset=utf-8"


class LoopbackServer:
    """Serves what a function returns for each path; None is a page that does not exist."""

    def __init__(self, answer: Callable[[str], ServedFile | None], port: int) -> None:
        """Listen on a port; 0 chooses a free one. Raises UsageError if another program listens there."""
        self._answer = answer
        self._one_at_a_time = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.respond(self)

            def log_message(self, *_arguments: object) -> None:
                """Log nothing."""

        try:
            self._server = ThreadingHTTPServer((HOST, port), Handler)
        except OSError as error:
            raise UsageError(
                f"port {port} of {HOST}: {error.strerror}", hint="another --port, or 0 for a free one"
            ) from error
        self._server.daemon_threads = True

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """The address of its first page."""
        return f"http://{HOST}:{self.port}/"

    def serve(self) -> None:
        """Answer requests until `stop` is called or the process is interrupted."""
        try:
            self._server.serve_forever(poll_interval=0.1)
        finally:
            self._server.server_close()

    def stop(self) -> None:
        """End `serve`, from another thread."""
        self._server.shutdown()

    def respond(self, request: BaseHTTPRequestHandler) -> None:
        """Answer one request."""
        # A page of the internet could reach this server by a name that it lets point to 127.0.0.1.
        if request.headers.get("Host") not in {f"{HOST}:{self.port}", f"localhost:{self.port}"}:
            return self._send(
                request, HTTPStatus.MISDIRECTED_REQUEST, _plain("Open this server by its address.")
            )
        try:
            with self._one_at_a_time:
                found = self._answer(unquote(urlsplit(request.path).path))
        except GeneratorError as error:
            lines = f"{error}\n{error.hint or ''}\n"
            return self._send(request, HTTPStatus.INTERNAL_SERVER_ERROR, _plain(lines))
        if found is None:
            return self._send(request, HTTPStatus.NOT_FOUND, _plain("There is no such page.\n"))
        return self._send(request, HTTPStatus.OK, found)

    def _send(self, request: BaseHTTPRequestHandler, status: HTTPStatus, served: ServedFile) -> None:
        request.send_response(status)
        headers = {"Content-Type": served.media_type, "Content-Length": str(len(served.content)), **HEADERS}
        for name, value in headers.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(served.content)


def _plain(message: str) -> ServedFile:
    return ServedFile(message.encode("utf-8", "replace"), "text/plain; charset=utf-8")


@dataclass
class SiteServer:
    """Answers with the pages of a branch's newest commit, which it builds when the branch has moved."""

    workspace: Workspace
    out: Path
    revision: str
    state: Path
    kubectl: Kubectl | None = None
    built: str = ""
    """The commit that the folder shows."""

    def listen(self, port: int) -> LoopbackServer:
        """Build the site, and return a server of it. Raises as `build_site` does, and UsageError for a used port."""
        self._follow()
        return LoopbackServer(self.answer, port)

    def answer(self, path: str) -> ServedFile | None:
        """Return a page, or what runs now as JSON. Raises GeneratorError."""
        name = path.removeprefix("/") or HOME
        if name == site_pages.RUNNING_PAGE:
            return ServedFile(site_pages.running_page())
        if name == site_pages.RUNNING_DATA:
            commit = self.workspace.commit(self.revision)
            active = running_batches(self.workspace, commit, state=self.state, kubectl=self.kubectl)
            running = site_pages.to_json({"commit": commit, "batches": [batch.as_data() for batch in active]})
            return ServedFile(running, "application/json")
        if name not in {HOME, COMPARE} and not PAGE.fullmatch(name):
            return None
        self._follow()
        if name not in files.list_folder(self.out):
            return None
        content = files.read_file(self.out / name)
        if name.endswith(".html"):
            return ServedFile(site_pages.with_running_link(content))
        return ServedFile(content, "application/json")

    def _follow(self) -> None:
        commit = self.workspace.commit(self.revision)
        if commit != self.built:
            build_site(self.workspace, self.out, commit)
            self.built = commit


@dataclass(frozen=True, slots=True)
class RunningTrial:
    """A trial of an active batch."""

    trial: str
    index: int
    state: TrialState
    points: Points = ()
    output: str = ""
    """The end of what it has printed."""


@dataclass(frozen=True, slots=True)
class RunningBatch:
    """An active batch with the trials that have started, as far as they can be seen from here."""

    batch: StoredBatch
    trials: tuple[RunningTrial, ...]

    def as_data(self) -> dict[str, Any]:
        """Return the JSON data."""
        metric = self.batch.lock.metric
        return {
            "sweep": self.batch.sweep,
            "batch": self.batch.name,
            "metric": metric.name,
            "goal": str(metric.goal),
            "counts": Counter(one.state for one in self.trials),
            "trials": [
                {
                    "trial": one.trial,
                    "state": str(one.state),
                    "steps": [step for step, _ in one.points],
                    "values": [float(f"{value:.6g}") for _, value in one.points],
                    "output": one.output,
                }
                for one in self.trials
                if one.points or one.output or one.state is TrialState.RUNNING
            ],
        }


def running_batches(
    workspace: Workspace, commit: str, *, state: Path, kubectl: Kubectl | None = None
) -> tuple[RunningBatch, ...]:
    """Return the active batches of a commit. Raises ClusterError, StorageError."""
    active = [
        batch
        for batch in batches.readable(batches.in_commit(workspace.repository, commit))
        if batch.is_active
    ]
    if kubectl is None:
        is_running = store.is_engine_running(state)
        return tuple(
            RunningBatch(batch, tuple(_local_trials(batch, state, is_running=is_running))) for batch in active
        )
    observed = live_batches(workspace, kubectl, active, tip=commit, now=time.time())
    namespace = workspace.settings.trials.namespace
    return tuple(
        RunningBatch(batch, tuple(_cluster_trials(batch, observed[batch.name].states, kubectl, namespace)))
        for batch in active
        if batch.name in observed
    )


def _local_trials(batch: StoredBatch, state: Path, *, is_running: bool) -> Iterator[RunningTrial]:
    results = state / "results"
    states: dict[str, TrialState] = {}
    curves: dict[str, Sequence[CurvePoint]] = {}
    if evaluated := evaluate_here(batch, results):
        states |= local_states(evaluated, results, TrialState.PENDING, is_engine_running=is_running)
        compared = batch.lock.metric.of_curve
        curves |= {one.trial: one.record.curve(compared) for one in evaluated.outcomes if one.record}
    started = [
        index for index in range(len(batch.rows)) if (results / batch.name / batch.lock.place(index)).is_dir()
    ]
    followed = frozenset(started[:MOST_FOLLOWED])
    metric = batch.lock.metric
    for index, row in enumerate(batch.rows):
        trial_state = states.get(row.trial, TrialState.PENDING)
        points: Points = tuple((at, value) for at, value in curves.get(row.trial, ()) if value is not None)
        output = b""
        if index in followed and trial_state in {TrialState.RUNNING, TrialState.INTERRUPTED}:
            uid, output = volume.newest_output(results, batch.name, batch.lock.place(index))
            is_printed = metric.source.is_printed
            points = objective_points(metric, output if is_printed else reported_lines(state, uid))
        yield RunningTrial(row.trial, index, trial_state, _thinned(points), _end(output))


def _cluster_trials(
    batch: StoredBatch, states: Mapping[str, TrialState], kubectl: Kubectl, namespace: str
) -> Iterator[RunningTrial]:
    now, metric = time.time(), batch.lock.metric
    running = {
        pod.index: pod
        for pod in pods.batch_pods(kubectl, namespace, batch.lock, pods.NOT_SUCCEEDED)
        if pod.phase(now) is PodPhase.RUNNING and not pod.is_shared  # in its output all its trials are mixed
    }
    followed = frozenset(sorted(running)[:MOST_FOLLOWED])
    for index, row in enumerate(batch.rows):
        output = b""
        if index in followed:
            try:
                output = pods.output(kubectl, namespace, running[index], lines=LOG_LINES, size=LOG_BYTES)
            except ClusterError:  # the pod has just ended, or its log cannot be read
                output = b""
        points = objective_points(metric, output) if metric.source.is_printed else ()
        trial_state = states.get(row.trial, TrialState.PENDING)
        yield RunningTrial(row.trial, index, trial_state, _thinned(points), _end(output))


def _thinned(points: Points) -> Points:
    """Return at most so many points in the order of steps, the last among them."""
    ordered = tuple(sorted(dict(points).items()))
    stride = -(-len(ordered) // MOST_POINTS) or 1
    return (*ordered[:-1:stride], *ordered[-1:])


def _end(output: bytes) -> str:
    return output[-LONGEST_OUTPUT:].decode(errors="replace")
