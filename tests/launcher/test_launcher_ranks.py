"""A trial of several pods: each runs the command, and the one of rank 0 alone leaves anything."""

import json

import pytest

from tests.launcher.folders import REPORT, TRIALS, TrialFolder, ended, shell

WRITES = 'echo hello; touch "$SWEEP_ARTIFACTS/model" "$SWEEP_CHECKPOINTS/shard-$SWEEP_RANK"'


def test_another_rank_needs_no_result_and_leaves_nothing_but_checkpoints(trial_folder: TrialFolder) -> None:
    trial_folder.command = shell(WRITES)

    run = trial_folder.run(SWEEP_RANK="3")

    assert (run.code, run.out) == (0, b"hello\n")
    assert run.said == [f"{TRIALS[0]}: ok"]
    left = [str(path.relative_to(trial_folder.results)) for path in trial_folder.results.rglob("*")]
    assert sorted(left) == ["checkpoints", "checkpoints/shard-3"]


@pytest.mark.parametrize(("script", "code"), [("exit 43", 43), ("kill -9 $$", 137)])
def test_another_rank_ends_so_and_records_nothing(script: str, code: int, trial_folder: TrialFolder) -> None:
    trial_folder.command = shell(script)

    assert trial_folder.run(SWEEP_RANK="1").code == code
    assert trial_folder.records() == {}


def test_another_rank_runs_past_no_timeout(trial_folder: TrialFolder) -> None:
    trial_folder.command = shell("sleep 600")
    trial_folder.changes = {"timeout_seconds": 0.1}

    assert trial_folder.run(SWEEP_RANK="1").code == 124


def test_ranks_of_one_attempt_run_side_by_side(trial_folder: TrialFolder) -> None:
    wait = 'while [ ! -e "$SWEEP_CHECKPOINTS/$OTHER" ]; do sleep 0.01; done'
    trial_folder.command = shell(f'touch "$SWEEP_CHECKPOINTS/$OWN"; {wait}; sleep 0.2; {REPORT}')

    first = trial_folder.start(SWEEP_RANK="00", OWN="0", OTHER="1")
    second = trial_folder.start(SWEEP_RANK="1", OWN="1", OTHER="0", SWEEP_POD_UID="uid-2")

    assert (ended(second).code, ended(first).code) == (0, 0)
    assert list(trial_folder.records()) == ["uid-1.json"]


@pytest.mark.parametrize(("script", "code"), [(REPORT, 0), ("exit 42", 42)])
def test_no_rank_starts_after_a_valid_result(script: str, code: int, trial_folder: TrialFolder) -> None:
    trial_folder.command = shell(script)
    trial_folder.run()
    trial_folder.command = shell("touch $HERE/began")

    run = trial_folder.run(SWEEP_RANK="1", SWEEP_POD_UID="uid-2")

    assert run.code == code
    assert "already, by attempt uid-1: nothing to do" in run.said[0]
    assert not (trial_folder.root / "began").exists()


@pytest.mark.parametrize("rank", ["-1", "1234567890"])
def test_a_rank_that_is_no_whole_number_is_refused(rank: str, trial_folder: TrialFolder) -> None:
    run = trial_folder.run(SWEEP_RANK=rank)

    assert (run.code, run.said) == (43, [f"the rank must be a whole number, got {rank!r}"])


def test_a_bad_command_of_another_rank_is_said_and_not_recorded(trial_folder: TrialFolder) -> None:
    trial_folder.command = ["no-such-program-anywhere"]

    run = trial_folder.run(SWEEP_RANK="1")

    assert run.code == 43
    assert "cannot be started" in run.said[0]
    assert trial_folder.records() == {}


def test_checkpoints_and_artifacts_may_lie_on_volumes_of_their_own(trial_folder: TrialFolder) -> None:
    volumes = {"SWEEP_CHECKPOINT_VOLUME": "checkpoints", "SWEEP_ARTIFACT_VOLUME": "artifacts"}
    paths = {name: trial_folder.root / "volumes" / folder for name, folder in volumes.items()}
    trial_folder.command = shell(f"{WRITES}; exit 7")
    variables = {name: str(path) for name, path in paths.items()}

    failed = trial_folder.try_once(**variables)

    assert [artifact["path"] for artifact in failed["artifacts"]] == ["model"]
    assert (paths["SWEEP_ARTIFACT_VOLUME"] / "artifacts/uid-1/model").exists()
    assert (paths["SWEEP_CHECKPOINT_VOLUME"] / "checkpoints/shard-").exists()
    names = {path.name for path in trial_folder.results.iterdir()}
    assert names - {"environments"} == {".lock", "uid-1.json", "uid-1.out"}

    trial_folder.command = shell(REPORT)
    trial_folder.run(**variables, SWEEP_POD_UID="uid-2")

    assert json.loads((trial_folder.results / "uid-2.json").read_bytes())["status"] == "ok"
    assert not (paths["SWEEP_CHECKPOINT_VOLUME"] / "checkpoints").exists()
    assert not (paths["SWEEP_ARTIFACT_VOLUME"] / "artifacts/uid-2").exists()
    assert (paths["SWEEP_ARTIFACT_VOLUME"] / "artifacts/uid-1/model").exists()
