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
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from rich.text import Text

from sweepledger import __version__, storage
from sweepledger.cli.options import ContextOption, StateOption, argument, flag, option
from sweepledger.cli.response import Response
from sweepledger.engine.cluster import pods
from sweepledger.engine.cluster.kubectl import ClusterError, Kubectl
from sweepledger.engine.cluster.pods import PodPhase
from sweepledger.engine.local import store
from sweepledger.engine.local.pod_folders import reported_lines
from sweepledger.errors import GeneratorError, StorageError, UsageError
from sweepledger.formats import json
from sweepledger.operations.collection.attempts import evaluate_here
from sweepledger.operations.reports.history import HistoryReader
from sweepledger.operations.reports.status import TrialState, live_batches, local_states
from sweepledger.operations.repository import costs
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.plan.budgets import counts_towards
from sweepledger.reader.metric_lines import objective_points
from sweepledger.repo import batches, files, results_volume
from sweepledger.repo.batches import ACTIVE, ARCHIVE, StoredBatch
from sweepledger.repo.git import Entry, Repository, commit_time
from sweepledger.repo.state import create_state, state_folder
from sweepledger.site import pages as site_pages
from sweepledger.site.fragment import sweep_pages
from sweepledger.site.history import MonthlyCost, monthly_times
from sweepledger.structs.file_tree import FileTree
from sweepledger.structs.names import RESULTS, SETTINGS_FILE, SPECS, SUFFIX, is_sweep_name
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
    workspace: Workspace,
    revision: str = argument("[COMMIT]", "Commit, branch or tag that is shown.", default="HEAD"),
    out: Path = option(
        "--out DIR", "Folder of the site: new, empty, or of an earlier site.", default=Path("site")
    ),
    serve: bool = flag("--serve", "Show it in a browser of this machine: follow the branch, and what runs."),
    port: int = option(
        "--port N", "Port of --serve on 127.0.0.1; 0: a free one.", default=8571, min=0, max=65535
    ),
    state: StateOption = None,
    cluster: bool = flag("--cluster", "With --serve, read running trials from the cluster, with kubectl."),
    context: ContextOption = None,
) -> Response:
    if serve:
        folder = state_folder(workspace.repository, state)
        kubectl = Kubectl(context) if cluster or context is not None else None
        pages = SiteServer(workspace, out, revision, state=folder, kubectl=kubectl)
        pages.follow()
        with suppress(KeyboardInterrupt), LoopbackServer(pages.answer, port) as server:
            print(f"{server.url} shows {revision} until Ctrl-C", file=sys.stderr, flush=True)
            server.serve_forever(poll_interval=0.1)
        return Response({"url": server.url})
    built = build_site(workspace, out, revision)
    counts = (
        f"{built.sweeps} sweep(s), {len(built.rebuilt)} computed, {built.files['written']} file(s) written"
    )
    missing = (Text(f"not shown: {line}", "yellow") for line in built.unreadable)
    return Response(built, (*missing, f"{built.out / HOME}: {counts}"))


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


_Previous = tuple[Mapping[str, Mapping[str, Any]], Mapping[str, str]]
"""The site that is in the folder: inputs, card and problem by sweep; the digest of each file by path."""
NO_SITE: _Previous = {}, {}


