"""What happens after the merge: local, collect, status."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from generator.cli import answer, completing, origins, rounds
from generator.cli.answer import EXIT_PROBLEMS, Answer, Format, FormatOption
from generator.cli.panels import READ, RUN
from generator.errors import RepositoryError, UnreadableError

if TYPE_CHECKING:
    from rich.text import Text

    from generator.commands.collect import Collected, Target
    from generator.commands.local import Event
    from generator.commands.observing import Found
    from generator.commands.status import Tally
    from generator.commands.workspace import Workspace

StateOption = Annotated[
    Path | None,
    typer.Option("--state", metavar="DIR", help="State folder of `sweep local`; default .sweepledger."),
]
RemoteOption = Annotated[
    str | None, typer.Option("--remote", metavar="NAME", help="The remote to follow; default: the settings'.")
]
ContextOption = Annotated[
    str | None,
    typer.Option("--context", metavar="NAME", help="Of the kubeconfig; default: its current one."),
]
BranchOption = Annotated[
    str | None, typer.Option("--branch", metavar="NAME", help="The branch to follow; default: the settings'.")
]


def register(app: typer.Typer) -> None:
    """Add the commands that run and record."""
    app.command("local", rich_help_panel=RUN)(local)
    app.command("collect", rich_help_panel=RUN)(collect)
    app.command("status", rich_help_panel=READ)(status)


def local(
    once: Annotated[bool, typer.Option("--once", help="Stop when nothing is active any more.")] = False,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, metavar="N", help="Most trials at once; default: what fits."),
    ] = None,
    without_gpu: Annotated[
        bool,
        typer.Option("--without-gpu", help="Run trials that ask for GPUs without; their records say so."),
    ] = False,
    remote: RemoteOption = None,
    branch: BranchOption = None,
    state: StateOption = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Play cluster and controller here: follow the branch, run the rendered Jobs, record the results.

    Trials run as processes of yours: this is no sandbox.
    """

    def work() -> Answer:
        from generator.commands import ledger
        from generator.commands import local as command
        from generator.commands.workspace import Workspace

        workspace = Workspace.find(answer.here())
        options = command.Options(
            url=workspace.remote_url(remote),
            branch=branch or workspace.settings.branch,
            followed=f"{remote or workspace.settings.remote}/{branch or workspace.settings.branch}",
            workspace=workspace,
            state=ledger.state_folder(workspace, state),
            once=once,
            jobs=jobs,
            without_gpu=without_gpu,
        )
        return _played(command.local(options), form)

    answer.answer("local", form, work)


def _played(happening: "Iterable[Event]", form: Format) -> Answer:
    """Show what happens to the end; give what was collected. What was said of a batch is not said again."""
    from generator.cli.progress import Watch
    from generator.errors import SpecError

    with Watch(answer.console(stderr=form is Format.JSON)).live() as watch:
        try:
            return Answer({"collected": [collected(event.found) for event in watch.follow(happening)]})
        except SpecError as error:
            if form is Format.JSON or not watch.said.issuperset(error.problems):
                raise
            return Answer({}, ("not everything could run here: see above",), exit_code=error.exit_code)


def collect(
    push: Annotated[
        bool, typer.Option("--push", help="Commit on the remote's branch instead of here.")
    ] = False,
    remote: RemoteOption = None,
    branch: BranchOption = None,
    state: StateOption = None,
    results: Annotated[
        Path | None,
        typer.Option("--results", metavar="DIR", help="The results volume; default: in the state folder."),
    ] = None,
    cluster: Annotated[
        bool, typer.Option("--cluster", help="Ask the cluster's API server what has ended, by kubectl.")
    ] = False,
    form: FormatOption = Format.TEXT,
) -> None:
    """Record what ended: one commit a sweep with records, summary, report and figure; archive the batch.

    With --push and `results.mode: branch` each sweep gets one branch results/SWEEP/COMMIT to be merged.
    With --cluster pods tell of attempts that left no record, and batches that nothing will end are named.
    """

    def work() -> Answer:
        from generator.cli import in_cluster
        from generator.commands import ledger
        from generator.commands.workspace import Workspace

        workspace = Workspace.find(answer.here())
        folder = ledger.state_folder(workspace, state)
        target = target_of(workspace, remote, branch, push=push)
        volume = _volume(results) if results else folder / "results"
        if cluster:
            return in_cluster.collected(workspace, _in_cluster(workspace, target, volume))
        return _here(target, volume, folder)

    answer.answer("collect", form, work)


def target_of(
    workspace: "Workspace", remote: str | None = None, branch: str | None = None, *, push: bool
) -> "Target":
    """Say where results commits go, by what was asked for and what the settings say."""
    from generator.commands.collect import Target
    from generator.structs.settings import ResultsMode

    if not push:
        return Target(workspace.repository)
    settings = workspace.settings
    name = remote or settings.remote
    workspace.remote_url(name)
    is_reviewed = settings.results.mode is ResultsMode.BRANCH
    every = settings.results.progress_minutes
    return Target(workspace.repository, name, branch or settings.branch, is_reviewed, every)


