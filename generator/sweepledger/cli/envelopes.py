"""The `data` of JSON envelopes, one function per type of value."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sweepledger.commands.check import CheckReport
    from sweepledger.commands.collection.results_commit import ResultsCommit
    from sweepledger.commands.generation.next_batch import Generated
    from sweepledger.commands.next_ import SearchStep
    from sweepledger.commands.plan import Planned
    from sweepledger.commands.reports.budget import MonthBudget
    from sweepledger.commands.reports.results import RankedTrials
    from sweepledger.commands.rounds.next_round import RoundBlocked, RoundDue, Step
    from sweepledger.commands.rounds.round_commit import PushedBatch
    from sweepledger.commands.scaffold.bootstrap import Bootstrapped
    from sweepledger.formats.summary_csv import SummaryRow
    from sweepledger.plan import Charge


def generated_data(generated_sweeps: "Iterable[Generated]") -> dict[str, Any]:
    """Return what `sweep generate` wrote or would write."""
    return {
        "sweeps": [
            {
                "name": generated.sweep.name,
                "trials": generated.trials,
                "known": generated.known,
                "new": generated.trials - generated.known,
                "batch": generated.batch.name if generated.batch else None,
                "written": bool(generated.batch) and not generated.is_written,
                "removed": [stored.folder for stored in generated.stale],
            }
            for generated in generated_sweeps
        ]
    }


def plan_data(planned: "Planned") -> dict[str, Any]:
    """Return the review that `sweep plan` shows."""
    from sweepledger.plan import review_as_data

    return {
        "base": planned.base,
        "month": planned.month,
        "currency": planned.currency or None,
        "sweeps": [review_as_data(review) for review in planned.reviews],
        "unchanged": list(planned.unchanged),
    }


def check_data(report: "CheckReport") -> dict[str, object]:
    """Return the report of `sweep check`."""
    from sweepledger.plan import pool_usage_as_data

    return {
        "specs": report.specs,
        "built": list(report.builds.built),
        "unchanged": list(report.builds.unchanged),
        "untracked": list(report.untracked),
        "pools": {name: pool_usage_as_data(usage) for name, usage in report.rooms},
    }


def results_commit_data(commit: "ResultsCommit") -> dict[str, Any]:
    """Return a results commit, and the next step of its search."""
    summary = commit.summary
    return {
        "sweep": summary.sweep,
        "batches": list(commit.batches),
        "commit": commit.commit,
        "corrupt": list(commit.corrupt),
        "counts": {str(status): count for status, count in summary.counts.items()},
        "best": None if summary.winner is None else {"trial": summary.winner.trial, "value": summary.best},
        # None for sweeps without a search, and if rounds are not requested automatically.
        "next": None if commit.step is None else next_step_data(commit.step),
    }


def ranked_data(ranked: "RankedTrials") -> dict[str, Any]:
    """Return the listed trials of `sweep results`."""
    return {
        "sweep": ranked.sweep,
        "sorted_by": ranked.by,
        "laptop": list(ranked.laptop),
        "head_program": ranked.head,
        "trials": [trial_data(ranked, row, why) for row, why in zip(ranked.rows, ranked.barred, strict=True)],
    }


def trial_data(ranked: "RankedTrials", row: "SummaryRow", why: str | None) -> dict[str, Any]:
    """Return one ranked trial of `sweep results`."""
    return {
        "trial": row.trial,
        "batch": row.batch,
        "index": row.index,
        "status": str(row.status),
        "reason": row.reason,
        "error": row.error,
        "configuration": dict(row.assignment),
        "metrics": dict(row.metrics),
        "seconds": row.seconds,
        "program": row.program,
        "recorded": (row.batch, row.index) not in ranked.unrecorded,
        "not_ranked": why,
        # Only for sweeps with several metrics.
        **({"front": row.trial in ranked.front and why is None} if ranked.others else {}),
    }


def budget_data(budget: "MonthBudget") -> dict[str, Any]:
    """Return a month's budgets of all teams."""
    from sweepledger.plan import balance_as_data

    return {
        "base": budget.base,
        "month": budget.month,
        "currency": budget.currency or None,
        "budgets": [balance_as_data(balance) for balance in budget.balances],
        "sweeps": [
            {
                "sweep": share.sweep,
                "teams": list(share.teams),
                "used": charge_data(share.used),
                "reserved": charge_data(share.reserved),
            }
            for share in budget.shares
        ],
        "unreadable": list(budget.unread),
        "doubtful": list(budget.doubtful),
        "reported": list(budget.reported),
    }


