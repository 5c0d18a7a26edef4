"""What sweeps cost a real control plane, Argo CD and Flux: ten thousand trials, fifty sweeps, a first push.

python -m tests.cluster.box python benchmarks/cluster.py [WHAT]... [--controller NAME]... [--format json]

The nodes are kwok's, so no trial runs: what is measured is everything else. `collector` needs no cluster.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import cluster_collect, cluster_runs  # noqa: E402
from benchmarks.cluster_meter import status_of  # noqa: E402
from benchmarks.cluster_runs import COLLECTOR_BARS, CONDITIONS, Row  # noqa: E402

RUNS: Mapping[str, Callable[[str], Iterator[Row]]] = {
    "large": cluster_runs.large,
    "shapes": cluster_runs.shapes,
    "many": cluster_runs.many,
    "first": cluster_runs.first,
    "successor": cluster_runs.successor,
}


def collector() -> Iterator[Row]:
    """Record ten thousand finished trials."""
    used = cluster_collect.collected()
    what = "`sweep cluster collect` of 10,000 finished trials"
    yield Row(what, "CPU", used.seconds, "CPU s", COLLECTOR_BARS[0])
    yield Row(what, "most memory", used.mebibytes, "MiB", COLLECTOR_BARS[1])


def rows(words: Iterable[str], controllers: Iterable[str]) -> Iterator[Row]:
    """Measure what is asked for."""
    for word in words:
        if word == "collector":
            yield from collector()
            continue
        for controller in controllers:
            yield from RUNS[word](controller)


def shown(row: Row) -> str:
    """Lay a row out."""
    value = f"{row.value:,.0f}" if row.unit in {"", "MiB", "characters"} else f"{row.value:,.2f}"
    bar = "" if row.bar is None else f"{row.bar:g}"
    return f"  {row.measure:40} {value:>10} {row.unit:10} {bar:>5}{'  MISSED' if row.is_late else ''}"


def main() -> int:
    """Measure all, or what is named; 1 where a bar is missed."""
    known = ["collector", *RUNS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", nargs="*", choices=[*known, []], help="all if nothing is named")
    parser.add_argument(
        "--controller", action="append", choices=["argocd", "flux"], help="both if none is named"
    )
    parser.add_argument("--format", choices=["text", "json"], default="text")
    chosen = parser.parse_args()
    results: list[Row] = []
    for row in rows(chosen.what or known, chosen.controller or ["flux", "argocd"]):
        if chosen.format == "text":
            if not results:
                print(CONDITIONS)
            if not results or results[-1].what != row.what:
                print(f"{row.what}", flush=True)
            print(shown(row), flush=True)
        results.append(row)
    if chosen.format == "json":
        print(json.dumps({"conditions": CONDITIONS, "rows": [asdict(row) for row in results]}, indent=1))
    return int(any(row.is_late for row in results))


if __name__ == "__main__":
    sys.exit(status_of(main))