def _in_cluster(workspace: "Workspace", target: "Target", volume: Path) -> "Found":
    from generator.commands.observing import collect_from_cluster
    from generator.engine.cluster.kubectl import Kubectl

    return collect_from_cluster(target, volume, Kubectl(), workspace.settings.namespace)


def _here(target: "Target", volume: Path, state: Path) -> Answer:
    from generator.cli import show
    from generator.commands.collect import UnrecordedError
    from generator.commands.collect import collect as record
    from generator.commands.going_on import go_on
    from generator.engine.local.store import conditions

    known = conditions(state) if state.is_dir() else None
    ended = {batch for batch, condition in (known or {}).items() if condition}
    failures: tuple[RepositoryError, ...] = ()
    try:
        found = record(target, volume, ended, alive=known)
    except UnrecordedError as error:
        found, failures = error.done, error.failures
    further = tuple(go_on(target))
    data = {"collected": list(map(collected, found)), "asked": list(map(rounds.asking, further))}
    return Answer(data, (*show.collected(found), *map(rounds.asked, further)), failures=failures)


def _volume(path: Path) -> Path:
    """Refuse a volume that is not there: every trial would be recorded as missing, for good."""
    from generator.errors import StorageError

    if not path.is_dir():
        raise StorageError(f"{path}: no such folder", hint="mount the results volume there")
    return path.absolute()


def collected(found: "Collected") -> dict[str, Any]:
    """Give a results commit as the envelope shows it."""
    summary = found.summary
    return {
        "sweep": summary.sweep,
        "batches": list(found.batches),
        "commit": found.commit,
        "corrupt": list(found.corrupt),
        "counts": {str(status): count for status, count in summary.counts.items()},
        "best": None if summary.winner is None else {"trial": summary.winner.trial, "value": summary.best},
        # None for other sweeps, and where nobody asks for rounds by himself.
        "next": None if found.step is None else rounds.step(found.step),
    }


def status(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="One sweep, by name or spec; all if none.",
            autocompletion=completing.sweeps,
        ),
    ] = None,
    state: StateOption = None,
    cluster: Annotated[
        bool, typer.Option("--cluster", help="Ask the cluster what runs, waits or is lost, by kubectl.")
    ] = False,
    context: ContextOption = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Say where each sweep stands: planned (not merged), pending (not begun), running, or how trials ended.

    What ran in a cluster, and the best of it, is known once it is recorded in git and pulled; what runs
    there now is said with --cluster.
    """

    def work() -> Answer:
        from generator.cli import in_cluster
        from generator.commands import ledger
        from generator.commands import status as command
        from generator.commands.workspace import Workspace
        from generator.engine.cluster.kubectl import Kubectl

        workspace = Workspace.find(answer.here())
        kubectl = Kubectl(context) if cluster or context is not None else None
        found = command.status(workspace, name, state=ledger.state_folder(workspace, state), kubectl=kubectl)
        if kubectl is not None:
            return in_cluster.standing(found, *_in_progress(workspace, found))
        more = (*origins.shown(one.origin for one in found), *_in_progress(workspace, found))
        return tallied([tally(one) for one in found], found, *more)

    answer.answer("status", form, work)


def _in_progress(workspace: "Workspace", found: "Iterable[Tally]") -> "Iterator[Text]":
    """Say where to look at what running batches have left so far, if anybody writes that down."""
    from rich.text import Text

    from generator.commands.progress import branch_of

    settings = workspace.settings
    if settings.results.progress_minutes is not None:
        for one in found:
            if one.active:
                yield Text(f"{one.sweep}: so far: branch {branch_of(one.sweep)} of {settings.remote}")


def tallied(data: "list[dict[str, Any]]", found: "tuple[Tally, ...]", *more: "Text") -> Answer:
    """Answer where sweeps stand; what cannot be read is named, and the exit code tells of it."""
    from generator.cli import show

    problems = tuple(problem for one in found for problem in one.problems)
    mistakes = tuple(problem for one in found for problem in one.mistakes)
    code = UnreadableError.exit_code if problems else EXIT_PROBLEMS if mistakes else 0
    return Answer({"sweeps": data}, (*show.tallies(found), *more), (*problems, *mistakes), code)


def tally(one: "Tally") -> dict[str, Any]:
    """Give a sweep's trials as the envelope shows them."""
    from generator.cli import show

    best = None if one.best is None else {"trial": one.best.trial, "value": one.best.metric(one.metric)}
    return {
        "name": one.sweep,
        "batches": one.batches,
        "active": list(one.active),
        "trials": one.trials,
        **{name: one.counts[name] for name in show.COUNTED},
        "best": best,
        **({"front": [row.trial for row in one.front]} if one.front else {}),
        **({"search": rounds.reached(one.search)} if one.search else {}),
        **({} if one.origin is None else {"links": origins.links(one.origin)}),
    }
