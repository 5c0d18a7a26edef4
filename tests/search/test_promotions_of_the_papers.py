"""ASHA, halving, Hyperband and PBT on recorded learning curves, beside the pseudocode of their papers."""

import heapq
import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from sweepledger.search.adaptive import Observation, Round, SearchEnd, Suggestion
from sweepledger.search.adaptive.rounds import next_round
from sweepledger.structs.record import Status
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import canonical_json
from tests.search.searches import a_search, an_observation, recorded

GRIDS = Path(__file__).parent.parent.parent / "benchmarks/data"
EPOCHS, ETA = 27, 3
RUNGS = (1, 3, 9, 27)

Key = str
"""A configuration without its epochs."""


@dataclass(frozen=True)
class Curves:
    """The test errors of recorded trainings, by configuration and epoch."""

    names: tuple[str, ...]
    errors: Mapping[Key, Sequence[float]]

    @classmethod
    def read(cls, name: str) -> "Curves":
        document = json.loads((GRIDS / f"{name}.json").read_text())
        names = tuple(document["parameters"])
        return cls(
            names,
            {
                key(dict(zip(names, values, strict=True))): [1 - accuracy for accuracy in curve]
                for values, curve in document["trials"]
            },
        )

    def parameters(self) -> dict[str, Any]:
        values = [json.loads(configuration) for configuration in self.errors]
        return {name: {"values": sorted({one[name] for one in values})} for name in self.names}

    def error(self, configuration: Mapping[str, Any]) -> float:
        return self.errors[key(configuration)][int(configuration["epochs"]) - 1]


def key(configuration: Mapping[str, Any]) -> Key:
    return canonical_json({name: value for name, value in configuration.items() if name != "epochs"})


def a_climb(curves: Curves, method: str, **rounds: int) -> Sweep:
    return a_search(
        method=method,
        rounds=rounds,
        parameters=curves.parameters(),
        resource={"parameter": "epochs", "min": 1, "max": EPOCHS, "eta": ETA},
    )


