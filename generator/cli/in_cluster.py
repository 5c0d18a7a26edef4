"""What a look at a cluster found, as data and as lines: results commits, what waits and what is stuck."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rich.text import Text

from generator.cli import answer, rounds, run, show
from generator.cli.answer import Answer
from generator.formats.record import time_of

if TYPE_CHECKING:
    from generator.commands.attesting import Waiting
    from generator.commands.observing import Found
    from generator.commands.status import Tally
    from generator.commands.workspace import Workspace


def collected(workspace: "Workspace", found: "Found") -> Answer:
    """Answer what was recorded, and what keeps other batches from it."""
    controller = workspace.settings.controller
    data = {
        "collected": [run.collected(one) for one in found.collected],
        "waiting": [
            {"batch": one.batch, "trials": one.trials, "pods": one.pods, "until": time_of(one.until)}
            for one in found.waiting
        ],
        "stalled": [
            {"batch": one.batch, "says": one.says, "hint": one.hint(controller)} for one in found.stalled
        ],
        "asked": [rounds.asking(one) for one in found.asked],
        "remarks": list(found.remarks),
    }
    told = (
        *(Text(answer.visible(rounds.asked(one))) for one in found.asked),
        *(_line(one.batch, "waiting", _awaited(one)) for one in found.waiting),
        *(_line(one.batch, "stalled", one.says, one.hint(controller)) for one in found.stalled),
        *(Text(answer.visible(f"note: {one}")) for one in found.remarks),
    )
    return Answer(data, (*show.collected(found.collected), *told), failures=found.failures)


def standing(found: "Iterable[Tally]", *more: Text) -> Answer:
    """Answer where sweeps stand, and what a person should know of them."""
    listed = tuple(found)
    data = [
        {
            **run.tally(one),
            **{name.replace(" ", "_"): one.counts[name] for name in show.IN_CLUSTER},
            "remarks": [
                {"batch": remark.batch, "what": remark.what, "says": remark.says, "hint": remark.hint}
                for remark in one.remarks
            ],
        }
        for one in listed
    ]
    return run.tallied(data, listed, *more, *_remarks(listed))


def _remarks(found: "Iterable[Tally]") -> Iterator[Text]:
    for one in found:
        for remark in one.remarks:
            yield _line(remark.batch, remark.what, remark.says, remark.hint)


def _awaited(one: "Waiting") -> str:
    awaited = [
        *([f"the records of {one.trials} trial(s) that ended well"] if one.trials else ()),
        *([f"the end of {one.pods} pod(s)"] if one.pods else ()),
    ]
    return f"its Job has ended; awaited {' and '.join(awaited)}, until {time_of(one.until)} at most"


def _line(batch: str, what: str, says: str, hint: str = "") -> Text:
    way = f"\n  hint: {hint}" if hint else ""
    return Text(answer.visible(f"{batch}: {what}: {says}{way}"))
