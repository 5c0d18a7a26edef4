"""What the command is given: arguments, environment, files and folders, typed and exact."""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests.launcher.folders import REPORT, TRIALS, TrialFolder, launch, python, shell
from tests.launcher.test_launcher_table import ASSIGNMENTS, cell_of

DUMP = """
import json, os, sys
trial = open(os.environ["SWEEP_TRIAL"]).read()
json.dump({"argv": sys.argv[1:], "env": dict(os.environ), "trial": trial, "cwd": os.getcwd(),
           "stdin": sys.stdin.read(), "session": os.getsid(0) == os.getpid(),
           "folders": [os.path.isdir(os.environ[n]) for n in ("SWEEP_ARTIFACTS", "SWEEP_CHECKPOINTS")]},
          open(os.environ["HERE"] + "/seen.json", "w"))
"""

MIXED: dict[str, Any] = {
    "lr": 1e-05,
    "model.width": 64,
    "flag": True,
    "off": False,
    "name": "a b",
    "nothing": None,
    "list": [1, 2.0, "x"],
    "ratio": 1.0,
}
MIXED_COLUMNS = [(name, cell_of(value)[0]) for name, value in MIXED.items()]
MIXED_ROW = ",".join([TRIALS[0], *(cell_of(value)[1] for value in MIXED.values())])


def seen(folder: TrialFolder, *arguments: Any, **variables: str) -> Any:
    folder.command = [*python(DUMP), *arguments]
    folder.run(**variables)
    return json.loads((folder.root / "seen.json").read_text())


def expand(*command: Any, values: dict[str, Any] | None = None) -> Any:
    single = {
        "args_json": "{}",
        "args_json_file": "/f",
        "env": "/usr/bin/env",
        "interpreter": "py",
        "seed": "7",
    }
    return launch.expand(list(command), MIXED if values is None else values, single, {b"HOME": b"/home/\xff"})


def test_each_macro_for_arguments_writes_pairs_with_pythons_text_of_the_values() -> None:
    pairs = [
        *("lr=1e-05", "model.width=64", "flag=True", "off=False"),
        *("name=a b", "nothing=None", "list=[1, 2.0, 'x']", "ratio=1.0"),
    ]
    hyphened = [f"--{pair}" for pair in pairs]

    assert expand([{"macro": "args_no_hyphens"}]) == pairs
    assert expand([{"macro": "args"}]) == hyphened
    assert expand([{"macro": "args_no_boolean_flags"}]) == [*hyphened[:2], "--flag", *hyphened[4:]]
    assert expand([{"macro": "args_switches"}]) == [*hyphened[:2], "--flag", "--no-off", *hyphened[4:]]
    assert expand([{"macro": "args_spaced"}])[-5:] == ["1", "2.0", "x", "--ratio", "1.0"]
    assert expand([{"macro": "args_single_hyphen"}])[:2] == ["-lr", "1e-05"]


def test_a_macro_that_names_parameters_takes_them_from_the_others() -> None:
    spaced, switches = (
        {"macro": "args_spaced", "argument": "list"},
        {"macro": "args_switches", "argument": "off,flag"},
    )
    values = {name: MIXED[name] for name in ("lr", "flag", "off", "list")}

    words = expand([spaced], [{"macro": "args"}], "-", [switches], values=values)

    assert words == ["--list", "1", "2.0", "x", "--lr=1e-05", "-", "--flag", "--no-off"]


@pytest.mark.parametrize("value", [0, 1, None])
def test_only_booleans_become_flags(value: object) -> None:
    assert expand([{"macro": "args_no_boolean_flags"}], values={"x": value}) == [f"--x={value}"]


@pytest.mark.parametrize(
    ("macro", "text"),
    [
        ({"macro": "args_json"}, "{}"),
        ({"macro": "args_json_file"}, "/f"),
        ({"macro": "env"}, "/usr/bin/env"),
        ({"macro": "interpreter"}, "py"),
        ({"macro": "seed"}, "7"),
        ({"macro": "envvar", "argument": "HOME"}, "/home/\udcff"),
    ],
)
def test_the_other_macros_are_text_alone_or_among_text(macro: dict[str, str], text: str) -> None:
    assert expand([macro]) == [text]
    assert expand("x", ["--a=", macro, ":b"], "y") == ["x", f"--a={text}:b", "y"]
    assert expand([macro, macro], [{"macro": "args"}], values={}) == [text + text]


