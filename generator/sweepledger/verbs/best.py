"""Show a sweep's best trial: its values and metrics.

If the sweep has several metrics, the Pareto front is shown. As in `sweep results`, trials of HEAD's code and spec
count.
"""

from dataclasses import replace

from sweepledger.cli import completion
from sweepledger.cli.options import StateOption, argument
from sweepledger.cli.response import Response
from sweepledger.cli.text.style import facts_table
from sweepledger.cli.text.values import number_text, value_text
from sweepledger.errors import IdleError
from sweepledger.operations.reports.results import RankedTrials, rank_trials
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.repo.state import state_folder
from sweepledger.verbs.results import NOT_RECORDED, laptop_lines, results_text


def best(
    workspace: Workspace,
    name: str = argument("NAME", "Name or spec of the sweep.", autocompletion=completion.sweeps),
    state: StateOption = None,
) -> Response:
    ranked = rank_trials(workspace, name, state=state_folder(workspace.repository, state))
    shown = best_trials(ranked)
    if ranked.others:
        return Response(shown, results_text(shown))
    (row,) = shown.rows
    facts = {
        "trial": row.trial,
        **{metric: number_text(value) for metric, value in row.metrics.items()},
        **{parameter: value_text(value) for parameter, value in row.assignment.items()},
    }
    if not ranked.is_recorded(row):
        facts["recorded"] = NOT_RECORDED
    reference = f"{ranked.sweep}/{row.trial}"
    following = f"`sweep show {reference}` shows its origin; with `--reproduce --run`, it runs again"
    return Response(shown, (facts_table(facts.items()), following, *laptop_lines(shown)))


def best_trials(ranked: RankedTrials) -> RankedTrials:
    """Return the first of the ranked trials, or the Pareto front. Raises IdleError if none has the metric."""
    pairs = list(zip(ranked.rows, ranked.barred, strict=True))
    eligible = [row for row, why in pairs if why is None and row.metric(ranked.metric.name) is not None]
    chosen = [row for row in eligible if row.trial in ranked.front] if ranked.others else eligible[:1]
    if not chosen:
        raise IdleError(
            f"no trial of {ranked.sweep} has {ranked.metric.name} yet",
            hint=f"`sweep results {ranked.sweep}` lists its trials",
        )
    return replace(ranked, rows=tuple(chosen), barred=(None,) * len(chosen))
