"""The message of a results commit: a subject for the log, and trailers for programs."""

from collections.abc import Iterable

from sweepledger.results.display import format_number, one_line
from sweepledger.results.summary import Summary, pareto_front
from sweepledger.structs.record import Status

ALWAYS_COUNTED = frozenset({Status.OK, Status.DIVERGED, Status.FAILED, Status.MISSING})


def commit_message(summary: Summary, *, recorded: Iterable[str]) -> str:
    """Return the message of the commit that records these batches; its counts cover the whole sweep."""
    program = summary.lock.program
    trailers = [
        ("Sweep", summary.sweep),
        *(("Batch", name) for name in recorded),
        ("Spec", f"{summary.lock.spec.path} {summary.spec_digest or 'none'}"),
        ("Image", program.image),
        ("Code", program.code.tree),
        ("Data", "none" if program.data is None else program.data.digest),
        ("Generator", summary.lock.generator),
        ("Trials", count_statuses(summary)),
        ("Inputs-Digest", summary.inputs_digest),
    ]
    body = "".join(f"{name}: {one_line(value)}\n" for name, value in trailers)
    return f"{subject(summary)}\n\n{body}"


def subject(summary: Summary) -> str:
    """Return the subject line: `results(lr): 23/24 trials, best loss 0.12 (t0123456789a)`."""
    done = f"{summary.counts[Status.OK]}/{len(summary.outcomes)} trials"
    return f"results({summary.sweep}): {done}, {best_result(summary)}"


def best_result(summary: Summary) -> str:
    """Return the best trial in words, or `no winner`; with several metrics, the size of the front."""
    if unbeaten := pareto_front(summary):
        return f"front of {len(unbeaten)} by {', '.join(one_line(one.name) for one in summary.lock.metrics)}"
    if summary.winner is None or summary.best is None:
        return "no winner"
    text = f"best {one_line(summary.metric.name)} {format_number(summary.best)}"
    if summary.interval is not None:
        reach = (summary.interval.high - summary.interval.low) / 2
        text += f" ± {format_number(reach)} over {summary.replicated[0].count} replicates"
    return f"{text} ({summary.winner.trial})"


def count_statuses(summary: Summary) -> str:
    """Return the trials by status: `16 ok, 0 diverged, 0 failed, 0 missing`; other statuses if present."""
    statuses = [status for status in Status if status in ALWAYS_COUNTED or summary.counts[status]]
    return ", ".join(f"{summary.counts[status]} {status}" for status in statuses)