@pytest.mark.parametrize(
    "element",
    [
        *(5, None, {"macro": "nonsense"}, [{"macro": "nonsense"}], [{"argument": "HOME"}]),
        *([{"macro": ["args"]}], [["args"]], [None], ["--x=", {"macro": "args"}]),
        [{"macro": "args"}, {"macro": "args"}],
    ],
)
def test_a_part_that_is_not_known_is_refused(element: object) -> None:
    with pytest.raises(
        launch.Refused, match=r"launch\.json: command: .* is no(t a)? part that this launcher knows"
    ):
        expand("x", element)


@pytest.mark.parametrize("argument", [None, "NOWHERE"])
def test_an_environment_variable_that_is_not_set_is_refused(argument: object) -> None:
    with pytest.raises(launch.Refused, match=f"needs the environment variable {argument}, which is not set"):
        expand("x", [{"macro": "envvar", "argument": argument}])


@pytest.mark.parametrize("command", [[], [[{"macro": "args"}]]])
def test_an_empty_command_is_a_bad_command(command: list[Any]) -> None:
    with pytest.raises(launch.BadCommand, match="the command is empty"):
        expand(*command, values={})


def test_the_command_gets_every_value_in_every_form(trial_folder: TrialFolder) -> None:
    trial_folder.columns = [*MIXED_COLUMNS, ("absent", "number"), ("weights", "json")]
    trial_folder.rows = [MIXED_ROW + ',,"""text"""']
    trial_folder.changes = {"seed_base": 40, "interpreter": "python9"}
    values = {**MIXED, "weights": "text"}

    result = seen(
        trial_folder,
        [{"macro": "args"}],
        [{"macro": "args_json"}],
        [{"macro": "args_json_file"}],
        ["s", {"macro": "seed"}],
        [{"macro": "interpreter"}],
        [{"macro": "env"}],
        [{"macro": "envvar", "argument": "EXTRA"}],
        [{"macro": "envvar", "argument": "SWEEP_RESULT"}],
        EXTRA="größe",
    )

    env = result["env"]
    assert result["argv"][:9] == [f"--{name}={value}" for name, value in values.items()]
    as_json, file, *rest = result["argv"][9:]
    assert json.loads(as_json) == json.loads(result["trial"]) == values
    assert list(json.loads(as_json)) == list(values)
    assert file == env["SWEEP_TRIAL"]
    assert rest == ["s40", "python9", "/usr/bin/env", "größe", env["SWEEP_RESULT"]]
    parameters = {name: value for name, value in env.items() if name.startswith("SWEEP_PARAM_")}
    assert parameters == {
        "SWEEP_PARAM_LR": "1e-05",
        "SWEEP_PARAM_MODEL_WIDTH": "64",
        "SWEEP_PARAM_FLAG": "True",
        "SWEEP_PARAM_OFF": "False",
        "SWEEP_PARAM_NAME": "a b",
        "SWEEP_PARAM_NOTHING": "null",
        "SWEEP_PARAM_LIST": '[1, 2.0, "x"]',
        "SWEEP_PARAM_RATIO": "1.0",
        "SWEEP_PARAM_WEIGHTS": '"text"',
    }
    assert env["SWEEP_SEED"] == "40"
    assert env["EXTRA"] == "größe"


def test_the_command_gets_its_places(trial_folder: TrialFolder) -> None:
    given = {"SWEEP_INDEX": "1", "EXTRA": "x"}
    relative = {"SWEEP_RESULTS": "results/batch/0", "SWEEP_SCRATCH": "scratch", "SWEEP_CODE": "code"}

    result = seen(trial_folder, **given, **relative)

    env, scratch = result["env"], Path(result["env"]["SWEEP_TRIAL"]).parent
    assert scratch.parent == trial_folder.root / "scratch"
    assert env["SWEEP_TRIAL"] == str(scratch / "trial.json")
    assert env["SWEEP_RESULT"] == str(scratch / "result.json")
    assert env["SWEEP_ARTIFACTS"] == str(trial_folder.results / "artifacts" / "uid-1")
    assert env["SWEEP_CHECKPOINTS"] == str(trial_folder.results / "checkpoints")
    assert (env["JOB_ID"], env["SWEEP_TRIAL_ID"], env["SWEEP_SEED"]) == ("2", TRIALS[1], "0")
    assert result["folders"] == [True, True]
    assert result["cwd"] == result["env"]["PWD"] == str(scratch / "run" / "work")
    assert result["stdin"] == ""
    assert result["session"] is True
    for_launcher = {"SWEEP_CODE", "SWEEP_SCRATCH", "SWEEP_TERMINATION_LOG"}
    for name, value in trial_folder.variables(given).items():
        assert name in {*for_launcher, *relative} or env[name] == value
    assert for_launcher.isdisjoint(env)


