"""`sweep next`: what follows in searches, as lines and as data."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from generator.cli import answer, completing
from generator.cli.answer import EXIT_DRIFT, Answer, BaseOption, Format, FormatOption
from generator.cli.panels import RUN

if TYPE_CHECKING:
    from rich.text import Text

    from generator.commands.next_ import Followed
    from generator.commands.onward import Pushed
    from generator.commands.reached import Reached
    from generator.commands.rounds import Due, Step
    from generator.commands.searching import Blocked
    from generator.commands.workspace import Workspace

EXIT_OVER = 6
"""All searches that were asked about are over."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("next", rich_help_panel=RUN)(next_)


def next_(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...", help="Searches; all of sweeps/ if none.", autocompletion=completing.sweeps
        ),
    ] = None,
    check_only: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit 5 if a round is due and missing.")
    ] = False,
    push: Annotated[
        bool, typer.Option("--push", help="Commit on the remote's branch instead of writing here.")
    ] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Say which records weighed, and how.")] = False,
    base: BaseOption = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Write the next round of each search: a function of the spec, the records in git, and the seed.

    Exit code 6: all are over; 0 with --push, for workflows. With `results.mode: branch` too a person merges.
    """

    def work() -> Answer:
        from generator.cli.run import target_of
        from generator.commands import next_ as command
        from generator.commands.workspace import Workspace
        from generator.errors import UsageError

        workspace = Workspace.find(answer.here())
        if push and (check_only or base is not None):
            raise UsageError("--push goes by what stands on the branch: it takes neither --check nor --base")
        if push:
            found = command.push(workspace, target_of(workspace, push=True), names or ())
        else:
            found = command.next_(workspace, names or (), check=check_only, base=base)
        made = _answer(workspace, found, explain=explain, check=check_only)
        # A workflow that finds nothing to ask for has done its work.
        return replace(made, exit_code=0) if push and made.exit_code == EXIT_OVER else made

    answer.answer("next", form, work)


def _answer(workspace: "Workspace", found: "tuple[Followed, ...]", *, explain: bool, check: bool) -> Answer:
    lines = tuple(line for one in found for line in _lines(workspace, one, explain=explain, check=check))
    problems = tuple(sorted(problem for one in found for problem in one.problems))
    missing = check and any(one.is_missing for one in found)
    code = EXIT_DRIFT if missing else EXIT_OVER if all(one.is_over for one in found) else 0
    return Answer({"searches": [_data(one, explain=explain) for one in found]}, lines, problems, code)


def _data(one: "Followed", *, explain: bool) -> dict[str, Any]:
    from generator.commands.next_ import weighed
    from generator.commands.searching import Blocked

    said: dict[str, Any] = {"name": one.name, **step(one.step)}
    if said["state"] == "due":
        said["written"] = one.generated is not None and not one.is_missing
        said["commit"] = one.pushed.commit if one.pushed else None
    if explain and not isinstance(one.step, Blocked):
        said["evidence"] = [
            {"trial": kept.id, "round": kept.round, "status": str(kept.status), "values": kept.values}
            for kept in one.step.evidence.observations
        ]
        said["weighed"] = [
            {"told": part.told, "trials": part.trials, "rounds": list(part.rounds)}
            for part in weighed(one.step)
        ]
    return said


def step(found: "Step | Blocked") -> dict[str, Any]:
    """Give what follows in a search as the envelope shows it."""
    from generator.commands.rounds import Due, Over, Waiting
    from generator.commands.searching import Blocked

    match found:
        case Due():
            return {"state": "due", **_round(found)}
        case Waiting(evidence=evidence):
            return {"state": "waiting", "batches": list(evidence.waiting)}
        case Over(reason=reason, text=text):
            return {"state": "over", "reason": reason, "says": text}
        case Blocked(why=why, hint=hint):
            return {"state": "blocked", "says": why, "hint": hint}


def asking(found: "Pushed | Blocked") -> dict[str, Any]:
    """Give a commit that asks for a round as the envelope shows it, or why there is none."""
    from generator.commands.searching import Blocked

    if isinstance(found, Blocked):
        return {"sweep": found.sweep, "commit": None, **step(found)}
    return {"sweep": found.due.sweep.name, "commit": found.commit, **step(found.due)}


def reached(found: "Reached") -> dict[str, Any]:
    """Give how far a search has come as the envelope shows it."""
    return {
        "method": found.method,
        "round": found.round,
        "rounds": found.rounds,
        "recorded": found.recorded,
        "most": found.most,
        "state": str(found.state),
        "reason": found.reason,
        "says": found.says,
    }


def _round(due: "Due") -> dict[str, Any]:
    return {
        "round": due.round.number,
        "engine": due.round.engine,
        "batch": due.batch.name,
        "trials": due.batch.lock.trials,
        "redrawn": due.round.redrawn,
        "replaced": due.round.replaced,
    }


def _lines(workspace: "Workspace", one: "Followed", *, explain: bool, check: bool) -> "Iterator[Text]":
    from rich.text import Text

    from generator.commands.rounds import Due, Over, Waiting
    from generator.commands.searching import Blocked

    settings = workspace.settings
    match one.step:
        case Due() as due:
            search = due.sweep.search
            method = search.method if search else ""
            head = f"round {due.round.number}: {due.batch.lock.trials} trials ({method}, {due.round.engine})"
            yield Text(f"{one.name}: {head}", "bold")
            yield Text(f"  {_where(one, check=check)}")
            if due.round.replaced:
                yield Text(f"  {due.round.replaced} of them at random: what was proposed broke a constraint")
        case Waiting(evidence=evidence):
            listed = ", ".join(evidence.waiting)
            yield Text(f"{one.name}: waits for the results of {listed} on {settings.branch}")
        case Over(reason=reason, text=text):
            yield Text(f"{one.name}: over: {reason}: {answer.visible(text)}", "bold")
        case Blocked(why=why, hint=hint):
            way = f"\n  hint: {hint}" if hint else ""
            yield Text(answer.visible(f"{one.name}: blocked: {why}{way}"), "red")
            return
    if explain:
        yield from _evidence(one)


def _where(one: "Followed", *, check: bool) -> str:
    from generator.commands.rounds import Due
    from generator.repo.batches import ACTIVE

    assert isinstance(one.step, Due)
    if one.pushed is not None:
        return f"asked for in {one.pushed.commit[:8]}: {one.step.batch.name}"
    if one.generated is None:
        return f"proposed already: {one.step.batch.name}"
    verb = "unchanged" if one.generated.is_written else "missing" if check else "wrote"
    return f"{verb} {ACTIVE}/{one.step.batch.name}/"


def _evidence(one: "Followed") -> "Iterator[Text]":
    from rich.text import Text

    from generator.commands.next_ import weighed
    from generator.commands.searching import Blocked

    assert not isinstance(one.step, Blocked)
    for part in weighed(one.step):
        rounds = _spans(part.rounds)
        origin = f"round {rounds}" if len(part.rounds) == 1 else f"rounds {rounds}"
        yield Text(f"  {part.trials} trials of {origin if rounds else 'a warm start'} weigh {part.told}")
    if not one.step.evidence.observations:
        first = "" if one.step.evidence.asked else ": the first round is drawn from the space alone"
        yield Text(f"  nothing is recorded yet{first}")


def _spans(numbers: Sequence[int]) -> str:
    """List numbers in order, three and more in a row by the first and the last: a search has hundreds."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][-1] == number - 1:
            spans[-1].append(number)
        else:
            spans.append([number])
    return ", ".join(f"{one[0]} to {one[-1]}" if len(one) > 2 else ", ".join(map(str, one)) for one in spans)  # noqa: PLR2004 - the words above


def onward(found: "Step | Blocked | None") -> str:
    """Say what follows in a search."""
    from generator.commands.rounds import Due, Over, Waiting

    match found:
        case Due(round=drawn, batch=batch):
            return f"; asked for round {drawn.number}: {batch.name}"
        case Waiting(evidence=evidence):
            return f"; the next round waits for {', '.join(evidence.waiting)}"
        case Over(reason=reason, text=text):
            return f"; the search is over ({reason}): {text}"
        case None:
            return ""
        case _:
            return f"; the search is blocked: {found.why}"


def asked(one: "Pushed | Blocked") -> str:
    """Say which round a commit of its own asks for, or why none does."""
    from generator.commands.searching import Blocked

    if isinstance(one, Blocked):
        return f"{one.sweep}: blocked: {one.why}" + (f"\n  hint: {one.hint}" if one.hint else "")
    found = one.due
    return f"asked for round {found.round.number} in {one.commit[:8]}: {found.batch.name}"
