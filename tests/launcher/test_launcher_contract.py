"""The launcher's own contract broken: one clear line, exit 43 or 74, and nothing started."""

import json
import marshal
import py_compile
import shutil
import subprocess
from importlib.util import cache_from_source
from pathlib import Path

import pytest
import yaml

from tests.launcher.folders import FOLDER, LAUNCHER, REPORT, TRIALS, TrialFolder, ended, launch, shell


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        *(
            ({f"SWEEP_{name}": ""}, f"the environment variable SWEEP_{name} must be set")
            for name in ("LAUNCH", "TABLE", "RESULTS")
        ),
        ({"SWEEP_INDEX": ""}, "the environment variable JOB_COMPLETION_INDEX must be set"),
        *(
            ({"SWEEP_INDEX": index}, f"the index must be a whole number, got '{index}'")
            for index in ("x", "-1", "1234567890")
        ),
        *(
            ({"SWEEP_INDEX": index}, f"index {index} is beyond the table, which has 2 rows")
            for index in ("2", "123456789")
        ),
        ({"SWEEP_LAUNCH": "none"}, "launch.json cannot be read: [Errno 2] No such file or directory: 'none'"),
        (
            {"SWEEP_TABLE": "none"},
            "the table cannot be read: [Errno 2] No such file or directory: 'none/hyperparams.csv'",
        ),
        *(
            (
                {"SWEEP_POD_UID": uid},
                f"SWEEP_POD_UID must be letters, digits, dots, underscores and hyphens, got '{uid}'",
            )
            for uid in ("../x", "x" * 129)
        ),
    ],
)
def test_a_broken_contract_is_43(variables: dict[str, str], message: str, trial_folder: TrialFolder) -> None:
    (trial_folder.root / "termination-log").write_text("x" * 5000)
    trial_folder.command = shell(f"touch $HERE/began; {REPORT}")

    run = trial_folder.run(**variables)

    assert run.code == 43
    assert run.err == f"launch.py: {message}\n"
    assert (trial_folder.root / "termination-log").read_text() == f"{message}\n"
    assert not (trial_folder.root / "began").exists()
    assert trial_folder.records() == {}


def test_a_table_whose_bytes_changed_is_refused_with_both_digests(trial_folder: TrialFolder) -> None:
    shard = {**trial_folder.launch_json()["shards"][0], "digest": f"sha256:{'0' * 64}"}
    digest = trial_folder.launch_json()["shards"][0]["digest"]
    trial_folder.changes = {"shards": [shard]}

    run = trial_folder.run()

    assert (run.code, run.said) == (
        43,
        [f"hyperparams.csv must have the digest sha256:{'0' * 64}, got {digest}"],
    )


def test_files_behind_links_are_read_as_kubernetes_mounts_them(trial_folder: TrialFolder) -> None:
    trial_folder.write()
    mounted, longest = trial_folder.root / "mounted", "x" * 128
    mounted.mkdir()
    (mounted / "hyperparams.csv").symlink_to(trial_folder.root / "table" / "hyperparams.csv")
    (mounted / "launch.json").symlink_to(trial_folder.root / "launch.json")

    record = trial_folder.try_once(
        SWEEP_LAUNCH=str(mounted / "launch.json"), SWEEP_TABLE=str(mounted), SWEEP_POD_UID=longest
    )

    assert (record["status"], record["uid"]) == ("ok", longest)


@pytest.mark.parametrize(("own", "kubernetes", "index"), [("1", "0", 1), ("", "1", 1), ("00", "1", 0)])
def test_the_own_index_comes_first(own: str, kubernetes: str, index: int, trial_folder: TrialFolder) -> None:
    record = trial_folder.try_once(SWEEP_INDEX=own, JOB_COMPLETION_INDEX=kubernetes)

    assert (record["index"], record["trial"]) == (index, TRIALS[index])


def test_without_a_scratch_folder_the_trial_is_recorded_as_a_bad_sweep(trial_folder: TrialFolder) -> None:
    record = trial_folder.try_once(SWEEP_SCRATCH="")

    assert (record["status"], record["reason"], record["exit"]) == ("failed", "bad-sweep", 43)
    assert record["details"] == {"error": "the environment variable SWEEP_SCRATCH must be set"}