def test_a_result_of_an_earlier_attempt_in_the_same_scratch_is_never_seen(trial_folder: TrialFolder) -> None:
    trial_folder.run()
    trial_folder.command = shell("exit 0")
    trial_folder.run(SWEEP_POD_UID="uid-2")
    (trial_folder.results / "uid-1.json").unlink()

    trial_folder.run(SWEEP_POD_UID="uid-3")

    assert trial_folder.records()["uid-3.json"]["reason"] == "metric-missing"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            ["no-such-program-anywhere"],
            "'no-such-program-anywhere' cannot be started: No such file or directory",
        ),
        (["/"], "'/' cannot be started: Permission denied"),
        (["sh", "x" * 200_000], "'sh' cannot be started: Argument list too long"),
        (["sh", "a\0b"], "'sh' cannot be started: embedded null byte"),
        (["sh", "\ud800"], "'sh' cannot be started: .*surrogates not allowed"),
        ([], "the command is empty"),
    ],
)
def test_an_unusable_command_is_bad(command: list[str], message: str, trial_folder: TrialFolder) -> None:
    trial_folder.command = command

    record = trial_folder.try_once()

    assert (record["status"], record["reason"], record["exit"]) == ("failed", "bad-command", 43)
    assert (record["seconds"], record["metrics"], record["artifacts"]) == (0, {}, [])
    assert re.fullmatch(f"the command .*{message}.*|{message}", record["details"]["error"])
    assert record["said"] == [
        f"{TRIALS[0]}: failed: bad-command: {record['details']['error']}".replace("\0", " ")
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="skipped: file names of any bytes need Linux")
def test_bytes_that_are_no_text_pass_through_from_variable_to_argument(trial_folder: TrialFolder) -> None:
    raw = b"\xff\xfe"
    trial_folder.command = [
        "sh",
        "-c",
        f'printf %s "$1" > $HERE/raw; {REPORT}',
        "sh",
        [{"macro": "envvar", "argument": "RAW"}],
    ]

    trial_folder.run(RAW=os.fsdecode(raw))

    assert (trial_folder.root / "raw").read_bytes() == raw


@pytest.mark.sampled(1)
@pytest.mark.parametrize("locale", ["C", "de_DE.ISO-8859-1"])
def test_the_locale_changes_no_value(locale: str, trial_folder: TrialFolder) -> None:
    trial_folder.columns, trial_folder.rows = [("name", "string")], [f'{TRIALS[0]},"größe 数"']
    trial_folder.command = [
        *["sh", "-c", f'printf %s "$1$SWEEP_PARAM_NAME" > $HERE/raw; {REPORT}', "sh"],
        [{"macro": "args"}],
    ]

    trial_folder.run(LC_ALL=locale, PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")

    assert (trial_folder.root / "raw").read_bytes().decode() == "--name=größe 数größe 数"


@given(assignment=ASSIGNMENTS)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_table_arrives_exactly_at_a_process(assignment: dict[str, Any], trial_folder: TrialFolder) -> None:
    # No argument and no variable of a process can hold a zero byte.
    values = {name: value for name, value in assignment.items() if "\\u0000" not in json.dumps(value)}
    trial_folder.columns = [(name, cell_of(value)[0]) for name, value in values.items()]
    trial_folder.rows = [",".join([TRIALS[0], *(cell_of(value)[1] for value in values.values())])]

    result = seen(trial_folder, [{"macro": "args"}])

    assert result["argv"] == [f"--{name}={value}" for name, value in values.items()]
    assert repr(json.loads(result["trial"])) == repr(values)
    (trial_folder.results / "uid-1.json").unlink()
