"""What tests of the collector demand of batches: that they have trained, that they are recorded rightly."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sweepledger.formats.batch_json import NOT_ARCHIVED
from tests.cluster.children import until
from tests.cluster.forge import Forge
from tests.e2e.controllers import APPLICATION, Controller
from tests.e2e.team import PATIENCE, REPOSITORY, Batch, Team, has_ended


def trained(
    team: Team, scores: Mapping[str, Sequence[float]], *, packed: Collection[str] = ()
) -> tuple[Batch, ...]:
    """Merge sweeps, a trial for each score, and let them run to their end; the trials of packed ones share a pod."""
    for name, values in scores.items():
        count = len(values)
        pack: dict[str, Any] = {
            "pack": {"trials": count, "at_once": count},
            "parallelism": count,
            "shape": "indexed",
        }
        team.write_spec(name, parameters={"x": values}, **(pack if name in packed else {}))
    batches = team.merge_specs(*scores)
    until_trained(team, *batches)
    return batches


def until_trained(team: Team, *batches: Batch) -> None:
    def have_ended() -> bool:
        jobs = [team.jobs(batch) for batch in batches]
        return all(jobs) and all(has_ended(job) for documents in jobs for job in documents)

    names = ", ".join(batch.name for batch in batches)
    until(f"trained: {names}", have_ended, seconds=PATIENCE, pause=0.5)


@contextmanager
def out_of_sight(results: Path, *batches: Batch) -> Iterator[None]:
    """Let the results volume not show what trials of some batches left, as a slow export does for a while."""
    for batch in batches:
        (results / batch.name).rename(results / f"not-yet-{batch.name}")
    try:
        yield
    finally:
        for batch in batches:
            (results / f"not-yet-{batch.name}").rename(results / batch.name)


def apply_again(team: Team, controller: Controller, batch: Batch) -> None:
    """Have the controller make anew what was deleted of a batch: Flux at a look, Argo CD when told to."""
    if team.controller == "argocd":
        where = ("--namespace=argocd", "--type=merge", "--patch", '{"operation": {"sync": {}}}')
        team.server.kubectl("patch", APPLICATION, batch.name, *where)
    controller.look()
    until(f"{batch.name} is made anew", lambda: team.jobs(batch), seconds=PATIENCE, pause=0.5)


def is_recorded_once(team: Team, batch: Batch, *scores: float) -> None:
    """Demand one results commit that says what the trials said, and moves the batch as it was."""
    team.pull()
    rows = team.summary(batch.sweep)
    assert [(row["status"], float(row["metrics.score"])) for row in rows] == [
        ("ok", score) for score in scores
    ]
    assert {record["index"] for record in team.records(batch)} == set(range(len(scores)))
    assert len(team.results_commits(batch)) == 1
    recorded = team.git("log", "-1", "--format=%H", "--", f"results/{batch.sweep}").strip()
    was = team.git("ls-tree", f"{recorded}^:overlays/active/{batch.name}").splitlines()
    kept = [line for line in was if line.partition("\t")[2] not in NOT_ARCHIVED]
    assert len(kept) == len(was) - len(NOT_ARCHIVED)
    assert team.git("ls-tree", f"HEAD:overlays/archive/{batch.name}").splitlines() == kept
    assert not batch.folder.exists()
    assert forced(team.forge) == []


def forced(forge: Forge) -> list[str]:
    """Name the moves of branches that lost commits, or all of them: by anybody, since the server began."""
    moves = {
        (update.before, update.after)
        for request in forge.requests()
        if request.repository == REPOSITORY
        for update in request.updates
        if update.ref == "refs/heads/main"
    }
    return [
        f"{before}..{after}"
        for before, after in sorted(moves)
        if set(before) != {"0"} and _lost(forge, before, after)
    ]


def _lost(forge: Forge, before: str, after: str) -> bool:
    return set(after) == {"0"} or bool(
        forge.git(REPOSITORY, "rev-list", "--max-count=1", before, f"^{after}")
    )
