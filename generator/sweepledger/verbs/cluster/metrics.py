"""Print metrics for Prometheus that only git has.

These are active batches, the last results commit, and budgets. In Prometheus' text format, for the textfile
collector of node_exporter or for a Pushgateway.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from sweepledger import storage
from sweepledger.cli.options import option
from sweepledger.cli.response import Response
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.repo import batches
from sweepledger.repo.git import present_since
from sweepledger.structs.names import RESULTS
from sweepledger.verbs.cluster.budget import month_budget

PREFIX = "sweepledger_"
ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
Samples = Iterable[tuple[Mapping[str, str], float]]
"""Labels and value of each series."""
BUDGET_METRICS = (
    ("limit", "Budget of a team in the month of the commit."),
    ("used", "Used of a budget: the cost of what ran."),
    ("reserved", "Reserved of a budget: the upper bound of what may still run."),
)
"""Attributes of a balance, and what each says."""


def metrics(
    workspace: Workspace,
    to: Path | None = option("--to FILE", "Write to this file, atomically, instead of stdout."),
) -> Response:
    lines: list[str] = []
    series: list[dict[str, Any]] = []
    for name, text, samples in _git_metrics(workspace):
        head = (f"# HELP {PREFIX}{name} {text}", f"# TYPE {PREFIX}{name} gauge")
        for number, (labels, value) in enumerate(samples):
            listed = ",".join(f'{key}="{label.translate(ESCAPES)}"' for key, label in sorted(labels.items()))
            lines += (*(head if number == 0 else ()), f"{PREFIX}{name}{{{listed}}} {value:.17g}")
            series.append({"name": name, "labels": labels, "value": value})
    if to is not None:
        storage.write_file(storage.output_path(to), "".join(f"{line}\n" for line in lines).encode())
        return Response({"metrics": series, "file": str(to)}, (f"wrote {to}",))
    return Response({"metrics": series}, tuple(lines))


def _git_metrics(workspace: Workspace) -> Iterator[tuple[str, str, Samples]]:
    """Yield the gauges of the base commit: name, help and samples. Raises RepositoryError, UnreadableError."""
    tip = workspace.base_commit(None)
    if tip is None:
        return
    place = {"namespace": workspace.settings.trials.namespace}
    repository = workspace.repository
    merged = []
    for batch in batches.readable(batches.in_commit(repository, tip)):
        since = present_since(repository, tip, batch.folder) if batch.is_active else None
        if since is not None:
            kind = batch.lock.shape.kind.kind
            cluster = {} if batch.lock.cluster is None else {"cluster": batch.lock.cluster}
            labels = {**place, **cluster, "sweep": batch.sweep, "batch": batch.name, "kind": kind}
            merged.append((labels, since))
    yield "batch_merged_timestamp_seconds", "Time when an active batch came to the branch.", merged
    recorded = present_since(repository, tip, RESULTS)
    samples = [] if recorded is None else [(place, recorded)]
    yield "results_commit_timestamp_seconds", "Time when the last results commit came to the branch.", samples
    balances = month_budget(workspace).budgets if workspace.settings.teams.budgets else ()
    owners = [{**place, "team": balance.team, "unit": str(balance.unit)} for balance in balances]
    for name, text in BUDGET_METRICS:
        yield f"budget_{name}", text, zip(owners, (getattr(each, name) for each in balances), strict=True)