@dataclass
class Asha:
    """Algorithm 2 of Li et al. (2020), with s = 0: `rungs[k]` holds the losses of the jobs that completed there."""

    rungs: list[dict[Key, float]] = field(default_factory=lambda: [{} for _ in RUNGS])
    promoted: list[set[Key]] = field(default_factory=lambda: [set() for _ in RUNGS])

    def get_job(self) -> tuple[Key, int] | None:
        """Return a promotable configuration and its next rung; None: draw a random configuration."""
        for rung in range(len(RUNGS) - 2, -1, -1):
            losses = self.rungs[rung]
            candidates = sorted(losses, key=lambda one: losses[one])[: len(losses) // ETA]
            promotable = [one for one in candidates if one not in self.promoted[rung]]
            if promotable:
                self.promoted[rung].add(promotable[0])
                return promotable[0], rung + 1
        return None


@pytest.mark.parametrize("grid", ["mnist", "fashion-mnist"])
@pytest.mark.parametrize("workers", [1, 5])
def test_asha_promotes_what_the_paper_promotes_as_soon_as_it_does(grid: str, workers: int) -> None:
    curves = Curves.read(grid)
    sweep = a_climb(curves, "asha", size=1, ahead=workers, max=999)
    paper, dice = Asha(), random.Random(workers)  # noqa: S311 - no secret
    trials = list[Observation]()
    running: list[tuple[float, int, Observation]] = []
    now, promotions = 0.0, 0

    for number in range(1, 81):
        if len(running) == workers:
            now, _, ended = heapq.heappop(running)
            trials.append(ended)
            paper.rungs[RUNGS.index(int(str(ended.configuration["epochs"])))][key(ended.configuration)] = (
                ended.values or (math.inf,)
            )[0]
        pending = [without_a_result(one) for _, _, one in running]

        result = next_round(sweep, trials, number=number, pending=pending)

        assert isinstance(result, Round)
        (suggestion,) = result.suggestions
        job = paper.get_job()
        promotions += job is not None
        wanted = (key(suggestion.configuration), 0) if job is None else job
        asked = (key(suggestion.configuration), RUNGS.index(int(str(suggestion.configuration["epochs"]))))
        assert asked == wanted
        assert (suggestion.parent is None) is (job is None)
        # Trials last as long as they train, some of them much longer.
        seconds = int(str(suggestion.configuration["epochs"])) * dice.lognormvariate(0, 1)
        (observation,) = recorded(result, unique(curves))
        heapq.heappush(running, (now + seconds, number, observation))
    assert promotions > 20


def without_a_result(trial: Observation) -> Observation:
    return an_observation(
        trial.configuration, None, status=Status.MISSING, round=trial.round, parent=trial.parent
    )


def unique(curves: Curves) -> Callable[[Mapping[str, Any]], float]:
    """Score configurations so that none are equal: the papers do not say which of two equal ones is better."""
    order = {configuration: at for at, configuration in enumerate(sorted(curves.errors))}
    return lambda one: curves.error(one) + 1e-9 * order[key(one)]


def halved(configurations: Sequence[Key], first: int, losses: Callable[[Key, int], float]) -> list[list[Key]]:
    """Successive halving, algorithm 1 of Li et al. (2020): the configurations of each rung from `first` on."""
    rungs = [list(configurations)]
    for resource in RUNGS[first:-1]:
        survivors = max(1, len(rungs[-1]) // ETA)
        rungs.append(sorted(rungs[-1], key=lambda one, at=resource: losses(one, at))[:survivors])  # type: ignore[misc]
    return rungs


@pytest.mark.parametrize("grid", ["mnist", "fashion-mnist"])
@pytest.mark.parametrize("method", ["halving", "hyperband"])
def test_halving_and_hyperband_promote_what_their_papers_promote(grid: str, method: str) -> None:
    curves = Curves.read(grid)
    sweep, score = a_climb(curves, method, size=27), unique(curves)
    trials = list[Observation]()
    for number in range(1, len(RUNGS) + 1):
        proposal = next_round(sweep, trials, number=number)
        assert isinstance(proposal, Round)
        trials += recorded(proposal, score)

    asked = {(key(trial.configuration), trial.configuration["epochs"]) for trial in trials}
    wanted = set()
    for bracket in range(len(RUNGS) if method == "hyperband" else 1):
        # Hyperband (Li et al., 2018): bracket s_max - `bracket` starts n = ceil(s_max + 1) / (s + 1) * eta^s.
        steps = len(RUNGS) - 1 - bracket
        count = math.ceil(len(RUNGS) / (steps + 1) * ETA**steps)
        first = [
            key(trial.configuration)
            for trial in trials
            if trial.round == 1 and trial.configuration["epochs"] == RUNGS[bracket]
        ]
        assert len(first) == count
        rungs = halved(first, bracket, lambda one, at: score({**json.loads(one), "epochs": at}))
        wanted |= {(one, RUNGS[bracket + at]) for at, rung in enumerate(rungs) for one in rung}
    assert asked == wanted


@dataclass(frozen=True)
class Pbt:
    """Truncation selection of Jaderberg et al. (2017), section 4.1.1, for one generation."""

    losses: Mapping[str, float]
    """By member of the population."""

    @property
    def share(self) -> int:
        return math.ceil(len(self.losses) / 5)

    @property
    def ranked(self) -> list[str]:
        return sorted(self.losses, key=lambda member: self.losses[member])

    @property
    def exploiting(self) -> set[str]:
        """The members in the bottom 20 %, which copy weights and hyperparameters of others."""
        return {*self.ranked[-self.share :]}

    @property
    def exploited(self) -> set[str]:
        """The members in the top 20 %, of which one is drawn for each of them."""
        return {*self.ranked[: self.share]}


@pytest.mark.parametrize("grid", ["mnist", "fashion-mnist"])
@pytest.mark.parametrize("size", [5, 12])
def test_a_population_truncates_as_in_its_paper(grid: str, size: int) -> None:
    curves = Curves.read(grid)
    sweep = a_search(
        method="pbt",
        rounds={"size": size},
        parameters=curves.parameters(),
        resource={"parameter": "epochs", "min": 3, "max": EPOCHS},
    )
    score, trials, sources = unique(curves), list[Observation](), set[str]()
    for number in range(1, EPOCHS // 3 + 1):
        before = {trial.id: trial for trial in trials if trial.round == number - 1}
        proposal = next_round(sweep, trials, number=number)
        assert isinstance(proposal, Round)
        paper = Pbt({member: score(trial.configuration) for member, trial in before.items()})

        members = [one for one in proposal.suggestions if one.parent is not None]
        going_on = [one.parent for one in members if is_unchanged(one, before)]
        copies = [one.parent for one in members if not is_unchanged(one, before)]

        assert len(proposal.suggestions) == size

        assert {*going_on} == {*paper.losses} - paper.exploiting
        assert len(going_on) == len({*going_on})
        assert len(copies) == len(paper.exploiting)
        assert {*copies} <= paper.exploited
        sources |= {"best" if parent == paper.ranked[0] else "other" for parent in copies}
        trials += recorded(proposal, score)
    assert isinstance(next_round(sweep, trials, number=EPOCHS // 3 + 1), SearchEnd)
    assert sources == ({"best"} if size == 5 else {"best", "other"})


def is_unchanged(suggestion: Suggestion, before: Mapping[str, Observation]) -> bool:
    """Return whether a member trains on with its own values."""
    return key(suggestion.configuration) == key(before[suggestion.parent or ""].configuration)
