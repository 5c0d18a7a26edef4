"""Review trials and cost of sweeps before the merge.

It also shows coverage, forecast, and changes since the base commit.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from msgspec.structs import replace

from sweepledger import search
from sweepledger.cli import response
from sweepledger.cli.options import BaseOption, MonthOption, argument, option
from sweepledger.cli.text.plan import plan_comment, plan_text
from sweepledger.errors import RepositoryError
from sweepledger.formats import summary_csv
from sweepledger.formats.summary_csv import SUMMARY_FILE
from sweepledger.operations.generation import spec_change
from sweepledger.operations.generation.spec_change import propose_pack, propose_rounds
from sweepledger.operations.repository import at_commit, catalog, costs, programs
from sweepledger.operations.repository.workspace import Workspace, explore
from sweepledger.operations.rounds.evidence import foreign_labels
from sweepledger.operations.rounds.progress import remaining_bounds
from sweepledger.plan.budgets import Balance, PodDisk, RoundBounds, balances, counts_towards, reservation
from sweepledger.plan.coverage import Discrepancy, coverage
from sweepledger.plan.forecast import Forecast, PlannedTrials, forecast
from sweepledger.plan.review import (
    BestTrial,
    CodeChange,
    DesignReview,
    Difference,
    Note,
    OutdatedPart,
    Planned,
    Rejection,
    Review,
    TrialCounts,
    UnreadableSpec,
    count_trials,
    difference,
    notes,
    outdated_parts,
    review_as_data,
)
from sweepledger.render import pod
from sweepledger.repo import batches
from sweepledger.repo.batches import StoredBatch
from sweepledger.repo.stored_batches import StoredBatches, stored_batches
from sweepledger.search import Configuration, Expansion
from sweepledger.search.unit_cube import discrepancy, unit_points
from sweepledger.spec import ParsedSpec
from sweepledger.structs.batch import Batch
from sweepledger.structs.names import SPECS, results_folder
from sweepledger.structs.program import Code, Program
from sweepledger.structs.search_block import Design, RandomSearch
from sweepledger.structs.settings import Controller, NextRoundMode, Settings
from sweepledger.structs.space import SearchSpace
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.trial import Trial, all_trials
from sweepledger.verbs.validate import method_warnings


class PlanFormat(StrEnum):
    """Output formats of `sweep plan`; Markdown is for comments on pull requests."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"


def plan(
    workspace: Workspace,
    names: list[str] | None = argument(
        "[NAME]...", "Sweeps to plan; default: all that a merge would change."
    ),
    base: BaseOption = None,
    month: MonthOption = None,
    form: PlanFormat = option(
        "--format", "Print text, Markdown, or one JSON object.", default=PlanFormat.TEXT
    ),
) -> response.Response:
    planned = plan_sweeps(workspace, names or (), base=base, month=month)
    review_problems = (problem for review in planned.reviews for problem in review.problems)
    problems = tuple(sorted((*planned.problems, *review_problems)))
    code = response.EXIT_PROBLEMS * response.has_errors(problems)
    if form is PlanFormat.JSON:
        data = {
            "base": planned.base,
            "month": planned.month,
            "currency": planned.currency or None,
            "sweeps": [review_as_data(review) for review in planned.reviews],
            "unchanged": planned.unchanged,
        }
        return response.Response(data, problems=problems, exit_code=code)
    text = (plan_comment(planned),) if form is PlanFormat.MARKDOWN else plan_text(planned)
    return response.Response({}, text, problems, code)


MOST_POINTS = 2048
"""Maximum number of points: the measure compares every pair, which takes 0.1 s for this many."""


def plan_sweeps(
    workspace: Workspace, names: Iterable[str] = (), *, base: str | None = None, month: str | None = None
) -> Planned:
    """Review sweeps before they cost anything; without names, the sweeps that a merge would change."""
    selected = tuple(dict.fromkeys(names))
    specs, problems = explore(map(workspace.parse, workspace.spec_paths(selected)))
    names = [parsed.sweep.name for parsed, _ in specs]
    stored = stored_batches(workspace.repository, workspace.settings.git.branch, base, names)
    context = _PlanContext(workspace, stored, costs.month_of(workspace.repository, stored.commit, month))
    reviews = [context.review(parsed, expansion) for parsed, expansion in specs]
    settled = () if selected else tuple(review.sweep.name for review in reviews if not review.is_change)
    news = tuple(review for review in reviews if selected or review.is_change)
    currency = workspace.settings.teams.currency
    return Planned(stored.commit, news, settled, tuple(sorted(problems)), currency, context.month)