def build_site(workspace: Workspace, out: Path, revision: str = "HEAD") -> BuiltSite:
    """Build the site of a commit in a folder. Raises UsageError, RepositoryError, StorageError."""
    commit = workspace.commit(revision)
    target = storage.output_path(out, is_folder=True)
    name = hashlib.sha256(str(target).encode()).hexdigest()
    state = create_state(workspace.repository) / "site" / name
    reader, previous = HistoryReader(workspace.repository, commit), _read_previous(target, state)
    by_sweep: dict[str, dict[str, Entry]] = defaultdict(dict)
    for path, entry in reader.listing.items():
        by_sweep[_sweep_of(path)][path] = entry
    made: dict[str, Mapping[str, Any]] = {}
    contents: dict[str, bytes] = {}
    rebuilt = []
    for sweep in sorted(filter(is_sweep_name, by_sweep)):
        events, listing = reader.entries[sweep], by_sweep[sweep]
        settings = reader.listing.get(SETTINGS_FILE)
        inputs = digest(
            [
                {path: entry.id for path, entry in listing.items()},
                [(event.commit, event.kind, event.text) for event in events],
                settings.id if settings else "",
                reader.evidence,
            ]
        )
        kept = _kept_pages(reader, previous, target, sweep, inputs)
        if kept is None:
            shown = reader.history(sweep, listing)
            # A page does not change with the commits of other sweeps.
            pages = sweep_pages(shown, events[-1].commit if events else commit)
            card, problem = pages.card, shown.problem
            made[sweep] = {"inputs": inputs, "card": card, "problem": problem, "ranked": shown.ranked}
            rebuilt.append(sweep)
            kept = {f"sweeps/{sweep}/{name}": content for name, content in pages.files.items()}
        else:
            made[sweep] = previous[0][sweep]
        contents |= kept
    tree = _tree(workspace.repository, reader, commit, made, contents)
    written, removed = _write(target, tree)
    storage.write_file(state, bytes_digest(tree[MANIFEST]).encode())
    problems = tuple(f"{sweep}: {each['problem']}" for sweep, each in made.items() if each["problem"])
    counts = {"total": len(tree.files), "written": written, "removed": removed}
    return BuiltSite(out, commit, len(made), tuple(rebuilt), problems, counts)


def _read_previous(target: Path, state: Path) -> _Previous:
    """Return this clone's earlier site in a folder, if its file in the state folder has the digest of the manifest.

    It is empty for any other site. Raises StorageError for a folder with other files.
    """
    present = files.list_folder(target)
    if not present:
        return NO_SITE
    if MANIFEST not in present:
        raise StorageError(
            f"{target} has files, but no {MANIFEST} of an earlier site",
            hint="choose a new or an empty folder: files of the site replace others",
        )
    content = files.read_file(target / MANIFEST)
    if not state.is_file() or files.read_file(state) != bytes_digest(content).encode():
        return NO_SITE
    data = json.load(content)
    is_current = data["generator"] == __version__ and data["assets"] == site_pages.assets_digest()
    return (data["sweeps"], data["files"]) if is_current else NO_SITE


def _write(target: Path, tree: FileTree) -> tuple[int, int]:
    """Write the changed files, the manifest last, and remove old pages of an earlier site; return both numbers."""
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


def _kept_pages(
    reader: HistoryReader, previous: _Previous, target: Path, sweep: str, inputs: str
) -> dict[str, bytes] | None:
    """Return the pages of a sweep from the earlier site if they are unchanged."""
    before = previous[0].get(sweep, {})
    digests = {path: each for path, each in previous[1].items() if path.startswith(f"sweeps/{sweep}/")}
    ranked = before.get("ranked")
    if (
        before.get("inputs") != inputs
        or not digests
        # Which of several programs is ranked depends on the code of the commit, too.
        or (ranked is not None and ranked != reader.ranked_program(sweep))
    ):
        return None
    try:
        contents = {path: files.read_file(target / path) for path in digests}
    except StorageError:
        return None
    is_same = all(bytes_digest(content) == digests[path] for path, content in contents.items())
    return contents if is_same else None


def _tree(
    repository: Repository,
    reader: HistoryReader,
    commit: str,
    made: Mapping[str, Mapping[str, Any]],
    pages: Mapping[str, bytes],
) -> FileTree:
    """Return all files of the site; the manifest lists all other files."""
    cards = [each["card"] for each in made.values()]
    day = datetime.fromtimestamp(commit_time(repository, commit), UTC).strftime("%Y-%m-%d")
    shown = {"id": commit, "day": day}
    times = monthly_times(card["months"] for card in cards)
    home = site_pages.home_page(
        cards,
        [event for event in reader.log if event.sweep in made],
        times=times,
        costs=tuple(_costs(reader, commit, [time.month for time in times])),
        commit=shown,
        currency=reader.settings.teams.currency,
    )
    fragments = [pages[path] for sweep in made if (path := f"sweeps/{sweep}/{DATA}") in pages]
    contents = {**pages, HOME: home, COMPARE: site_pages.compare_page(fragments, shown)}
    manifest = {
        "version": 1,
        "generator": __version__,
        "assets": site_pages.assets_digest(),
        "commit": commit,
        "sweeps": made,
        "files": {path: bytes_digest(contents[path]) for path in sorted(contents)},
    }
    return FileTree({**contents, MANIFEST: json.dump(manifest).encode()})


