"""Disruptions: pods that the cluster ended are counted and bounded, and no trial can pretend to be one."""

import pytest

from tests.launcher.folders import REPORT, TRIALS, TrialFolder, shell

BEGAN = f"touch $HERE/began; {REPORT}"


@pytest.mark.parametrize(("text", "count"), [("", 0), ("2", 2), ("-1", 0), ("٣", 0)])
def test_a_record_has_the_counted_disruptions(text: str, count: int, trial_folder: TrialFolder) -> None:
    record = trial_folder.try_once(SWEEP_DISRUPTIONS=text, SWEEP_FAILURES="1")

    assert (record["status"], record["disruptions"], record["attempt"]) == ("ok", count, 2)


@pytest.mark.parametrize(("most", "starts"), [(3, True), (2, False)])
def test_a_disrupted_trial_starts_nothing(most: int, trial_folder: TrialFolder, *, starts: bool) -> None:
    trial_folder.changes = {"max_disruptions": most}
    trial_folder.command = shell(BEGAN)

    record = trial_folder.try_once(SWEEP_DISRUPTIONS="3")

    assert (trial_folder.root / "began").exists() == starts
    if starts:
        again = trial_folder.run(SWEEP_DISRUPTIONS="99", SWEEP_POD_UID="uid-2")
        assert again.said == [f"{TRIALS[0]}: ok already, by attempt uid-1: nothing to do"]
    else:
        assert (record["status"], record["reason"], record["exit"]) == ("failed", "disrupted", 44)
        assert (record["seconds"], record["environment"], record["metrics"]) == (0, None, {})
        assert record["details"] == {
            "error": f"the cluster ended 3 of its pods, and max_disruptions is {most}"
        }


def test_another_rank_does_not_start_either(trial_folder: TrialFolder) -> None:
    trial_folder.command = shell(BEGAN)

    run = trial_folder.run(SWEEP_RANK="1", SWEEP_DISRUPTIONS="6")

    assert (run.code, trial_folder.records()) == (44, {})
    assert not (trial_folder.root / "began").exists()


@pytest.mark.parametrize("name", ["disrupted", "oom", "exit-1", "Median", ""])
def test_a_rule_cannot_have_the_name_of_another_ending(name: str, trial_folder: TrialFolder) -> None:
    trial_folder.changes = {"stop": [{"rule": name, "goal": "maximize", "reach": 1}]}

    run = trial_folder.run()

    assert run.code == 43
    assert run.said[0].startswith("launch.json: stop: rule must be a word of its own in small letters, got ")
