"""The message of a results commit: a subject people read in the log, trailers that programs read."""

from collections.abc import Iterable

from generator.results.front import front, metrics
from generator.results.summary import Summary
from generator.results.words import one_line, short
from generator.structs.record import Status

ALWAYS_TOLD = frozenset({Status.OK, Status.DIVERGED, Status.FAILED, Status.MISSING})


def commit_message(summary: Summary, *, recorded: Iterable[str]) -> str:
    """Write the message of the commit that records these batches, by name. It counts the whole sweep."""
    program = summary.lock.program
    trailers = [
        ("Sweep", summary.sweep),
        *(("Batch", name) for name in recorded),
        ("Spec", f"{summary.lock.spec_path} {summary.spec_digest or 'none'}"),
        ("Image", program.image),
        ("Code", program.code.tree),
        ("Data", "none" if program.data is None else program.data.digest),
        ("Generator", summary.lock.generator),
        ("Trials", counts(summary)),
        ("Inputs-Digest", summary.inputs_digest),
    ]
    body = "".join(f"{name}: {one_line(value)}\n" for name, value in trailers)
    return f"{subject(summary)}\n\n{body}"


def subject(summary: Summary) -> str:
    """Say in one line how the sweep stands: `results(lr): 23/24 trials, best loss 0.12 (t0123456789a)`."""
    done = f"{summary.counts[Status.OK]}/{len(summary.outcomes)} trials"
    return f"results({summary.sweep}): {done}, {best(summary)}"


def best(summary: Summary) -> str:
    """Name the winner, or say that there is none; of several metrics count the front instead."""
    if unbeaten := front(summary):
        return f"front of {len(unbeaten)} by {', '.join(one_line(one.name) for one in metrics(summary))}"
    if summary.winner is None or summary.best is None:
        return "no winner"
    found = f"best {one_line(summary.metric.name)} {short(summary.best)}"
    if summary.interval is not None:
        reach = (summary.interval.high - summary.interval.low) / 2
        found += f" ± {short(reach)} over {summary.replicated[0].count} replicates"
    return f"{found} ({summary.winner.trial})"


def counts(summary: Summary) -> str:
    """Count the trials by status: `16 ok, 0 diverged, 0 failed, 0 missing`; others where there are any."""
    told = [status for status in Status if status in ALWAYS_TOLD or summary.counts[status]]
    return ", ".join(f"{summary.counts[status]} {status}" for status in told)
