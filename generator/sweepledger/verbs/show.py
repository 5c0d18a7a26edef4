"""Show one trial: its values, result, provenance and commits.

With --reproduce --run, the trial runs as a local process, like under `sweep cluster local`, and nothing is
recorded. Exits with 1 if its status or any metric differs from the record, even in the last bit.

With --fetch, artifacts are read from the state folder of `sweep cluster local`, or a volume mounted there; with
--by-pod, from the cluster's volume through a short-lived pod.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import RenderableType
from rich.text import Text

from sweepledger.cli import completion, options
from sweepledger.cli.options import argument, flag, option
from sweepledger.cli.response import EXIT_PROBLEMS, SHORT_COMMIT, Response
from sweepledger.cli.text import style
from sweepledger.cli.text.values import configuration_text, number_text
from sweepledger.engine.cluster.kubectl import Kubectl
from sweepledger.errors import UsageError
from sweepledger.formats import records_jsonl
from sweepledger.operations.collection.record_store import ReaderPodOptions
from sweepledger.operations.reports.outputs import fetch_artifacts, log_link
from sweepledger.operations.reports.reproduction import Recipe, Reproduction, recipe, run_again
from sweepledger.operations.repository import at_commit, catalog
from sweepledger.operations.repository.batch_records import read_records_files
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.operations.rounds.evidence import foreign_labels
from sweepledger.repo.batches import ACTIVE
from sweepledger.repo.git import Commit, commits
from sweepledger.repo.state import state_folder
from sweepledger.structs.batch import BatchLock
from sweepledger.structs.names import LAPTOP_WARNING, LOCK_FILE, records_path, results_folder
from sweepledger.structs.program import Program
from sweepledger.structs.record import NO_CURVES, Record, SummaryRow
from sweepledger.structs.values import as_data, bytes_digest


def show(
    workspace: Workspace,
    trial: str = argument(
        "TRIAL", "Trial id or the beginning of one, or SWEEP/TRIAL.", autocompletion=completion.trials
    ),
    reproduce: bool = flag(
        "--reproduce", "Show the code, image, data, values and seed, and the commands that run it again."
    ),
    run: bool = flag(
        "--run", "With --reproduce: run it here with its locked code, and compare every metric."
    ),
    fetch: Path | None = option(
        "--fetch DIR", "Copy its artifacts to this folder, and verify the checksums of the record."
    ),
    state: options.StateOption = None,
    by_pod: options.ByPodOption = False,
    context: options.ContextOption = None,
    image: options.ImageOption = None,
    patience: options.PatienceOption = 300,
) -> Response:
    if run and not reproduce:
        raise UsageError("--run needs --reproduce")
    if by_pod and fetch is None:
        raise UsageError("--by-pod needs --fetch DIR")
    if reproduce and fetch is not None:
        raise UsageError("--fetch cannot be combined with --reproduce")
    if run:
        reproduction = run_again(workspace, trial)
        code = 0 if reproduction.is_equal else EXIT_PROBLEMS
        return Response(reproduction, tuple(_reproduction_text(reproduction)), exit_code=code)
    if reproduce:
        shown = recipe(workspace, trial)
        return Response(shown, _recipe_text(shown))
    if fetch is None:
        details = trial_details(workspace, trial)
        lines = (
            (fact.label, fact.value if fact.text is None else fact.text)
            for fact in trial_facts(details)
            if fact.label and fact.value not in (None, "")
        )
        return Response(details, (style.facts_table(lines),))
    claim = workspace.settings.results.artifacts
    pod = ReaderPodOptions(workspace, Kubectl(context), image, patience, claim) if by_pod else None
    folder = state_folder(workspace.repository, state)
    artifacts = fetch_artifacts(workspace, trial, into=fetch.absolute(), state=folder, pod=pod)
    rows = ((file.path, str(file.bytes), file.sha256[:12]) for file in artifacts.files)
    summary = f"copied {len(artifacts.files)} files of {artifacts.trial} to {artifacts.folder}"
    if artifacts.omitted:
        summary += f"; {artifacts.omitted} further files are not in its record"
    return Response(artifacts, (style.filled_table(("file", "bytes", "sha256"), rows), summary))


@dataclass(frozen=True)
class TrialDetails:
    """A trial with its result and its commits, from git."""

    listed: catalog.ListedTrial
    result: SummaryRow | None
    """None while it is not recorded."""
    commits: tuple[tuple[str, Commit], ...]
    """What each commit did: requested, generated, recorded."""
    last: Record | None
    """Its last recorded attempt."""
    logs: str | None
    """Where a log system shows its output."""
    is_laptop: bool
    """Whether its batch is marked as made on a laptop."""
    foreign: tuple[str, ...]
    """Foreign evidence that the round of its batch had, in words."""

    def as_data(self) -> dict[str, Any]:
        """Return the JSON data."""
        data: dict[str, Any] = {}
        for fact in trial_facts(self):
            *outer, name = fact.key.split(".")
            if name:
                reduce(lambda inner, key: inner.setdefault(key, {}), outer, data)[name] = fact.value
        return data


class Fact(NamedTuple):
    """What is known of a trial: a key of its JSON data, a line of its text, or both."""

    key: str
    """A dot separates it from the key of the mapping that it is in. Empty: it is in the text alone."""
    value: Any
    """Without one, it has no line."""
    label: str = ""
    """Empty: it is in the data alone."""
    text: object = None
    """What the line says. Default: the value."""


def trial_facts(details: TrialDetails) -> Iterator[Fact]:
    """Yield the known facts about a trial, in the order of the text."""
    listed, result, last = details.listed, details.result, details.last
    lock, values = listed.batch.lock, listed.batch.rows[listed.index].values
    status, reason = (result.status, result.reason) if result else ("missing", None)
    yield Fact("trial", listed.id, "trial", f"{listed.id}, row {listed.index} of {lock.name}")
    yield Fact("sweep", lock.sweep)
    yield Fact("batch", lock.name)
    yield Fact("index", listed.index)
    yield Fact("configuration", dict(values), "values", configuration_text(values))
    yield Fact("round", lock.round, "round", f"{lock.round}, by {lock.method} ({lock.engine})")
    yield Fact("parent", lock.parents.get(listed.index), "parent")
    yield Fact("status", status, "status", style.status_with_reason(status, reason))
    yield Fact("reason", reason)
    # Why its last attempt did not succeed, as launcher or engine report it.
    yield Fact("message", last.error if last and not last.status.is_success else None, "error")
    yield Fact("attempts", result.attempts if result else 0, "attempts" if result else "")
    metrics = dict(result.metrics) if result else {}
    yield Fact("metrics", metrics)
    yield from (Fact("", number, name, number_text(number)) for name, number in metrics.items())
    curves = last.curves if last else NO_CURVES
    yield Fact("curves", {name: [list(point) for point in points] for name, points in curves.items()})
    yield Fact("provenance.spec", as_data(lock.spec), "spec", f"{lock.spec.path} {lock.spec.digest}")
    yield Fact("provenance.program", as_data(lock.program) | {"digest": lock.program.digest})
    yield from (Fact("", text, label) for label, text in _program_facts(lock.program))
    environment = last.environment if last else None
    yield Fact("provenance.environment", as_data(environment))
    if environment and lock.program.environment is None:
        yield Fact("", f"{environment.kind} {environment.digest}", "environment")
    yield Fact("provenance.generator", lock.generator)
    yield Fact("logs", details.logs, "output")
    yield Fact("provenance.foreign", list(details.foreign))
    yield from (Fact("", text, "started from") for text in details.foreign)
    made_on = "laptop" if details.is_laptop else None
    yield Fact("provenance.made_on", made_on, "made", LAPTOP_WARNING.removeprefix("made "))
    for name in ("seed", "ran", "started", "finished"):
        yield Fact(f"provenance.{name}", getattr(result, name, None))
    if result and result.ran:
        seconds = number_text(result.seconds)
        yield Fact("", f"{result.ran}, seed {result.seed}, {seconds} s from {result.started}", "ran")
    named = ("author", "date", "subject")
    yield Fact(
        "commits",
        [
            {"action": did, "commit": commit.id, **{name: getattr(commit, name) for name in named}}
            for did, commit in details.commits
        ],
    )
    for action, commit in details.commits:
        text = f"{commit.id[:SHORT_COMMIT]} {commit.date[:10]} {commit.author}: {commit.subject}"
        yield Fact("", text, action)


def trial_details(workspace: Workspace, trial: str) -> TrialDetails:
    """Return a trial by its id or the beginning of it. Raises UsageError, RepositoryError."""
    listed = catalog.find_trial(workspace.root, trial)
    lock, generated_by = listed.batch.lock, tuple(_batch_commits(workspace, listed.batch.lock))
    contents = read_records_files(workspace.root, listed.batch)
    records = [record for content in contents for record in records_jsonl.records(content)]
    attempts = [record for record in records if isinstance(record, Record) and record.trial == listed.id]
    last = max(attempts, key=lambda record: record.attempt, default=None)
    # Foreign evidence is shown as it was in the commit that generated the batch.
    commit = dict(generated_by).get("generated") if lock.round is not None else None
    sweep = at_commit.read_sweep(workspace.repository, commit.id, lock.spec.path) if commit else None
    return TrialDetails(
        listed,
        catalog.summary_row(workspace.root, listed),
        generated_by,
        last,
        log_link(workspace, listed),
        listed.batch.name in catalog.laptop_batches_here(workspace.root, listed.batch.sweep),
        foreign_labels(workspace.repository, commit.id, sweep) if commit and sweep else (),
    )


def _batch_commits(workspace: Workspace, batch_lock: BatchLock) -> Iterator[tuple[str, Commit]]:
    """Return those commits that requested, generated and recorded a batch, if they exist."""
    spec = batch_lock.spec.path
    lock = f"{ACTIVE}/{batch_lock.name}/{LOCK_FILE}"
    records = f"{results_folder(batch_lock.sweep)}/{records_path(batch_lock.name)}"
    history = commits(workspace.repository, spec, lock, records)
    generated = next((place for place, commit in enumerate(history) if lock in commit.files), len(history))
    # The spec may have changed after the batch, and may even have been restored.
    before = [commit for commit in history[: generated + 1] if spec in commit.files]
    after = [commit for commit in history[generated + 1 :] if spec in commit.files]
    contents = workspace.repository.blobs(commit.files[spec] for commit in before + after)
    digests = {identity: bytes_digest(content) for identity, content in contents.items()}
    same, same_after = (
        [commit for commit in part if digests[commit.files[spec]] == batch_lock.spec.digest]
        for part in (before, after)
    )
    recorded = [commit for commit in history if records in commit.files]
    for action, listed in (
        ("requested", (same or same_after or before)[-1:]),
        ("generated", history[generated : generated + 1]),
        ("recorded", recorded[:1]),
    ):
        yield from ((action, commit) for commit in listed)


def _program_facts(program: Program) -> Iterator[tuple[str, str]]:
    yield "code", f"{program.code.path} {program.code.tree}"
    if program.workdir is not None:
        yield "workdir", program.workdir
    if program.config is not None:
        yield "config", program.config.base
    if program.data:
        yield "data", " ".join([program.data.name, program.data.digest, *program.data.place_texts])
    if program.environment:
        yield "environment", f"{program.environment.path} {program.environment.digest}"


MOST_OUTPUT = 2000
"""Characters at the end of the output of a reproduction that differs."""
SHORT_DIGEST = len("sha256:") + 12


def _recipe_text(recipe: Recipe) -> tuple[RenderableType, ...]:
    facts = (
        ("trial", f"{recipe.trial}, row {recipe.index} of {recipe.lock.name}"),
        ("values", configuration_text(recipe.assignment)),
        ("seed", recipe.seed),
        *_program_facts(recipe.lock.program),
        *([] if recipe.lock.program.data else [("data", "none")]),
        ("commit", recipe.commit or "no commit of this clone contains this code: fetch the branch that does"),
        ("image", recipe.lock.program.image),
        ("ran", recipe.ran or "not recorded"),
    )
    command = f"  sweep show {recipe.lock.sweep}/{recipe.trial} --reproduce --run"
    lines = (f"  {line}" for line in recipe.lines)
    head = (style.facts_table(facts), Text("with the launcher:", "bold"), command)
    return (*head, Text("manually:", "bold"), *lines)


def _reproduction_text(reproduction: Reproduction) -> Iterator[RenderableType]:
    status = str(reproduction.record.status) if reproduction.record else "missing"
    table = style.new_table("metric", "recorded", "here", "")
    recorded = reproduction.recorded
    table.add_row("status", recorded, status, _equality_text(equal=status == recorded))
    if reproduction.recorded_environment is not None:
        pair = (reproduction.recorded_environment, reproduction.environment)
        texts = (f"{one.kind} {one.digest[:SHORT_DIGEST]}" if one else "none" for one in pair)
        table.add_row("environment", *texts, _equality_text(equal=len({*pair}) == 1))
    for metric in reproduction.metrics:
        cells = (metric.name, _exact_number(metric.recorded), _exact_number(metric.rerun))
        result = Text("timing", "dim") if metric.timing else _equality_text(equal=metric.is_equal)
        table.add_row(*cells, result)
    yield table
    for metric in reproduction.metrics:
        if metric.differs:
            text = (
                f"{metric.name} must be {_exact_number(metric.recorded)}, got {_exact_number(metric.rerun)}"
            )
            if metric.recorded is not None and metric.rerun is not None:
                text += f" ({metric.rerun - metric.recorded:+.3g})"
            yield style.untrusted_text(f"{metric.file}: {text}", "red")
    if reproduction.recipe.ran not in {None, "process"}:
        image = reproduction.recipe.ran
        yield Text(f"the recorded trial ran in {image}; this one ran as a process without an image", "yellow")
    if reproduction.has_other_environment:
        before, here = reproduction.recorded_environment, reproduction.environment
        assert before is not None
        assert here is not None
        packages = "; ".join(reproduction.environment_differences)
        text = f"the recorded trial had the packages {before.kind} {before.digest}; here are {here.kind} {here.digest}"
        yield style.untrusted_text(f"packages here: {packages}" if packages else text, "yellow")
    if status != recorded:
        for output in filter(None, reproduction.output.values()):
            yield output[-MOST_OUTPUT:].rstrip()
    is_equal = reproduction.is_equal
    yield Text("equal to the last bit, except for timings", "green") if is_equal else Text("differs", "red")


def _equality_text(*, equal: bool) -> Text:
    return Text("equal", "green") if equal else Text("differs", "red")


def _exact_number(value: float | None) -> str:
    return "none" if value is None else repr(value)
