"""Print metrics for Prometheus that only git has.

These are active batches, the last results commit, and budgets. In Prometheus' text format, for the textfile
collector of node_exporter or for a Pushgateway.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sweepledger import storage
from sweepledger.cli.options import option
from sweepledger.cli.response import Response
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.repo import batches
from sweepledger.repo.git import present_since
from sweepledger.structs.kubernetes import WORKLOAD_KINDS
from sweepledger.structs.names import RESULTS
from sweepledger.verbs.cluster.budget import month_budget

PREFIX = "sweepledger_"
ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
Samples = tuple[tuple[Mapping[str, str], float], ...]
"""Labels and value of each series."""


def metrics(
    workspace: Workspace,
    to: Path | None = option("--to FILE", "Write to this file, atomically, instead of stdout."),
) -> Response:
    values = git_metrics(workspace)
    text = metrics_text(values)
    data = {
        "metrics": [
            {"name": metric.name, "labels": labels, "value": value}
            for metric in values
            for labels, value in metric.samples
        ]
    }
    if to is not None:
        storage.write_file(storage.output_path(to), text.encode())
        return Response({**data, "file": str(to)}, (f"wrote {to}",))
    return Response(data, tuple(text.splitlines()))


@dataclass(frozen=True)
class GitMetric:
    """A gauge with a value for each set of labels."""

    name: str
    help: str
    samples: Samples

    def lines(self) -> Iterator[str]:
        """Yield the metric in Prometheus' text format."""
        yield f"# HELP {PREFIX}{self.name} {self.help}"
        yield f"# TYPE {PREFIX}{self.name} gauge"
        for labels, value in self.samples:
            listed = ",".join(f'{name}="{text.translate(ESCAPES)}"' for name, text in sorted(labels.items()))
            yield f"{PREFIX}{self.name}{{{listed}}} {value:.17g}"


def git_metrics(workspace: Workspace) -> tuple[GitMetric, ...]:
    """Return the metrics of the base commit. Raises RepositoryError, UnreadableError."""
    tip = workspace.base_commit(None)
    if tip is None:
        return ()
    place = {"namespace": workspace.settings.trials.namespace}
    repository = workspace.repository
    merged = []
    for batch in batches.readable(batches.in_commit(repository, tip)):
        since = present_since(repository, tip, batch.folder) if batch.is_active else None
        if since is not None:
            kind = WORKLOAD_KINDS[batch.lock.shape].kind
            cluster = {} if batch.lock.cluster is None else {"cluster": batch.lock.cluster}
            labels = {**place, **cluster, "sweep": batch.sweep, "batch": batch.name, "kind": kind}
            merged.append((labels, since))
    recorded = present_since(repository, tip, RESULTS)
    samples: Samples = () if recorded is None else ((place, recorded),)
    text = "Time when an active batch came to the branch."
    every = [GitMetric("batch_merged_timestamp_seconds", text, tuple(merged))]
    text = "Time when the last results commit came to the branch."
    every.append(GitMetric("results_commit_timestamp_seconds", text, samples))
    if workspace.settings.teams.budgets:
        balances = month_budget(workspace).budgets
        for name, text in BUDGET_METRICS:
            samples = tuple(
                ({**place, "team": balance.team, "unit": str(balance.unit)}, getattr(balance, name))
                for balance in balances
            )
            every.append(GitMetric(f"budget_{name}", text, samples))
    return tuple(metric for metric in every if metric.samples)


BUDGET_METRICS = (
    ("limit", "Budget of a team in the month of the commit."),
    ("used", "Used of a budget: the cost of what ran."),
    ("reserved", "Reserved of a budget: the upper bound of what may still run."),
)
"""Attributes of a balance, and what each says."""


def metrics_text(values: Iterable[GitMetric]) -> str:
    """Return metrics in Prometheus' text format."""
    return "".join(f"{line}\n" for metric in values for line in metric.lines())
