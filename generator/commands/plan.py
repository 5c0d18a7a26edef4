"""`sweep plan`: what a merge would ask for, and how that differs from what stands. Writes nothing."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from generator import search
from generator.commands import committed, extending, noting, programs, retrying, scripts, spending
from generator.commands.foreseen import foreseen
from generator.commands.timing import Timing
from generator.commands.validate import read
from generator.commands.workspace import SPECS, Workspace
from generator.errors import RepositoryError
from generator.plan import (
    Ahead,
    Asked,
    Balance,
    BlockReview,
    Difference,
    Discrepancy,
    Forecast,
    Outdated,
    Rejection,
    Review,
    Standing,
    Unreadable,
    balances,
    counts,
    coverage,
    difference,
    forecast,
    outdated,
    promise,
    rounds,
    standing,
)
from generator.problems import Problem
from generator.repo import batches
from generator.repo.batches import StoredBatch
from generator.search import Assignment, Expansion
from generator.search.discrepancy import coverage_points, discrepancy
from generator.structs.domain import Continuous
from generator.structs.program import Program
from generator.structs.settings import Settings
from generator.structs.space import SearchSpace
from generator.structs.sweep import Block, Draw, Sampler, Sweep
from generator.structs.trial import Trial

MOST_POINTS = 2048
"""The measure compares every pair of points: a tenth of a second for so many."""


@dataclass(frozen=True)
class Planned:
    """Every sweep that was asked about."""

    base: str | None
    """The commit that stands; None while nothing was ever committed."""
    reviews: tuple[Review, ...]
    settled: tuple[str, ...]
    """Sweeps of which a merge would change nothing."""
    problems: tuple[Problem, ...] = ()
    """Of the specs that are wrong, which hide no others."""
    currency: str = ""
    """What prices are in."""
    month: str = ""
    """Whose budgets count."""


def plan(
    workspace: Workspace, names: Iterable[str] = (), *, base: str | None = None, month: str | None = None
) -> Planned:
    """Review sweeps before anything is spent; without names, those that a merge would change."""
    chosen = tuple(dict.fromkeys(names))
    found = read(workspace, chosen)
    commit = workspace.standing(base)
    stage = _Stage(workspace, commit, spending.month_of(workspace.repository, commit, month))
    batches.load(one for sweep, _ in found.sweeps for one in batches.of_sweep(stage.standing, sweep.name))
    reviews = [stage.review(sweep, expansion) for sweep, expansion in found.sweeps]
    settled = () if chosen else tuple(one.sweep.name for one in reviews if not one.is_news)
    news = tuple(one for one in reviews if chosen or one.is_news)
    return Planned(
        stage.base, news, settled, tuple(sorted(found.problems)), workspace.settings.currency, stage.month
    )


@dataclass(frozen=True)
class _Stage:
    """A repository about to be merged onto a commit."""

    workspace: Workspace
    base: str | None
    month: str
    trees: dict[str, str | None] = field(default_factory=dict)
    """Of the code as it is committed last, by its folder; looked up once."""

    @cached_property
    def standing(self) -> tuple[StoredBatch, ...]:
        return batches.in_commit(self.workspace.repository, self.base)

    @cached_property
    def present(self) -> tuple[StoredBatch, ...]:
        return batches.in_work_tree(self.workspace.root)

    @cached_property
    def timing(self) -> Timing:
        return Timing(self.workspace.repository, self.base, self.standing)

    @cached_property
    def specs(self) -> Mapping[str, bytes]:
        """The folder of specs at the base."""
        return self.workspace.repository.read(self.base, SPECS)

    @cached_property
    def settings(self) -> Settings:
        """The settings at the base; today's where those cannot be read."""
        found = committed.settings(self.workspace.repository, self.base)
        return found if isinstance(found, Settings) else self.workspace.settings

    def review(self, sweep: Sweep, expansion: Expansion) -> Review:
        program, unlocked = self.program(sweep)
        trials = search.trials(sweep, expansion, program)
        old = batches.of_sweep(self.standing, sweep.name)
        again = retrying.asked_again(self.workspace, sweep, old, self.base)
        archived = {trial.digest for batch in old if not batch.is_active for trial in batch.trials}
        known = {trial.digest for batch in old for trial in batch.trials}
        stands = standing(
            trials,
            active={trial.digest for batch in old if batch.is_active for trial in batch.trials},
            archived=archived - again,
        )
        new = tuple(one for one in trials if one.digest not in known or one.digest in again)
        ahead = foreseen(sweep, sweep.search, old, program) if sweep.search else None
        stands = stands if ahead is None else _rounds(old, ahead.trials or 0)
        missing = self.missing(sweep, None if unlocked else program) if stands.new else ()
        wrong = extending.refused(self.workspace, sweep, old, program) if stands.new else ()
        blocks = tuple(_blocks(sweep, expansion))
        return Review(
            sweep,
            trials,
            stands,
            blocks,
            coverage(sweep, expansion.assignments),
            self.difference(sweep, trials, program),
            tuple(sorted((*sweep.warnings, *expansion.warnings, *missing, *wrong))),
            () if unlocked else self.outdated(sweep, program),
            unlocked,
            self.forecast(sweep, [one.assignment for one in new], program, ahead),
            self.balances(sweep, stands.new if ahead else len(new)),
            noting.noted(self.workspace, self.base, sweep, old, (trials, blocks)) if new else (),
            self.written(sweep),
            ahead,
        )

    def balances(self, sweep: Sweep, new: int) -> tuple[Balance, ...]:
        """Hold the most that new trials can take against the budgets that the sweep counts towards."""
        budgets = {
            team: one for team, one in self.workspace.settings.budgets.items() if counts(one, sweep.name)
        }
        ledger = self.ledger if budgets else spending.Ledger(self.month)
        asked = [promise(sweep.name, sweep.run, sweep.pool, new)]
        return balances(budgets, used=ledger.used, promised=ledger.promised, asked=asked)

    @cached_property
    def ledger(self) -> spending.Ledger:
        """The month as the base has it."""
        repository, settings = self.workspace.repository, self.workspace.settings
        return spending.ledger(repository, self.base, settings, self.month, standing=self.standing)

    def forecast(
        self, sweep: Sweep, new: Sequence[Assignment | None], program: Program, ahead: Ahead | None
    ) -> Forecast | None:
        """Say when new trials are done and what they cost, by what the base has recorded.

        Of a search these are of its further rounds, one after the other; their values nobody knows yet.
        """
        left = 1
        if ahead is not None and ahead.trials and ahead.rounds:
            left, new = ahead.rounds, (None,) * -(-ahead.trials // ahead.rounds)
        if not new:
            return None
        past, pool = self.timing.past(program, sweep.name), sweep.pool
        asked = Asked(sweep.run, new, pool, past)
        found = forecast(asked, self.timing.ahead(pool) if pool else (), seed=len(new))
        return found if left == 1 else rounds(found, left)

    def written(self, sweep: Sweep) -> str | None:
        """Name the batch of the work tree that a merge would bring."""
        held = {batch.name for batch in self.standing}
        new = (one for one in batches.of_sweep(self.present, sweep.name) if one.name not in held)
        return next((one.name for one in new if one.is_active), None)

    def program(self, sweep: Sweep) -> tuple[Program, str | None]:
        """Find the program that `sweep generate` would lock, or a stand-in and why it could not."""
        merged = batches.of_sweep(self.standing, sweep.name)
        written = batches.of_sweep(self.present, sweep.name)
        newest = max((*merged, *written), key=lambda batch: batch.lock.number, default=None)
        try:
            return programs.locked(self.workspace, sweep, newest.lock.program if newest else None), None
        except RepositoryError as error:
            return programs.asked_for(self.workspace, sweep), str(error)

    def missing(self, sweep: Sweep, program: Program | None) -> Iterator[Problem]:
        """Find what the code lacks: the locked code, or as long as none is, what lies in the work tree."""
        if program is None:
            return scripts.lacking_here(self.workspace, sweep)
        return scripts.lacking(self.workspace, sweep, program)

    def outdated(self, sweep: Sweep, program: Program) -> tuple[Outdated, ...]:
        """Compare the program with what `sweep update` would lock."""
        path, repository = sweep.run.code_path, self.workspace.repository
        if path not in self.trees:
            head = repository.commit("HEAD")
            self.trees[path] = repository.tree_id(head, path) if head else None
        return outdated(program, programs.asked_for(self.workspace, sweep, tree=self.trees[path] or ""))

    def difference(
        self, sweep: Sweep, trials: tuple[Trial, ...], program: Program
    ) -> Difference | Unreadable:
        """Compare with the spec at the base, under one program, so that only the space matters."""
        if sweep.path in self.specs:
            return self.compared(sweep.path, sweep, trials, program)
        found = [self.compared(path, sweep, trials, program) for path in self.vanished]
        renamed = [one for one in found if isinstance(one, Difference) and one.unchanged]
        nothing = difference(None, (), trials)
        return max(renamed, key=lambda one: (one.unchanged, -len(one.removed)), default=nothing)

    @cached_property
    def vanished(self) -> tuple[str, ...]:
        """Specs at the base that the work tree lacks: one of them may have got another name."""
        kept = {self.workspace.shown(path) for path in self.workspace.spec_paths()}
        return tuple(path for path in sorted(self.specs) if path.endswith(".yaml") and path not in kept)

    def compared(
        self, path: str, sweep: Sweep, trials: tuple[Trial, ...], program: Program
    ) -> Difference | Unreadable:
        former = committed.sweep(self.workspace.repository, self.base, path, self.settings)
        if not isinstance(former, Sweep):
            return Unreadable(path, former)
        if former.digest == sweep.digest:
            return Difference(path, (), (), len(trials), is_same_text=True)
        found = search.explore(former)
        if not isinstance(found, Expansion):
            return Unreadable(path, found)
        return difference(path, search.trials(former, found, program), trials)


def _rounds(old: Sequence[StoredBatch], new: int) -> Standing:
    """Count the trials of a search; what its further rounds may ask for is new."""
    active = {row.trial for batch in old if batch.is_active for row in batch.rows}
    listed = {row.trial for batch in old for row in batch.rows}
    return Standing(new, len(active), len(listed) - len(active))


def _blocks(sweep: Sweep, expansion: Expansion) -> Iterator[BlockReview]:
    start = 0
    for block, count in zip(sweep.blocks, expansion.blocks, strict=True):
        kept = expansion.assignments[start : start + count.kept]
        start += count.kept
        constraints = zip(block.space.constraints, count.rejections, count.unasked, strict=False)
        yield BlockReview(
            block.method,
            count.candidates,
            count.rejected,
            count.duplicates,
            count.kept,
            tuple(Rejection(one.text, rejected, unasked) for one, rejected, unasked in constraints),
            _evenness(block, count.rejected, kept),
        )


def _evenness(block: Block, rejected: int, kept: Sequence[Assignment]) -> Discrepancy | None:
    """Measure quasi-random points. Those of constrained spaces have no yardstick."""
    if not isinstance(block, Draw) or block.sampler is Sampler.RANDOM or rejected:
        return None
    # The first points of a sequence are even by themselves; of a Latin hypercube only all of them are.
    if block.sampler is Sampler.LATIN_HYPERCUBE and len(kept) > MOST_POINTS:
        return None
    space = SearchSpace(tuple(one for one in block.space.parameters if isinstance(one.domain, Continuous)))
    points = coverage_points(space, kept[:MOST_POINTS])
    found = discrepancy(points)
    return None if found is None else Discrepancy(len(points), len(points[0]), found)
