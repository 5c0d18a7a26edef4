"""`hyperparams.yml`: scripts written for NVIDIA's example find their values where they look."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sweepledger.exchange import nvidia
from tests.launcher.folders import PROGRAM, REPORT, TrialFolder, launch, python, sha256, shell

NUMBERS = st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False).filter(
    lambda number: not number.is_integer()
)
TAKEN_FOR_OTHERS = (
    *("on", "Off", "YES", "true", "null", "0b1", "017", "0x1F", "1_000", "1.5", "1.e+3", "2001-01-01"),
)
LIKE_THEM = ("oN", "y", "n", "1e3", "0x", "1-2", "2001-1-01", "a.b", "9", "nan", "_1", "1:2")
WORDS = st.from_regex(r"[A-Za-z0-9_/][A-Za-z0-9_./+-]{0,20}", fullmatch=True) | st.sampled_from(
    TAKEN_FOR_OTHERS + LIKE_THEM
)
NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_.-]{0,20}", fullmatch=True) | st.sampled_from(["on", "yes", "n"])
PLAIN = NUMBERS | st.booleans() | st.none() | WORDS.filter(launch.PLAIN.fullmatch)
SETS = st.dictionaries(NAMES, PLAIN | st.lists(PLAIN, max_size=3), max_size=5)


@given(sets=st.lists(SETS, max_size=4))
def test_what_has_no_spaces_is_written_byte_for_byte_as_pyyaml_does(sets: list[dict[str, Any]]) -> None:
    written = "".join(map(launch.yaml_item, sets))

    assert written == nvidia.write_sets(sets).replace("[]\n", "[]\n" if sets else "")


@given(values=st.dictionaries(NAMES, st.text() | st.lists(st.text(), max_size=3), max_size=4))
def test_every_text_arrives_whatever_it_holds(values: dict[str, Any]) -> None:
    (item,) = yaml.safe_load(launch.yaml_item(values))

    assert item == {"hyperparam_set": values}


LOOKUP = """
import json, os, yaml
with open("hyperparams.yml") as file:
    values = yaml.safe_load(file)[int(os.environ["JOB_ID"]) - 1]["hyperparam_set"]
with open(os.environ["SWEEP_RESULT"], "w") as file:
    json.dump({"test_accuracy": values["learning_rate"]}, file)
"""


def looking_up(script: str) -> list[Any]:
    """Run a script as the examples do: the interpreter's own packages are needed for PyYAML."""
    return [python("")[0], "-c", script]


def test_a_script_finds_its_own_values_at_its_job_number(trial_folder: TrialFolder) -> None:
    trial_folder.changes = {"hyperparams_file": True}
    trial_folder.command = looking_up(LOOKUP)

    record = trial_folder.try_once(SWEEP_INDEX="1")

    assert record["metrics"] == {"test_accuracy": 1e-05}


def test_the_file_is_that_of_the_whole_batch(trial_folder: TrialFolder) -> None:
    trial_folder.changes = {"hyperparams_file": True}
    trial_folder.columns = [("replicate", "number"), ("lr", "number"), ("batch_norm", "string")]
    trial_folder.rows = ['t0,0,0.4,"on"', "t1,1,0.4,", 't2,0,1e-05,"off"']
    trial_folder.command = shell(f'cp hyperparams.yml "$OUT"; {REPORT}')

    trial_folder.run(OUT=str(trial_folder.root / "copy.yml"))

    sets: list[Any] = [{"lr": 0.4, "batch_norm": "on"}, {"lr": 0.4}, {"lr": 1e-05, "batch_norm": "off"}]
    assert (trial_folder.root / "copy.yml").read_text() == nvidia.write_sets(sets)


def a_table(folder: Path, rows: int) -> dict[str, Any]:
    text = "trial,x\n" + "".join(f"t{row},{row}\n" for row in range(rows))
    (folder / "table.csv").write_text(text)
    shard = {"file": "table.csv", "first": 0, "count": rows, "digest": f"sha256:{sha256(text.encode())}"}
    return {"program": PROGRAM, "columns": [{"name": "x", "type": "number"}], "shards": [shard]}


@pytest.mark.parametrize("rows", [1000, 1001])
def test_a_long_list_holds_only_its_item(rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWEEP_TABLE", str(tmp_path))
    instructions = a_table(tmp_path, rows)
    row = launch.read_row(instructions, str(tmp_path), 700)

    items = yaml.load(launch.hyperparams(instructions, row), Loader=yaml.CSafeLoader)

    assert items[700] == {"hyperparam_set": {"x": 700}}
    assert (len(items), items[0]) == ((1000, {"hyperparam_set": {"x": 0}}) if rows == 1000 else (701, None))


def test_in_a_table_of_several_files_no_other_file_is_opened() -> None:
    row, last = launch.Row(2, "t", "", {"x": 1}), launch.Row(99_999, "t", "", {"x": 1})

    written = launch.hyperparams({"shards": [{"count": 2}, {"count": 1}]}, row)

    assert yaml.safe_load(written) == [None, None, {"hyperparam_set": {"x": 1}}]
    assert len(launch.hyperparams({"shards": [{"count": 100_000}]}, last)) < 2 * 100_000 + 50
