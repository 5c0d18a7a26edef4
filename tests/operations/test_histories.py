"""In random histories no recorded batch vanishes, no finished trial is requested again, and every result verifies."""

from pathlib import Path

import pytest

from tests.histories import History


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(20))
def test_a_history_loses_and_repeats_nothing(tmp_path: Path, seed: int, needs_kustomize: None) -> None:
    history = History(tmp_path, seed)

    assert history.play() == [], f"`python benchmarks/histories.py --first {seed} --seeds 1` plays it again"
