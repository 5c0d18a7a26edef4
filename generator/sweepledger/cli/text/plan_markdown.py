"""The output of `plan` as a comment on a pull request, of limited size.

Text from a spec, and names of files, are quoted as code, so that `@name` does not notify a user.
"""

from collections.abc import Iterable, Iterator, Sequence

from sweepledger.cli.response import SHORT_COMMIT, has_errors
from sweepledger.cli.text import plan, search_space
from sweepledger.cli.text.values import percent_text
from sweepledger.commands.plan import Planned
from sweepledger.plan import DesignReview, Difference, Histogram, ParameterCoverage, Review
from sweepledger.problems import Problem
from sweepledger.results.display import escape_markdown, markdown_code
from sweepledger.structs.trial import Trial

COMMENT_BYTES = 60 * 1024
"""GitHub accepts 65,536 characters in a comment; the workflow may add a few."""


RESERVED_BYTES = 200
"""Bytes for the line that states what was cut."""

MOST_ROWS = 50
"""Rows of one table or list."""


def plan_comment(planned: Planned) -> str:
    """Return the review of each changed sweep, then the names of unchanged sweeps."""
    lines = list(_problems("##", planned.problems))
    lines += [line for review in planned.reviews for line in _review(review, planned)]
    if planned.unchanged:
        lines += [f"Unchanged: {plan.shorten(', '.join(planned.unchanged))}.", ""]
    return fit_comment(lines or ["There is no sweep yet.", ""])


def fit_comment(lines: Sequence[str]) -> str:
    """Return as many lines as fit a comment, and the number of the others."""
    sizes = [len(line.encode()) + 1 for line in lines]
    kept, used = 0, 0
    if sum(sizes) <= COMMENT_BYTES:
        return "\n".join(lines)
    while used + sizes[kept] <= COMMENT_BYTES - RESERVED_BYTES:
        used += sizes[kept]
        kept += 1
    cut = f"… {len(lines) - kept:,} more lines were cut; `sweep plan` shows them."
    return "\n".join([*lines[:kept], "", cut, ""])


def _review(review: Review, planned: Planned) -> Iterator[str]:
    yield from (f"## {escape_markdown(review.sweep.name)}: {plan.sweep_size(review)}", "")
    if review.sweep.description:
        yield from (markdown_code(plan.shorten(review.sweep.description)), "")
    batch = f"; batch `{review.batch}`" if review.batch else ""
    yield from (f"{plan.trial_counts(review)}{batch}.", "")
    rows = plan.summary_rows(review, planned)
    yield from _table("| ", [f"| {label} | {_summary(label, text)} |" for label, text in rows])
    if review.unlocked:
        reason = markdown_code(plan.shorten(review.unlocked))
        yield from (f"Trials count as new and ids may change: {reason}.", "")
    if review.outdated:
        yield from (f"{escape_markdown(plan.outdated_text(review))}.", "")
    if review.further_rounds is not None:
        yield from _space(review)
    else:
        yield from _counts(review.design)
        coverage = review.coverage
        if coverage.parameters:
            yield from ("### Coverage", "")
            yield from _table(
                "parameter | trials | values | ", list(map(_parameter_row, coverage.parameters))
            )
        if coverage.constants:
            yield from (f"Fixed: {markdown_code(plan.short_configuration(coverage.constants))}.", "")
        yield from _first_and_last(review)
    if planned.base is not None and plan.has_changed_spec(review):
        yield from _change(review, planned.base)
    yield from _problems("###", review.problems)


def _problems(level: str, problems: Sequence[Problem]) -> Iterator[str]:
    if problems:
        yield from (f"{level} {'Problems' if has_errors(problems) else 'Warnings'}", "")
        yield from _first_rows(f"- {markdown_code(plan.shorten(str(problem)))}" for problem in problems)
        yield ""


def _summary(label: str, text: str) -> str:
    """Return the text of a row; files of the code have any names, `@name` among them."""
    return markdown_code(text) if label == "code" else escape_markdown(text)


def _space(review: Review) -> Iterator[str]:
    """Yield the search space of a search, whose trials are not known yet."""
    rows = [
        f"| {markdown_code(plan.shorten(name))} | {markdown_code(plan.shorten(text))} |"
        for name, text in search_space.parameter_rows(review.sweep.design)
    ]
    yield from ("### Search space", "")
    yield from _table("parameter | values", rows)


def _counts(design: DesignReview) -> Iterator[str]:
    row = (
        f"| {design.method} | {design.candidates:,} | {design.rejected:,} | {design.duplicates:,} "
        f"| {design.kept:,} | {percent_text(design.acceptance)} |"
    )
    yield from ("### Candidates", "")
    yield from _table("method | candidates | rejected | duplicates | kept | accepted", [row])
    remarks = [
        f"- {plan.rejection_text(rejection)} {markdown_code(plan.shorten(rejection.text))}"
        for rejection in design.constraints
    ]
    if design.discrepancy:
        remarks.append(f"- {plan.discrepancy_text(design.discrepancy)}")
    yield from _first_rows(remarks)
    yield from [""] * bool(remarks)


def _parameter_row(parameter: ParameterCoverage) -> str:
    name = markdown_code(plan.parameter_name(parameter))
    notes = escape_markdown(plan.parameter_notes(parameter))
    return f"| {name} | {parameter.present:,} | {_values(parameter)} | {notes} |"


def _values(parameter: ParameterCoverage) -> str:
    if isinstance(parameter.values, Histogram):
        return f"`{plan.histogram_text(parameter.values)}` {plan.range_text(parameter.values)}"
    return ", ".join(map(markdown_code, plan.value_counts(parameter.values)))


def _first_and_last(review: Review) -> Iterator[str]:
    rows = [_row("first" * (index == 0), trial) for index, trial in enumerate(review.first)]
    rows += [_row("last" * (index == 0), trial) for index, trial in enumerate(review.last)]
    yield from ("### Trials", "")
    yield from _table(" | trial | values", rows)


def _change(review: Review, base: str) -> Iterator[str]:
    change = review.difference
    commit = f"`{base[:SHORT_COMMIT]}`"
    yield from ("### Difference", "")
    yield from (f"Spec compared with {commit}: {escape_markdown(plan.change_text(review))}.", "")
    if isinstance(change, Difference) and change.former is not None and not change.is_empty:
        yield from _table(
            " | trial | values", [*_few("added", change.added), *_few("removed", change.removed)]
        )


def _few(sign: str, trials: Sequence[Trial]) -> Iterator[str]:
    yield from (_row(sign, trial) for trial in trials[: plan.FEW_TRIALS])
    if len(trials) > plan.FEW_TRIALS:
        yield f"| {sign} | … | {len(trials) - plan.FEW_TRIALS:,} more |"


def _row(label: str, trial: Trial) -> str:
    return f"| {label} | `{trial.id}` | {markdown_code(plan.trial_values(trial))} |"


def _table(headings: str, rows: Sequence[str]) -> Iterator[str]:
    yield f"| {headings} |"
    yield "|" + " --- |" * (headings.count("|") + 1)
    yield from _first_rows(rows)
    yield ""


def _first_rows(rows: Iterable[str]) -> Iterator[str]:
    lines = list(rows)
    yield from lines[:MOST_ROWS]
    if len(lines) > MOST_ROWS:
        yield from ("", f"… {len(lines) - MOST_ROWS:,} more")
