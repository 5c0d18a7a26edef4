"""Warm starts by `sweep run`: the same trials and records as without, from interpreters that have loaded libraries."""

import pytest

from sweepledger.commands.reports.outputs import logs
from sweepledger.repo.state import create_state
from tests.commands.test_packs import batch_of, laptop, played, program, recorded, without_places, written
from tests.repository import Sandbox

__all__ = ["laptop"]

PACK = "{trials: 7, at_once: 1}\n  warm: true"


@pytest.mark.full_suite("whole runs")
def test_warm_and_cold_trials_have_equal_records(laptop: Sandbox) -> None:
    written(laptop, "alone")
    written(laptop, "warm", PACK)

    assert len(played(laptop, "alone")) == len(played(laptop, "warm")) == 7

    alone, warm = recorded(laptop, "alone"), recorded(laptop, "warm")
    assert [*alone] == [*warm], "a warm start is no part of a trial's identity"
    for trial, records in alone.items():
        assert list(map(without_places, records)) == list(map(without_places, warm[trial]))


def test_sweep_run_starts_later_trials_with_their_libraries_loaded(laptop: Sandbox) -> None:
    program(laptop, "import sys; print('loaded:', 'wave' in sys.modules); import wave")
    written(laptop, "warm", PACK)

    played(laptop, "warm")

    state = create_state(laptop.workspace.repository)
    outputs = [
        attempt.out.splitlines()[0]
        for row in batch_of(laptop, "warm").rows
        for attempt in logs(laptop.workspace, row.trial, state=state).attempts
    ]
    assert outputs == ["loaded: False", *["loaded: True"] * 6]
