"""The summary of a sweep: counts, the best trial, the ranking of the others, and the Pareto front.

`inputs_digest` covers everything that a summary is computed from; it can be reproduced with `sha256sum`.
The message of a results commit is made from the summary: a subject for the log, and trailers for programs.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from sweepledger.formats import records_jsonl
from sweepledger.results import best_trial
from sweepledger.results.display import format_number, one_line
from sweepledger.results.doubts import Doubt, doubts
from sweepledger.results.inference import Interval, optimism
from sweepledger.results.outcomes import BatchRecords, EvaluatedBatch, InSpec, evaluate, one_per_trial
from sweepledger.structs import names, record
from sweepledger.structs.batch import BatchLock
from sweepledger.structs.metric import Metric
from sweepledger.structs.record import Status, TrialResult
from sweepledger.structs.values import Value, bytes_digest, listing_digest

DIGEST_PREFIX = "sha256:"


def records_files(batch: EvaluatedBatch) -> dict[str, bytes]:
    """Return a batch's files of records, by path: sorted by row and attempt, without duplicates."""
    attempts = sorted(
        (attempt for attempts in batch.attempts for attempt in attempts),
        key=lambda attempt: (attempt.record.index, attempt.record.attempt, attempt.line),
    )
    contents = records_jsonl.write(attempt.record for attempt in attempts)
    return {names.records_path(batch.lock.name, part): content for part, content in enumerate(contents)}


def laptop_files(batches: Iterable[EvaluatedBatch]) -> dict[str, bytes]:
    """Return the file that names the batches made on a laptop, by path; empty if there are none."""
    marked = [batch.lock.name for batch in batches if batch.is_marked]
    return {names.LAPTOP_FILE: "".join(f"{name}\n" for name in marked).encode()} if marked else {}


def inputs_digest(batches: Sequence[EvaluatedBatch], spec_path: str, spec_digest: str | None) -> str:
    """Return the digest of the output of `sha256sum` for locks, records, `laptop.txt` and the spec, sorted by path.

    A missing file has no line.
    """
    digests = {f"{names.LOCKS}/{batch.lock.name}/{names.LOCK_FILE}": batch.lock_digest for batch in batches}
    files = laptop_files(batches)
    for batch in batches:
        files |= records_files(batch)
    folder = names.results_folder(batches[0].lock.sweep)
    digests |= {f"{folder}/{path}": bytes_digest(content) for path, content in files.items()}
    if spec_digest is not None:
        digests[spec_path] = spec_digest
    return listing_digest({path: digest.removeprefix(DIGEST_PREFIX) for path, digest in digests.items()})


TOP = 10
MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Summary:
    """A sweep's results as one value; every file of its results folder is computed from it."""

    sweep: str
    description: str
    spec_digest: str | None
    """Digest of the spec at the commit; None if there was none."""
    inputs_digest: str
    """Digest of the locks, the records and the spec; see `inputs_digest`."""
    metric: Metric
    program: str
    """Digest of the ranked program, 64 hex digits: the newest, unless a caller names another."""
    batches: tuple[EvaluatedBatch, ...]
    """By number."""
    outcomes: tuple[TrialResult, ...]
    """One per trial, by batch and row."""
    counts: Mapping[Status, int]
    """Number of trials by status; every status is a key."""
    winner: TrialResult | None
    """The best eligible trial; None for the reason in `verdict`.

    With replicates, the first ok trial of the best configuration.
    """
    verdict: best_trial.Verdict
    reason: str
    """The verdict in words, with its numbers."""
    warnings: tuple[str, ...]
    """Reasons not to rely on the best trial."""
    interval: Interval | None
    """95 % interval of the best mean; None without replicates, and for a single result."""
    optimism: float | None
    """With replicates, by how much selection is expected to overstate the best mean."""
    replicated: tuple[best_trial.ConfigurationResults, ...]
    """With replicates, the newest program's configurations, best first; otherwise empty."""
    top: tuple[TrialResult, ...]
    """The best eligible trials."""
    doubts: tuple[Doubt, ...] = ()
    """What trials of the ranked program reported that nobody should rely on; `warnings` has the texts."""
    resource: str | None = None
    """The parameter that successive halving increases, if the search has one."""
    start: tuple[str, ...] = ()
    """What the search starts from besides its own trials: recorded sweeps, or foreign evidence."""

    @property
    def lock(self) -> BatchLock:
        """The lock of the newest batch with the ranked program, whose metric is the sweep's."""
        return _newest_lock(self.batches, self.program)

    @property
    def best(self) -> float | None:
        """The best objective; with replicates, the best mean."""
        if self.winner is None:
            return None
        return self.replicated[0].mean if self.replicated else self.winner.metric(self.metric.name)

    def is_current(self, outcome: TrialResult) -> bool:
        """Return whether a trial ran the ranked program; others are shown, but never ranked."""
        return outcome.program == self.program

    def is_eligible(self, outcome: TrialResult) -> bool:
        """Return whether a trial ran the ranked program and the current spec, if known, contains the trial."""
        return self.is_current(outcome) and outcome.in_spec is not False


