"""Rows as forks of one interpreter: the same records, output and exit codes as with one of their own."""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.launcher.folders import LAUNCHER, PATIENCE, TrialFolder
from tests.launcher.test_packs import PACK, ROWS, Packed

WARM = Path(__file__).parents[2] / "base/components/warm/v1/warm.py"

PROGRAM = """
import os, sys
os.environ["SET_BEFORE"] = "1"
import fractions, lib_of_site
from beside import local
with open("starts", "a") as file:
    file.write(f"{sys.argv[1:]} {lib_of_site.LOADED_BY == os.getpid()} {lib_of_site.SET_BEFORE}\\n")
print("value", os.environ["SWEEP_PARAM_LEARNING_RATE"], __name__, sys.argv[0], local)
print("to stderr", file=sys.stderr)
with open(os.environ["SWEEP_RESULT"], "w") as file:
    file.write('{"test_accuracy": %s}' % (float(os.environ["SWEEP_PARAM_LEARNING_RATE"]) / 10))
"""
LIBRARY = """
import os
LOADED_BY, SET_BEFORE = os.getpid(), os.environ.get("SET_BEFORE")
"""


def a_pod(folder: TrialFolder, *, warm: bool) -> Packed:
    folder.rows = [f"t0000000000{number},{number}" for number in range(ROWS)]
    pack: dict[str, Any] = {"at_once": 1, "rows": ROWS, "attempts": 1}
    folder.changes = {"pack": {**pack, "warm": True} if warm else pack}
    folder.environment = {"SWEEP_INDEX": "", "JOB_COMPLETION_INDEX": "0", "PATH": os.environ["PATH"]}
    folder.command = [folder.interpreter, "program.py", {"macro": "args"}]
    folder.write()
    program = folder.root / "launcher"
    program.mkdir(exist_ok=True)
    for path in (PACK, WARM, LAUNCHER):
        shutil.copy(path, program)
    return Packed(folder)


def write_program(folder: Path, code: str = PROGRAM) -> None:
    (folder / "program.py").write_text(code)
    (folder / "beside.py").write_text("local = 'of the program'\n")


@pytest.fixture
def warm(trial_folder: TrialFolder, tmp_path: Path) -> Packed:
    """A pod of four rows, whose program loads a library of its interpreter."""
    site = tmp_path / "site-packages"
    site.mkdir()
    (site / "lib_of_site.py").write_text(LIBRARY)
    pod = a_pod(trial_folder, warm=True)
    trial_folder.environment["PYTHONPATH"] = str(site)
    write_program(trial_folder.root)
    return pod


def seen(pod: Packed) -> list[dict[str, Any]]:
    """Return what is kept of every row, except for times and processes."""
    kept = []
    for row in range(ROWS):
        folder = pod.folder.results / str(row)
        (path,) = folder.glob("*.json")
        record = json.loads(path.read_bytes())
        for name in ("uid", "seconds", "started", "finished", "shared"):
            record.pop(name)
        output = {end: path.with_suffix(end).read_text() for end in (".out", ".err")}
        kept.append({"record": record, **output})
    return kept


def notes(pod: Packed) -> list[tuple[bool, str]]:
    """Say of each start whether it has loaded the library itself, and with which variable of the program."""
    lines = (pod.folder.root / "starts").read_text().splitlines()
    return [(words[-2] == "True", words[-1]) for words in map(str.split, lines)]


def without_warmth(pod: Packed) -> Packed:
    """Start the same rows again, each by an interpreter of its own."""
    shutil.rmtree(pod.folder.results)
    (pod.folder.root / "starts").unlink(missing_ok=True)
    pod.folder.changes["pack"].pop("warm")
    pod.failures = 0
    return pod


def code_of(pod: Packed, seconds: float = PATIENCE) -> int:
    """Run a pod, whose rows may print what they like."""
    process = pod.start()
    process.communicate(timeout=seconds)
    return process.returncode


