"""What a reviewer has read in the manifest is what runs, or nothing does."""

import pytest

from tests.launcher.folders import REPORT, TRIALS, TrialFolder, launch

SCRIPT = f'echo "$@"; touch $HERE/began; {REPORT}'
COMMAND = ["sh", "-c", SCRIPT, "sh", [{"macro": "args"}], ["s=", {"macro": "seed"}]]
SHOWN = ["--", "sh", "-c", SCRIPT, "sh", "--learning_rate=0.1", "s=0"]


def test_the_command_that_is_shown_runs(trial_folder: TrialFolder) -> None:
    trial_folder.command, trial_folder.arguments = COMMAND, SHOWN

    run = trial_folder.run()

    assert (run.code, run.out) == (0, b"--learning_rate=0.1 s=0\n")


@pytest.mark.parametrize(
    ("shown", "message"),
    [
        (
            [*SHOWN[:-2], "--learning_rate=0.10", "s=0"],
            "argument 4 is shown as '--learning_rate=0.10', got '--lea",
        ),
        (SHOWN[:-1], "argument 5 is shown as nothing, got 's=0'"),
        ([*SHOWN, "more"], "argument 6 is shown as 'more', got nothing"),
        (["--"], "argument 0 is shown as nothing, got 'sh'"),
    ],
    ids=["value", "less", "more", "none"],
)
def test_another_command_never_runs(shown: list[str], message: str, trial_folder: TrialFolder) -> None:
    trial_folder.command, trial_folder.arguments = COMMAND, shown

    record = trial_folder.try_once()

    assert (record["status"], record["reason"], record["exit"]) == ("failed", "bad-sweep", 43)
    assert f"the command shown must be what the row gives: {message}" in record["details"]["error"]
    assert not (trial_folder.root / "began").exists()


def test_what_only_the_pod_knows_is_shown_by_name_and_filled_in(trial_folder: TrialFolder) -> None:
    script = f'echo "$1"; test -f "$2"; {REPORT}'
    parts = [["at ", {"macro": "envvar", "argument": "PLACE"}], [{"macro": "args_json_file"}]]
    trial_folder.command = ["sh", "-c", script, "sh", *parts]
    trial_folder.arguments = ["--", "sh", "-c", script, "sh", "at <envvar:PLACE>", "<args_json_file>"]

    run = trial_folder.run(PLACE="here")

    assert (run.code, run.out) == (0, b"at here\n")


def test_arguments_without_a_command_are_refused(trial_folder: TrialFolder) -> None:
    trial_folder.arguments = ["--help"]

    run = trial_folder.run()

    assert run.code == 43
    assert run.said == ["the arguments must be none, or -- and a command, got ['--help']"]


def test_in_every_python_the_shown_command_is_compared(any_python: str, trial_folder: TrialFolder) -> None:
    trial_folder.interpreter = any_python
    trial_folder.columns = [("lr", "number"), ("name", "string"), ("flag", "boolean"), ("sizes", "json")]
    trial_folder.rows = [f'{TRIALS[0]},1e-05,"größe ""x""",true,"[64, 128.5]"']
    macros = ("args_no_hyphens", "args_no_boolean_flags", "args_json")
    trial_folder.command = ["sh", "-c", REPORT, *([{"macro": macro}] for macro in macros)]
    values = {"lr": 1e-05, "name": 'größe "x"', "flag": True, "sizes": [64, 128.5]}
    flags = ["--lr=1e-05", '--name=größe "x"', "--flag", "--sizes=[64, 128.5]"]
    plain = [f"{name}={value}" for name, value in values.items()]
    as_json = '{"lr": 1e-05, "name": "gr\\u00f6\\u00dfe \\"x\\"", "flag": true, "sizes": [64, 128.5]}'
    trial_folder.arguments = ["--", "sh", "-c", REPORT, *plain, *flags, as_json]

    run = trial_folder.run(PYTHONIOENCODING="utf-8")

    assert run.code == 0, run.err


def test_a_long_difference_is_cut() -> None:
    with pytest.raises(launch.Refused) as refused:
        launch.compare(["x" * 5000], ["y" * 5000])

    assert len(str(refused.value)) < 1000