def _costs(reader: HistoryReader, commit: str, months: Iterable[str]) -> Iterator[MonthlyCost]:
    budgets = reader.settings.teams.budgets
    if not budgets:
        return
    merged = [batch for listed in reader.batches.values() for batch in listed]
    for month in months:
        ledger = costs.month_ledger(reader.specs, commit, month, merged=merged)
        for team, budget in sorted(budgets.items()):
            charges = [one for one in ledger.used if counts_towards(budget, one.sweep)]
            hours, money = sum(one.gpu_hours for one in charges), sum(one.money for one in charges)
            yield MonthlyCost(month, team, hours, money)


def _sweep_of(path: str) -> str:
    parts = path.split("/")
    if parts[0] == RESULTS and len(parts) > 2:  # noqa: PLR2004 - a file in the folder of a sweep
        return parts[1]
    if path.startswith((f"{ACTIVE}/", f"{ARCHIVE}/")):
        return StoredBatch("/".join(parts[:3]), FileTree({})).sweep
    return parts[1].removesuffix(SUFFIX) if path == f"{SPECS}/{parts[-1]}" and path.endswith(SUFFIX) else ""


HOST = "127.0.0.1"
HTML = "text/html; charset=utf-8"
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class LoopbackServer(ThreadingHTTPServer):
    """Serves the pages that a function returns by path; None for a page that does not exist."""

    daemon_threads = True

    def __init__(self, answer: Callable[[str], bytes | None], port: int) -> None:
        """Listen on a port; 0 chooses a free one. Raises UsageError if another program listens there."""
        self._answer = answer
        self._one_at_a_time = threading.Lock()
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            raise UsageError(
                f"port {port} of {HOST}: {error.strerror}", hint="another --port, or 0 for a free one"
            ) from error

    @property
    def url(self) -> str:
        """The address of its first page."""
        return f"http://{HOST}:{self.server_port}/"

    def response(self, host: str | None, path: str) -> tuple[HTTPStatus, bytes, str]:
        """Return the status, the content and its media type."""
        plain = "text/plain; charset=utf-8"
        # A page of the internet could reach this server by a name that it lets point to 127.0.0.1.
        if host not in {f"{HOST}:{self.server_port}", f"localhost:{self.server_port}"}:
            return HTTPStatus.MISDIRECTED_REQUEST, b"Open this server by its address.", plain
        try:
            with self._one_at_a_time:
                content = self._answer(path)
        except GeneratorError as error:
            lines = f"{error}\n{error.hint or ''}\n"
            return HTTPStatus.INTERNAL_SERVER_ERROR, lines.encode("utf-8", "replace"), plain
        if content is None:
            return HTTPStatus.NOT_FOUND, b"There is no such page.\n", plain
        return HTTPStatus.OK, content, "application/json" if path.endswith(".json") else HTML


class _Handler(BaseHTTPRequestHandler):
    server: LoopbackServer

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        status, content, media_type = self.server.response(self.headers.get("Host"), path)
        self.send_response(status)
        headers = {"Content-Type": media_type, "Content-Length": str(len(content)), **HEADERS}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_arguments: object) -> None:
        """Log nothing."""


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

    def answer(self, path: str) -> bytes | None:
        """Return a page, or the running trials as JSON. Raises GeneratorError."""
        name = path.removeprefix("/") or HOME
        if name == site_pages.RUNNING_PAGE:
            return site_pages.running_page()
        if name == site_pages.RUNNING_DATA:
            commit = self.workspace.commit(self.revision)
            active = running_batches(self.workspace, commit, state=self.state, kubectl=self.kubectl)
            return site_pages.to_json({"commit": commit, "batches": active})
        if name not in {HOME, COMPARE} and not PAGE.fullmatch(name):
            return None
        self.follow()
        if name not in files.list_folder(self.out):
            return None
        content = files.read_file(self.out / name)
        if not name.endswith(".html"):
            return content
        return content.replace(b"</nav>", site_pages.RUNNING_LINK + b"</nav>", 1)

    def follow(self) -> None:
        """Build the site of the newest commit. Raises as `build_site` does."""
        commit = self.workspace.commit(self.revision)
        if commit != self.built:
            build_site(self.workspace, self.out, commit)
            self.built = commit


