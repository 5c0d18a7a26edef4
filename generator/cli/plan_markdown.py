"""`sweep plan` as a comment on a pull request: bounded, and whatever a spec says stays text.

A stranger's words stand as code, where `@name` calls nobody.
"""

from collections.abc import Iterable, Iterator, Sequence

from generator.cli import domains, plan_summary
from generator.cli import plan_words as words
from generator.cli.answer import has_errors
from generator.commands.plan import Planned
from generator.plan import Binned, BlockReview, Covered, Difference, Review
from generator.problems import Problem
from generator.results.words import code, markdown
from generator.structs.trial import Trial

LIMIT = 60 * 1024
"""Bytes; GitHub takes 65,536 characters in a comment, and the workflow may want to add a few."""


RESERVE = 200
"""Bytes kept for the line that says what was cut."""

MOST_ROWS = 50
"""Of one table or list."""


def planned(found: Planned) -> str:
    """Write every review, then what needs none."""
    lines = list(_problems("##", found.problems))
    lines += [line for review in found.reviews for line in _review(review, found)]
    if found.settled:
        lines += [f"Nothing changes: {words.cut(', '.join(found.settled))}.", ""]
    return bounded(lines or ["There is no sweep yet.", ""])


def bounded(lines: Sequence[str]) -> str:
    """Join lines, as many as a comment can bear, and say how many it could not."""
    sizes = [len(line.encode()) + 1 for line in lines]
    kept, used = 0, 0
    if sum(sizes) <= LIMIT:
        return "\n".join(lines)
    while used + sizes[kept] <= LIMIT - RESERVE:
        used += sizes[kept]
        kept += 1
    said = f"… {len(lines) - kept:,} more lines were cut; `sweep plan` shows them."
    return "\n".join([*lines[:kept], "", said, ""])


def _review(review: Review, found: Planned) -> Iterator[str]:
    yield from (f"## {markdown(review.sweep.name)}: {words.size(review)}", "")
    if review.sweep.description:
        yield from (code(words.cut(review.sweep.description)), "")
    batch = f"; batch `{review.batch}`" if review.batch else ""
    yield from (f"{words.standing(review)}{batch}.", "")
    rows = plan_summary.rows(review, found)
    yield from _table("| ", [f"| {label} | {markdown(told)} |" for label, told in rows])
    if review.unlocked:
        told = code(words.cut(review.unlocked))
        yield from (f"Trials count as new and ids may change: {told}.", "")
    if review.outdated:
        yield from (f"{markdown(words.outdated(review))}.", "")
    if review.ahead is not None:
        yield from _space(review)
    else:
        yield from _blocks(review)
        yield from _coverage(review)
        yield from _ends(review)
    if found.base is not None and words.is_telling(review):
        yield from _change(review, found.base)
    yield from _problems("###", review.problems)


def _problems(level: str, found: Sequence[Problem]) -> Iterator[str]:
    if found:
        yield from (f"{level} {'Problems' if has_errors(found) else 'Warnings'}", "")
        yield from _some(f"- {code(words.cut(str(one)))}" for one in found)
        yield ""


def _space(review: Review) -> Iterator[str]:
    """Tell of a search what it may try: what it will, no one knows yet."""
    found = [row for block in review.sweep.blocks for row in domains.rows(block)]
    rows = [f"| {code(words.cut(name))} | {code(words.cut(text))} |" for name, text in found]
    yield from ("### Space", "")
    yield from _table("parameter | values", rows)


def _blocks(review: Review) -> Iterator[str]:
    numbered = list(enumerate(review.blocks, start=1))
    rows = [
        f"| {number} | {block.method} | {block.candidates:,} | {block.rejected:,} | {block.duplicates:,} "
        f"| {block.kept:,} | {words.percent(block.acceptance)} |"
        for number, block in numbered
    ]
    yield from ("### Blocks", "")
    yield from _table("block | method | candidates | rejected | duplicates | kept | accepted", rows)
    said = [f"- block {number}: {line}" for number, block in numbered for line in _remarks(block)]
    yield from _some(said)
    yield from [""] * bool(said)


def _remarks(block: BlockReview) -> Iterator[str]:
    for one in block.constraints:
        yield f"{words.rejected(one)} {code(words.cut(one.text))}"
    if block.discrepancy:
        yield words.evenness(block.discrepancy)


def _coverage(review: Review) -> Iterator[str]:
    found = review.coverage
    if found.parameters:
        yield from ("### Coverage", "")
        rows = [
            f"| {code(words.name(one))} | {one.present:,} | {_values(one)} | {_notes(one)} |"
            for one in found.parameters
        ]
        yield from _table("parameter | has it | values | ", rows)
    if found.constants:
        yield from (f"Fixed: {code(words.assignment(found.constants))}.", "")


def _values(one: Covered) -> str:
    if isinstance(one.values, Binned):
        return f"`{words.histogram(one.values)}` {words.span(one.values)}"
    return ", ".join(map(code, words.levels(one.values)))


def _notes(one: Covered) -> str:
    return markdown(words.notes(one))


def _ends(review: Review) -> Iterator[str]:
    rows = [_row("first" * (not place), trial) for place, trial in enumerate(review.first)]
    rows += [_row("last" * (not place), trial) for place, trial in enumerate(review.last)]
    yield from ("### Trials", "")
    yield from _table(" | trial | values", rows)


def _change(review: Review, base: str) -> Iterator[str]:
    found = review.difference
    commit = f"`{base[: words.SHORT_COMMIT]}`"
    yield from ("### Difference", "")
    yield from (f"Spec here versus spec at {commit}: {markdown(words.change(review))}.", "")
    if isinstance(found, Difference) and found.former is not None and not found.is_empty:
        yield from _table(" | trial | values", [*_few("added", found.added), *_few("removed", found.removed)])


def _few(sign: str, trials: Sequence[Trial]) -> Iterator[str]:
    yield from (_row(sign, trial) for trial in trials[: words.FEW_TRIALS])
    if len(trials) > words.FEW_TRIALS:
        yield f"| {sign} | … | {len(trials) - words.FEW_TRIALS:,} more |"


def _row(label: str, trial: Trial) -> str:
    return f"| {label} | `{trial.id}` | {code(words.trial(trial))} |"


def _table(headings: str, rows: Sequence[str]) -> Iterator[str]:
    yield f"| {headings} |"
    yield "|" + " --- |" * (headings.count("|") + 1)
    yield from _some(rows)
    yield ""


def _some(found: Iterable[str]) -> Iterator[str]:
    lines = list(found)
    yield from lines[:MOST_ROWS]
    if len(lines) > MOST_ROWS:
        yield from ("", f"… {len(lines) - MOST_ROWS:,} more")