def test_later_rows_find_their_libraries_loaded_with_the_variables_of_the_program(warm: Packed) -> None:
    assert warm.run().code == 0

    assert notes(warm) == [(True, "1"), *[(False, "1")] * (ROWS - 1)]


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "ends",
    [
        "",
        "raise SystemExit(42)",
        "sys.exit('words')",
        "raise ValueError('bad') from KeyError('cause')",
        "os._exit(7)",
        "os.kill(os.getpid(), 9)",
        "import atexit; atexit.register(print, 'at the end')",
        "import threading, time; threading.Thread(target=lambda: (time.sleep(0.05), print('late'))).start()",
    ],
    ids=["ok", "diverges", "words", "raises", "leaves", "is killed", "exit handler", "thread"],
)
def test_rows_have_the_same_records_and_output_as_with_an_interpreter_of_their_own(
    ends: str, warm: Packed
) -> None:
    write_program(
        warm.folder.root,
        f"{PROGRAM}\nif float(os.environ['SWEEP_PARAM_LEARNING_RATE']) > 1: {ends or 'pass'}\n",
    )

    code = code_of(warm)
    kept = seen(warm)

    assert notes(warm)[1:] == [(False, "1")] * (ROWS - 1), "the later rows were forks"
    assert code_of(without_warmth(warm)) == code
    assert seen(warm) == kept


def test_a_module_is_run_as_well_as_a_file(warm: Packed) -> None:
    warm.folder.command = [warm.folder.interpreter, "-m", "program", {"macro": "args"}]

    warm.run()
    kept = seen(warm)

    assert notes(warm)[1:] == [(False, "1")] * (ROWS - 1)
    without_warmth(warm).run()
    assert seen(warm) == kept


def test_the_packages_random_numbers_differ_from_row_to_row(warm: Packed) -> None:
    write_program(
        warm.folder.root, f"{PROGRAM}\nimport random; open('numbers', 'a').write(f'{{random.random()}} ')\n"
    )

    warm.run()

    assert len({*(warm.folder.root / "numbers").read_text().split()}) == ROWS


@pytest.mark.parametrize(
    ("library", "reason"),
    [
        (
            f"{LIBRARY}\nimport threading; threading.Thread(target=threading.Event().wait, daemon=True).start()",
            "starts threads",
        ),
    ],
    ids=["threads"],
)
def test_a_library_that_no_fork_survives_is_loaded_by_each_row(
    library: str, reason: str, warm: Packed, tmp_path: Path
) -> None:
    (tmp_path / "site-packages/lib_of_site.py").write_text(library)

    run = warm.run()

    assert run.code == 0
    assert reason in run.err
    assert notes(warm) == [(True, "1")] * ROWS


def test_a_module_of_the_program_with_the_name_of_a_library_is_the_one_that_is_loaded(warm: Packed) -> None:
    (warm.folder.root / "fractions.py").write_text("")
    write_program(warm.folder.root, f"{PROGRAM}\nassert not hasattr(fractions, 'Fraction')\n")

    assert warm.run().code == 0


def test_another_program_starts_as_ever(warm: Packed) -> None:
    warm.folder.command = ["/bin/sh", "-c", "printf '{\"test_accuracy\": 1}' > $SWEEP_RESULT"]

    assert warm.run().code == 0


@pytest.mark.full_suite("trains real digits eight times")
def test_the_trainer_gives_the_same_numbers_to_the_last_bit(trial_folder: TrialFolder) -> None:
    pod = a_pod(trial_folder, warm=True)
    root = Path(__file__).parents[2]
    trial_folder.columns, trial_folder.rows = (
        [("learning_rate", "number"), ("momentum", "number")],
        [f"t0000000000{number},{0.02 + number / 100},0.{number + 1}" for number in range(ROWS)],
    )
    trial_folder.environment["PYTHONPATH"] = str(root)
    trial_folder.command = [
        sys.executable,
        "-m",
        "trainer",
        "mnist",
        "--train_images=256",
        "--test_images=100",
        "--width=4",
        {"macro": "args"},
    ]

    trial_folder.changes["timeout_seconds"] = 600

    assert code_of(pod, seconds=600) == 0
    kept = numbers(pod)

    assert code_of(without_warmth(pod), seconds=600) == 0
    assert numbers(pod) == kept
    assert len({str(each) for each in kept}) == ROWS


def numbers(pod: Packed) -> list[dict[str, float]]:
    """Return the metrics of every row that are the same in each run."""
    metrics = [each["record"]["metrics"] for each in seen(pod)]
    return [
        {name: value for name, value in each.items() if not name.endswith("second") and "seconds" not in name}
        for each in metrics
    ]