Seen = Mapping[int, tuple[Points, bytes]]
"""The points and the output of trials that can be seen from here, by row."""


def _as_data(batch: StoredBatch, states: Mapping[str, TrialState], seen: Seen) -> dict[str, Any]:
    """Return an active batch with its started trials and the end of each trial's output."""
    metric = batch.lock.metric
    trials = [
        (row.trial, states.get(row.trial, TrialState.PENDING), *seen.get(index, ((), b"")))
        for index, row in enumerate(batch.rows)
    ]
    return {
        "sweep": batch.sweep,
        "batch": batch.name,
        "metric": metric.name,
        "goal": str(metric.goal),
        "counts": Counter(state for _, state, _, _ in trials),
        "trials": [
            {
                "trial": trial,
                "state": str(state),
                "steps": [step for step, _ in points],
                "values": [float(f"{value:.6g}") for _, value in points],
                "output": output[-LONGEST_OUTPUT:].decode(errors="replace"),
            }
            for trial, state, all_points, output in trials
            for points in [_thinned(all_points)]
            if points or output or state is TrialState.RUNNING
        ],
    }


def running_batches(
    workspace: Workspace, commit: str, *, state: Path, kubectl: Kubectl | None = None
) -> tuple[dict[str, Any], ...]:
    """Return the active batches of a commit. Raises ClusterError, StorageError."""
    active = [
        batch
        for batch in batches.readable(batches.in_commit(workspace.repository, commit))
        if batch.is_active
    ]
    if kubectl is None:
        is_running = store.is_engine_running(state)
        return tuple(_as_data(batch, *_local_trials(batch, state, is_running=is_running)) for batch in active)
    observed = live_batches(workspace, kubectl, active, tip=commit, now=time.time())
    namespace = workspace.settings.trials.namespace
    return tuple(
        _as_data(batch, observed[batch.name].states, _cluster_trials(batch, kubectl, namespace))
        for batch in active
        if batch.name in observed
    )


def _local_trials(
    batch: StoredBatch, state: Path, *, is_running: bool
) -> tuple[Mapping[str, TrialState], Seen]:
    results, metric = state / "results", batch.lock.metric
    evaluated = evaluate_here(batch, results)
    if evaluated is None:
        return {}, {}
    states = dict(local_states(evaluated, results, TrialState.PENDING, is_engine_running=is_running))
    seen: dict[int, tuple[Points, bytes]] = {}
    for one in evaluated.outcomes:
        if one.record:
            curve = one.record.curve(metric.of_curve)
            seen[one.index] = tuple((at, value) for at, value in curve if value is not None), b""
    places = ((index, batch.lock.place(index)) for index in range(len(batch.rows)))
    started = ((index, place) for index, place in places if (results / batch.name / place).is_dir())
    for index, place in islice(started, MOST_FOLLOWED):
        if states[batch.rows[index].trial] in {TrialState.RUNNING, TrialState.INTERRUPTED}:
            uid, output = results_volume.newest_output(results, batch.name, place)
            text = output if metric.source.is_printed else reported_lines(state, uid)
            seen[index] = objective_points(metric, text), output
    return states, seen


def _cluster_trials(batch: StoredBatch, kubectl: Kubectl, namespace: str) -> Seen:
    now, metric, seen = time.time(), batch.lock.metric, dict[int, tuple[Points, bytes]]()
    running = {
        pod.index: pod
        for pod in pods.batch_pods(kubectl, namespace, batch.lock, pods.NOT_SUCCEEDED)
        if pod.phase(now) is PodPhase.RUNNING and not pod.is_shared  # in its output all its trials are mixed
    }
    for index in sorted(running)[:MOST_FOLLOWED]:
        with suppress(ClusterError):  # the pod has just ended, or its log cannot be read
            output = pods.output(kubectl, namespace, running[index], lines=LOG_LINES, size=LOG_BYTES)
            seen[index] = objective_points(metric, output) if metric.source.is_printed else (), output
    return seen


def _thinned(points: Points) -> Points:
    """Return at most `MOST_POINTS` points in the order of steps, including the last."""
    ordered = tuple(sorted(dict(points).items()))
    stride = -(-len(ordered) // MOST_POINTS) or 1
    return (*ordered[:-1:stride], *ordered[-1:])
