from pathlib import Path

import pytest

from trainer.contract import BAD_SWEEP, Environment, TrialError, read_environment


def test_an_empty_environment_means_the_defaults(tmp_path: Path) -> None:
    assert read_environment({}, tmp_path) == Environment(
        seed=0, threads=1, data=None, result=None, checkpoints=None, parent=None
    )


@pytest.mark.parametrize(
    ("files", "threads"),
    [
        ({"cpu.max": "200000 100000\n"}, 2),
        ({"cpu.max": "150000 100000\n"}, 2),
        ({"cpu.max": "max 100000\n"}, 1),
        ({"cpu/cpu.cfs_quota_us": "400000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 4),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 1),
        ({"cpu.max": "nonsense"}, 1),
    ],
    ids=["two", "one and a half", "no limit", "version 1", "version 1, no limit", "unreadable"],
)
def test_threads_default_to_the_containers_limit(tmp_path: Path, files: dict[str, str], threads: int) -> None:
    (tmp_path / "cpu").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)

    assert read_environment({}, tmp_path).threads == threads
    assert read_environment({"OMP_NUM_THREADS": "3"}, tmp_path).threads == 3


def test_seed_threads_and_paths_come_from_the_environment() -> None:
    environment = read_environment(
        {
            "SWEEP_SEED": "7",
            "OMP_NUM_THREADS": "2",
            "SWEEP_DATA": "/a b",
            "SWEEP_RESULT": "/c.json",
            "SWEEP_CHECKPOINTS": "/d",
            "SWEEP_PARENT": "/e",
        }
    )

    assert environment == Environment(7, 2, Path("/a b"), Path("/c.json"), Path("/d"), parent=Path("/e"))


@pytest.mark.parametrize("text", ["abc", "-1", str(2**63), "1" * 5000])
def test_an_invalid_seed_is_rejected(text: str) -> None:
    with pytest.raises(TrialError, match="SWEEP_SEED: must be a whole number from 0 to") as caught:
        read_environment({"SWEEP_SEED": text})

    assert caught.value.exit_code == BAD_SWEEP