@pytest.mark.parametrize("variable", ["SWEEP_RESULTS", "SWEEP_SCRATCH"])
def test_a_folder_that_cannot_be_used_fails_as_storage(variable: str, trial_folder: TrialFolder) -> None:
    (trial_folder.root / "file").touch()
    trial_folder.command = shell(f"touch $HERE/began; {REPORT}")

    run = trial_folder.run(**{variable: str(trial_folder.root / "file" / "x")})

    assert run.code == 74
    (line,) = run.said
    assert line.startswith("results volume, scratch folder or node failed: [Errno 20] Not a directory: ")
    assert not (trial_folder.root / "began").exists()


def test_a_lock_that_is_a_link_is_not_followed(trial_folder: TrialFolder) -> None:
    trial_folder.results.mkdir(parents=True)
    (trial_folder.results / ".lock").symlink_to(trial_folder.root / "elsewhere")

    assert trial_folder.run().code == 74
    assert not (trial_folder.root / "elsewhere").exists()


def test_a_node_that_runs_out_of_files_is_not_the_sweeps_fault(trial_folder: TrialFolder) -> None:
    trial_folder.write()

    run = subprocess.run(
        ["sh", "-c", 'ulimit -n 10; exec "$@"', "sh", trial_folder.interpreter, str(LAUNCHER)],
        env=trial_folder.variables({}),
        cwd=trial_folder.code,
        capture_output=True,
        check=False,
    )

    assert run.returncode == 74
    assert b"Too many open files" in run.stderr
    assert run.stderr.count(b"\n") == 1
    assert trial_folder.records() == {}


def test_a_fault_of_the_launcher_is_one_line_too(trial_folder: TrialFolder) -> None:
    trial_folder.columns = [("x", "json")]
    trial_folder.rows = [f'{TRIALS[0]},"{"[" * 100_000}"']

    run = trial_folder.run()

    assert run.code == 70
    (line,) = run.said
    assert line.startswith("this is a fault of the launcher, please report it: RecursionError: ")


def test_a_message_is_one_line_whatever_it_holds(capfd: pytest.CaptureFixture[str]) -> None:
    launch.say("a\nb\x1b[1mc\u2028größe \ud800  two")
    launch.say("x" * 5000)

    assert capfd.readouterr().err == f"launch.py: a b [1mc größe    two\nlaunch.py: {'x' * 2000}\n"


def test_an_error_in_the_record_is_cut(trial_folder: TrialFolder) -> None:
    trial_folder.command = ["sh", [{"macro": "x" * 5000}]]

    assert len(trial_folder.try_once()["details"]["error"]) == 1000


def test_the_launcher_stands_alone() -> None:
    texts = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.py")}
    (made,) = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())["configMapGenerator"]

    assert {path.name for path in FOLDER.iterdir() if path.is_file()} == {
        "kustomization.yaml",
        "record.schema.json",
        *texts,
    }
    assert made["files"] == sorted(texts)
    assert not any("generator" in text for text in texts.values())
    # Next to launch.json and pack.py in one ConfigMap, which a client-side apply copies into an annotation of 256 KiB.
    assert len(json.dumps(texts)) < 216 * 1024


def test_no_compiled_file_beside_a_part_is_executed(trial_folder: TrialFolder) -> None:
    folder = trial_folder.root / "launcher"
    (folder / "__pycache__").mkdir(parents=True)
    part = Path(shutil.copy(FOLDER / "launch_json.py", folder))
    compiled = Path(py_compile.compile(str(part), str(cache_from_source(str(part))), doraise=True) or "")
    head = compiled.read_bytes()[:16]  # the time and the size of the part
    compiled.write_bytes(head + marshal.dumps(compile("raise SystemExit(9)", "launch_json.py", "exec")))

    run = ended(trial_folder.start_copied("launch.py"))

    assert run.code == 0, run.err