def summarise(
    batches: Iterable[BatchRecords],
    *,
    description: str,
    in_spec: InSpec | None = None,
    spec_digest: str | None = None,
    program: str | None = None,
) -> Summary:
    """Return the summary of all batches of one sweep, in any order. Raises ValueError if there is none.

    `in_spec` returns whether the current spec contains a configuration with a replicate; None if this is unknown.
    `spec_digest` is the SHA-256 of that spec's file, at the path in the newest lock. The ranked trials are those of the
    program with the digest `program`, or of the newest program if no batch ran that one.
    """
    ordered = sorted(batches, key=lambda batch: batch.lock.number)
    evaluated = tuple(evaluate(batch, in_spec) for batch in ordered)
    if len({batch.lock.sweep for batch in evaluated}) != 1:
        raise ValueError("the batches must be of one sweep, and at least one")
    lock = _newest_lock(evaluated, program)
    outcomes = one_per_trial(outcome for batch in evaluated for outcome in batch.outcomes)
    current = [outcome for outcome in outcomes if outcome.program == lock.program.digest]
    eligible = [outcome for outcome in current if outcome.in_spec is not False]
    field = _ranking(outcomes, eligible, lock)
    verdict = best_trial.decide(field)
    won = {best_trial.Verdict.BEST, best_trial.Verdict.CLEAR, best_trial.Verdict.ALONE}
    first = field.ranked[0] if verdict in won else None
    laptop = [batch.lock.name for batch in evaluated if batch.is_marked]
    more = " …" if len(laptop) > MOST_NAMED else ""
    doubted, counts = doubts(current, lock.metrics), Counter(outcome.status for outcome in outcomes)
    return Summary(
        sweep=lock.sweep,
        description=description,
        spec_digest=spec_digest,
        inputs_digest=inputs_digest(evaluated, evaluated[-1].lock.spec.path, spec_digest),
        metric=lock.metric,
        program=lock.program.digest,
        batches=evaluated,
        outcomes=outcomes,
        counts=MappingProxyType({status: counts[status] for status in Status}),
        winner=None if first is None else first.trial,
        verdict=verdict,
        reason=best_trial.verdict_reason(verdict, field),
        warnings=(
            *(doubt.text for doubt in doubted),
            *best_trial.ranking_warnings(field, outcomes),
            *([f"{names.LAPTOP_WARNING}: {', '.join(laptop[:MOST_NAMED])}{more}"] if laptop else ()),
        ),
        interval=None if first is None else first.interval,
        optimism=optimism([configuration.values for configuration in field.ranked]),
        replicated=best_trial.group_configurations(current, lock.metric) if field.has_replicates else (),
        top=tuple(
            sorted(
                (one for one in eligible if one.metric(lock.metric.name) is not None),
                key=lambda one: (lock.metric.sort_key(one.metric(lock.metric.name) or 0.0), one.trial),
            )[:TOP]
        ),
        doubts=doubted,
    )


def _newest_lock(batches: Sequence[EvaluatedBatch], program: str | None) -> BatchLock:
    """Return the lock of the newest batch that ran a program; of the newest batch if none ran it."""
    # What only failed trials ran is not ranked before the program of all others.
    locks = sorted((batch.lock for batch in reversed(batches)), key=lambda lock: lock.repairs)
    return next((lock for lock in locks if lock.program.digest == program), locks[0])


def _ranking(
    outcomes: Iterable[TrialResult], eligible: Sequence[TrialResult], lock: BatchLock
) -> best_trial.Ranking:
    configurations, program = best_trial.group_configurations(outcomes, lock.metric), lock.program.digest
    current = [configuration for configuration in configurations if configuration.trial.program == program]
    return best_trial.Ranking(
        ranked=tuple(configuration for configuration in current if configuration.is_ranked),
        outside=tuple(configuration for configuration in current if configuration.in_spec is False),
        others=tuple(
            configuration for configuration in configurations if configuration.trial.program != program
        ),
        metric=lock.metric,
        trials=len(eligible),
        # Two rows of one assignment are replicates, too, even if a manual table gives them the same number.
        has_replicates=any(one.replicate for one in eligible)
        or any(len(one.trials) > 1 for one in current if one.in_spec is not False),
    )


def as_numbers(values: Iterable[Value]) -> list[int | float] | None:
    """Return values as numbers if all are numbers; booleans are not."""
    listed = list(values)
    numbers = [value for value in listed if isinstance(value, int | float) and not isinstance(value, bool)]
    return numbers if len(numbers) == len(listed) else None


TrialMetrics = tuple[TrialResult, tuple[float, ...]]
"""A trial with its value of each metric."""


def pareto_front(summary: Summary) -> list[TrialMetrics]:
    """Return the trials of the front, best in the first metric first; empty with one metric."""
    return record.pareto_front(filter(summary.is_eligible, summary.outcomes), summary.lock.metrics)


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
    """Return the best trial as text, or `no winner`; with several metrics, the size of the front."""
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