@dataclass(frozen=True)
class _PlanContext:
    workspace: Workspace
    stored: StoredBatches
    month: str
    trees: dict[Code, str | None] = field(default_factory=dict)
    """Code tree of HEAD by the code without a tree; looked up once."""

    @cached_property
    def timing(self) -> costs.Timing:
        stored, fleet = self.stored, self.workspace.settings.fleet
        return costs.Timing(self.workspace.repository, stored.results, stored.merged, fleet)

    @cached_property
    def specs(self) -> Mapping[str, bytes]:
        """The folder of specs at the base."""
        return self.workspace.repository.read(self.stored.commit, SPECS)

    @cached_property
    def settings(self) -> Settings:
        """The settings at the base commit; the current ones if those cannot be read."""
        settings = at_commit.read_settings(self.workspace.repository, self.stored.commit)
        return settings if isinstance(settings, Settings) else self.workspace.settings

    def review(self, parsed: ParsedSpec, expansion: Expansion) -> Review:
        sweep, repository = parsed.sweep, self.workspace.repository
        merged = self.stored.merged_of.get(sweep.name, ())
        program, unlocked = self.program(sweep)
        trials = all_trials(sweep, expansion.configurations, program.digest)
        results = self.stored.results_of.get(sweep.name, self.stored.commit)
        retried = spec_change.retried_trials(repository, sweep, merged, results)
        active, archived = (
            {trial.digest for batch in merged if batch.is_active is state for trial in batch.trials}
            for state in (True, False)
        )
        counts = count_trials(trials, active=active, archived=archived - retried)
        listed = active | archived
        new = tuple(trial for trial in trials if trial.digest not in listed or trial.digest in retried)
        bounds = remaining_bounds(sweep, merged, program, expansion) if sweep.rounds else None
        if bounds is not None:  # trials of further rounds are new
            running = {row.trial for batch in merged if batch.is_active for row in batch.rows}
            every = {row.trial for batch in merged for row in batch.rows}
            counts = TrialCounts(bounds.trials or 0, len(running), len(every) - len(running))
        problems = [
            *parsed.warnings,
            *expansion.warnings,
            *method_warnings(parsed, sweep.search),
            *(() if sweep.rounds else spec_change.respelled_values(sweep, trials, merged, retried)),
            *spec_change.renamed_by_hand(self.workspace.root, sweep, expansion, self.stored.merged),
        ]
        if counts.new:
            specs, controller = self.workspace.spec_reader, self.workspace.settings.platform.controller
            problems += spec_change.spec_change_problems(specs, controller, parsed, merged, program)
            problems += (
                programs.missing_scripts_here(repository, parsed)  # no code is locked
                if unlocked
                else programs.missing_scripts(repository, parsed, program)
            )
        design = _design_review(sweep, expansion)
        outdated = () if unlocked else self.outdated(sweep, program)
        return Review(
            sweep,
            trials,
            counts,
            design,
            coverage(sweep, expansion.configurations),
            self.difference(sweep, trials, program),
            tuple(sorted(problems)),
            outdated,
            () if unlocked else tuple(self.code_changes(program, merged, outdated)),
            unlocked,
            self.forecast(sweep, [trial.assignment for trial in new], program, bounds),
            self.balances(sweep, counts.new if bounds else len(new)),
            (
                *(() if unlocked else self.proposals(sweep, expansion, new, program)),
                *self.notes(sweep, merged, trials, design),
            )
            if counts.new
            else (),
            next(
                (batch.name for batch in batches.of_sweep(self.stored.added, sweep.name) if batch.is_active),
                None,
            ),
            bounds,
            self.timing.next_cluster(sweep),
            None if unlocked or not counts.new else self.disk(sweep, program),
        )

    def disk(self, sweep: Sweep, program: Program) -> PodDisk:
        """Return how much the pods of its next batch may write on their nodes."""
        batch = Batch(sweep, program, ())
        code, settings = program.code.disk, self.workspace.settings
        disk = pod.disk(batch, settings.trials.dataset(program.data), settings.results)
        return PodDisk(disk, sweep.run.scratch_bytes(code), code)

    def proposals(
        self, sweep: Sweep, expansion: Expansion, new: Sequence[Trial], program: Program
    ) -> Iterator[Note]:
        """Yield changes of the configuration file, and spec changes that would save time or pods."""
        if changes := programs.config_changes(sweep, program):
            yield Note("config", changes)
        settings = self.workspace.settings
        follows = (
            settings.git.next is not NextRoundMode.REVIEW or settings.platform.controller is Controller.NONE
        )
        if follows and not self.stored.merged_of.get(sweep.name, ()):
            rounds = propose_rounds(sweep, expansion.configurations, program, self.timing)
            yield from () if rounds is None else (Note("rounds", rounds),)
        if not settings.results.store.facts.against_packs:
            planned = [trial.assignment for trial in new]
            size = None if sweep.rounds is None else sweep.rounds.size * sweep.replicates
            trials = planned if size is None else (None,) * size
            pack = propose_pack(sweep, trials, program, self.timing)
            yield from () if pack is None else (Note("pack", pack),)

    def notes(
        self,
        sweep: Sweep,
        merged: Sequence[StoredBatch],
        trials: Sequence[Trial],
        design: DesignReview,
    ) -> tuple[Note, ...]:
        """Return notes on the trials and the design that a sweep requests."""
        settings, repository = self.workspace.settings, self.workspace.repository
        dataset = settings.trials.dataset_named(sweep.run.data)
        return notes(
            sweep,
            trials,
            design,
            best=self.best_recorded(sweep, merged),
            examples=None if dataset is None else dataset.examples,
            # Rounds read committed files; those of HEAD are the ones that a merge brings.
            foreign=foreign_labels(repository, repository.commit("HEAD"), sweep),
            keeps_files=settings.results.store.facts.keeps_files,
        )

    def best_recorded(self, sweep: Sweep, merged: Sequence[StoredBatch]) -> BestTrial | None:
        """Return the best recorded trial at the base commit; None if the summary cannot be read."""
        path = f"{results_folder(sweep.name)}/{SUMMARY_FILE}"
        commit = self.stored.results_of.get(sweep.name, self.stored.commit)
        content = self.workspace.repository.read(commit, path).get(path)
        try:
            rows = () if content is None else summary_csv.read(content.decode()).rows
        except ValueError:
            return None
        eligible = catalog.eligible_rows(rows, batches.readable(merged))
        best = catalog.rank_rows(eligible, sweep.metric.name, sweep.metric.goal)
        return next(((row.trial, row.assignment) for row in best), None)

    def balances(self, sweep: Sweep, new: int) -> tuple[Balance, ...]:
        """Compare the upper bound of new trials with the budgets that the sweep counts towards."""
        budgets = {
            team: budget
            for team, budget in self.workspace.settings.teams.budgets.items()
            if counts_towards(budget, sweep.name)
        }
        if not budgets:
            return ()
        requested = [reservation(sweep.name, sweep.run, sweep.pool, new)]
        used, reserved = self.ledger.used, self.ledger.reserved
        return balances(budgets, used=used, reserved=reserved, requested=requested)

    @cached_property
    def ledger(self) -> costs.MonthLedger:
        """The month at the commit with the results."""
        specs, stored = self.workspace.spec_reader, self.stored
        return costs.month_ledger(specs, stored.results, self.month, merged=stored.merged)

    def forecast(
        self,
        sweep: Sweep,
        new: Sequence[Configuration | None],
        program: Program,
        bounds: RoundBounds | None,
    ) -> Forecast | None:
        """Return the forecast of new trials from the records at the base commit: completion time and cost.

        For a sweep with rounds these are the trials of its further rounds, in a search with unknown values: one
        round after the other, or, if rounds overlap, each trial as soon as another one ends.
        """
        rounds, run = 1, sweep.run
        if bounds is not None and bounds.trials and bounds.rounds:
            new = new[: bounds.trials] if sweep.search is None else (None,) * bounds.trials
            if bounds.ahead > 1:
                run = replace(run, parallelism=bounds.trials_at_once(run.parallelism))
            else:
                rounds = bounds.rounds
        if not new:
            return None
        history = self.timing.past(program, sweep.name)
        workload = PlannedTrials(run, new, sweep.pool, history, rounds)
        return forecast(workload, self.timing.ahead(sweep), seed=len(new))

    def program(self, sweep: Sweep) -> tuple[Program, str | None]:
        """Return the program that `sweep generate` would lock, or a substitute and why it could not."""
        stored, name = self.stored, sweep.name
        every = (*stored.merged_of.get(name, ()), *stored.present_of.get(name, ()))
        newest = batches.newest_of_all(every)
        try:
            locked = newest.lock.program if newest else None
            return programs.locked_program(self.workspace, sweep, locked), None
        except RepositoryError as error:
            return programs.requested_program(self.workspace.settings.trials, sweep), str(error)

    def outdated(self, sweep: Sweep, program: Program) -> tuple[OutdatedPart, ...]:
        """Compare the program with the one that `sweep generate --update` would lock."""
        code, repository = programs.requested_code(sweep), self.workspace.repository
        if code not in self.trees:
            head = repository.commit("HEAD")
            self.trees[code] = programs.code_tree_at(repository, head, sweep) if head else None
        trials, tree = self.workspace.settings.trials, self.trees[code] or ""
        return outdated_parts(program, programs.requested_program(trials, sweep, tree=tree))

    def code_changes(
        self, program: Program, merged: Sequence[StoredBatch], outdated: Sequence[OutdatedPart]
    ) -> Iterator[CodeChange]:
        """Compare the code of new trials with that of the last merged batch, and with that of the last commit."""
        code, last = program.code, batches.newest_of_all(merged)
        former = last.lock.program.code if last else None
        repository = self.workspace.repository
        if last and former and former.path == code.path and former.tree != code.tree:
            yield CodeChange(last.name, programs.file_changes(repository, former, code))
        for part in outdated:
            if part.part == "code" and part.current:
                current = replace(code, tree=part.current)
                yield CodeChange(None, programs.file_changes(repository, code, current))

    def difference(
        self, sweep: Sweep, trials: tuple[Trial, ...], program: Program
    ) -> Difference | UnreadableSpec:
        """Compare the search space with that of the spec at the base, under one program."""
        if sweep.path in self.specs:
            return self.compared(sweep.path, sweep, trials, program)
        candidates = (self.compared(path, sweep, trials, program) for path in self.vanished)
        differences = (each for each in candidates if isinstance(each, Difference))
        renamed = [each for each in differences if each.unchanged]
        nothing = difference(None, (), trials)
        return max(renamed, key=lambda one: (one.unchanged, -len(one.removed)), default=nothing)

    @cached_property
    def vanished(self) -> tuple[str, ...]:
        """Specs of the base commit that the work tree lacks, of which one may have been renamed."""
        kept = {self.workspace.display_path(path) for path in self.workspace.spec_paths()}
        return tuple(path for path in sorted(self.specs) if path.endswith(".yaml") and path not in kept)

    def compared(
        self, path: str, sweep: Sweep, trials: tuple[Trial, ...], program: Program
    ) -> Difference | UnreadableSpec:
        parsed = at_commit.SpecReader(self.workspace.repository, self.settings).spec(self.stored.commit, path)
        if not isinstance(parsed, ParsedSpec):
            return UnreadableSpec(path, parsed)
        former = parsed.sweep
        if former.digest == sweep.digest:
            return Difference(path, (), (), len(trials), is_same_text=True)
        expansion = search.explore(former, parsed.source)
        if not isinstance(expansion, Expansion):
            return UnreadableSpec(path, expansion)
        return difference(path, all_trials(former, expansion.configurations, program.digest), trials)


def _design_review(sweep: Sweep, expansion: Expansion) -> DesignReview:
    design, count = sweep.design, expansion.count
    constraints = zip(design.space.constraints, count.rejections, count.unevaluated, strict=False)
    return DesignReview(
        str(design.method),
        count.candidates,
        count.rejected,
        count.duplicates,
        count.kept,
        tuple(Rejection(each.text, rejected, unasked) for each, rejected, unasked in constraints),
        _discrepancy(design, count.rejected, expansion.configurations),
    )


def _discrepancy(design: Design, rejected: int, kept: Sequence[Configuration]) -> Discrepancy | None:
    """Return the discrepancy of quasi-random points. For constrained spaces there is no reference value."""
    if not isinstance(design, RandomSearch) or not design.method.is_even or rejected:
        return None
    # Each prefix of a sequence is evenly distributed; of a Latin hypercube only all points are.
    if design.method.has_fixed_count and len(kept) > MOST_POINTS:
        return None
    continuous = (each for each in design.space.parameters if each.domain.is_continuous)
    space = SearchSpace(tuple(continuous))
    points = unit_points(space, kept[:MOST_POINTS])
    value = discrepancy(points)
    return None if value is None else Discrepancy(len(points), len(points[0]), value)