def charge_data(charge: "Charge") -> dict[str, float]:
    """Return GPU hours and money."""
    return {"gpu_hours": charge.gpu_hours, "money": charge.money}


def bootstrap_data(result: "Bootstrapped") -> dict[str, Any]:
    """Return what `sweep cluster bootstrap` wrote, and the remaining manual steps."""
    return {
        "written": list(result.written),
        "removed": list(result.removed),
        "kept": list(result.kept),
        "settings": list(result.changed_settings),
        "secrets": [
            {
                "cluster": cluster,
                "is_elsewhere": secret.is_elsewhere,
                "purpose": secret.purpose,
                "namespace": secret.namespace,
                "name": secret.name,
                "keys": list(secret.keys),
                "commands": list(secret.commands),
            }
            for cluster, secrets in result.secrets_by_cluster
            for secret in secrets
        ],
        "objects": [
            {
                "cluster": cluster,
                "kind": one.kind,
                "namespace": one.namespace,
                "name": one.name,
                "purpose": one.purpose,
            }
            for cluster, objects in result.required_objects
            for one in objects
        ],
        "key_pair": list(result.key_pair),
        "results_folder": list(result.results_folder),
        "ruleset": result.ruleset,
        "owners": list(result.owners),
        "gaps": list(result.gaps),
        "previous_url": result.former_url,
        "undeclared": [
            {
                "cluster": one.cluster or None,
                "kind": one.kind,
                "name": one.name,
                "namespace": one.namespace or None,
                "command": one.deletion,
            }
            for one in result.undeclared
        ],
    }


def search_data(step: "SearchStep", *, explain: bool) -> dict[str, Any]:
    """Return the next step of a search; with `explain`, also its evidence."""
    from sweepledger.commands.next_ import evidence_weights
    from sweepledger.commands.rounds.next_round import RoundBlocked

    data: dict[str, Any] = {"name": step.name, **next_step_data(step.step)}
    if data["state"] == "due":
        data["written"] = step.generated is not None and not step.is_missing
        data["commit"] = step.pushed.commit if step.pushed else None
    if not isinstance(step.step, RoundBlocked):
        data["foreign"] = [
            {
                "name": name,
                "format": foreign.format,
                "source": foreign.source,
                "digest": foreign.digest,
                "trials": len(foreign.trials),
            }
            for name, foreign in step.step.evidence.foreign.items()
        ]
    if explain and not isinstance(step.step, RoundBlocked):
        data["evidence"] = [
            {
                "trial": observation.id,
                "round": observation.round,
                "status": str(observation.status),
                "values": observation.values,
            }
            for observation in step.step.evidence.observations
        ]
        data["evidence_by_use"] = [
            {"use": part.use, "trials": part.trials, "rounds": list(part.rounds)}
            for part in evidence_weights(step.step)
        ]
    return data


def next_step_data(step: "Step | RoundBlocked") -> dict[str, Any]:
    """Return the next step of a search."""
    from sweepledger.commands.rounds.next_round import ResultsPending, RoundBlocked, RoundDue, SearchEnded

    match step:
        case RoundDue():
            return {"state": "due", **round_data(step)}
        case ResultsPending(evidence=evidence):
            return {"state": "waiting", "batches": list(evidence.pending)}
        case SearchEnded(reason=reason, text=text):
            return {"state": "over", "reason": reason, "message": text}
        case RoundBlocked(reason=reason, hint=hint):
            return {"state": "blocked", "message": reason, "hint": hint}


def pushed_round_data(pushed: "PushedBatch | RoundBlocked") -> dict[str, Any]:
    """Return the commit that added a round, or trials to repeat, or why none could."""
    from sweepledger.commands.rounds.next_round import RoundBlocked
    from sweepledger.commands.rounds.round_commit import PushedRepeat

    if isinstance(pushed, RoundBlocked):
        return {"sweep": pushed.sweep, "commit": None, **next_step_data(pushed)}
    if isinstance(pushed, PushedRepeat):
        batch = {"batch": pushed.batch.name, "trials": pushed.batch.lock.trials}
        return {"sweep": pushed.sweep, "commit": pushed.commit, "state": "repeated", **batch}
    return {"sweep": pushed.due.sweep.name, "commit": pushed.commit, **next_step_data(pushed.due)}


def round_data(due: "RoundDue") -> dict[str, Any]:
    """Return a round that is due."""
    return {
        "round": due.round.number,
        "engine": due.round.engine,
        "batch": due.batch.name,
        "trials": due.batch.lock.trials,
        "redrawn": due.round.redrawn,
        "replaced": due.round.replaced,
        "unfitted": due.round.unfitted,
    }
