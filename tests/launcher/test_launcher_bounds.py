"""The bounds of a record, and what its termination message keeps."""

import base64
import hashlib
import itertools
import json
import zlib
from typing import Any

import pytest

from tests.launcher.folders import BESIDE, TrialFolder, launch, python

EVERYTHING = """
import json, os, random
chance = random.Random(1)
os.chdir(os.environ["SWEEP_ARTIFACTS"])
for number in range(300):
    open(f"artifact-{number:03}-" + "x" * 60, "w").close()
with open(os.environ["SWEEP_RESULT"], "w") as file:
    for step in range(3000):
        line = {"step": step * 10**12, "test_accuracy": -chance.random() * 1e-300}
        line.update({f"metric/{number:02}/" + "m" * 40: chance.random() for number in range(90)} if step == 0 else {})
        line.update({f"d{number}": "\\x00" * 300 for number in range(30)} if step == 1 else {})
        file.write(json.dumps(line) + "\\n")
"""
JSONL = {"name": "test_accuracy", "source": "result", "format": "jsonl"}


def unpacked(text: str) -> dict[str, list[list[Any]]]:
    """Return the curves in a termination message, as docs/launcher.md explains it."""
    columns = json.loads(zlib.decompress(base64.b64decode(text)))
    return {
        name: [list(point) for point in zip(itertools.accumulate(steps), values, strict=True)]
        for name, (steps, values) in columns.items()
    }


def restored(message: bytes) -> dict[str, Any]:
    """Return the record that a termination message holds, as docs/launcher.md explains it."""
    record: dict[str, Any] = json.loads(message)
    digest = record.pop("sha256", None)
    if digest is None:
        return record
    record["curves"] = unpacked(record.pop("curves_zlib"))
    text = json.dumps(record, sort_keys=True, separators=(",", ":")) + "\n"
    assert hashlib.sha256(text.encode()).hexdigest() == digest
    return record


def test_the_largest_record_is_within_all_bounds(trial_folder: TrialFolder) -> None:
    trial_folder.changes = {"metric": JSONL}
    trial_folder.command = python(EVERYTHING)
    log = trial_folder.root / "termination-log"
    log.touch()

    record = trial_folder.try_once(SWEEP_NODE="n" * 253, SWEEP_RAN="r" * 512, SWEEP_PARENT_ID="t00000000007")

    content = (trial_folder.results / "uid-1.json").read_bytes()
    assert len(content) <= 32 * 1024
    sizes = {name: len(launch.dump(record[name])) for name in ("details", "curves", "artifacts")}
    assert sizes["details"] <= 8 * 1024
    assert 5 * 1024 < sizes["curves"] <= 10 * 1024
    assert sizes["artifacts"] < 200
    assert record["metrics"]["test_accuracy"] < 0
    assert record["details"]["metrics_dropped"] + len(record["metrics"]) == 91
    assert record["details"]["details_dropped"] > 0
    assert record["details"]["parent"] == "t00000000007"
    message = json.loads(log.read_bytes())
    assert message.pop("sha256") == hashlib.sha256(content).hexdigest()
    assert log.stat().st_size <= 4095
    assert message == {name: record[name] for name in message}
    assert set(record) - set(message) == {"details", "curves", "artifacts", "environment"} | BESIDE
    content = (trial_folder.results / "uid-1.artifacts").read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    assert record["artifacts"] == {"count": 300, "bytes": len(content), "sha256": digest}
    listed = json.loads(content)
    assert [item["path"][:12] for item in listed] == [f"artifact-{number:03}" for number in range(300)]
    assert all(set(item) == {"path", "bytes", "sha256"} for item in listed)


def test_a_curve_that_fits_no_message_is_compressed_without_loss(trial_folder: TrialFolder) -> None:
    trial_folder.changes = {"metric": JSONL}
    trial_folder.command = python(
        "import json, os, random\n"
        "chance = random.Random(1)\n"
        "with open(os.environ['SWEEP_RESULT'], 'w') as file:\n"
        "    for step in range(200):\n"
        "        value = float('nan') if step == 7 else chance.random()\n"
        "        file.write(json.dumps({'step': step * 100, 'test_accuracy': value}) + '\\n')\n"
    )
    log = trial_folder.root / "termination-log"
    log.touch()

    record = trial_folder.try_once()

    assert len(record["curves"]["test_accuracy"]) == 200
    assert (trial_folder.results / "uid-1.json").stat().st_size > 4095
    assert log.stat().st_size <= 4095
    assert restored(log.read_bytes()) == {
        name: value for name, value in record.items() if name not in BESIDE
    } | {"details": {name: record[name] for name in ("peak_memory", "wall")}}


@pytest.mark.parametrize("extra", [0, 1])
def test_a_list_of_artifacts_moves_to_a_file_at_8_kibibytes(extra: int, trial_folder: TrialFolder) -> None:
    attempt = launch.Attempt(trial_folder.launch_json(), None, "uid-1", 1, str(trial_folder.root))
    folder = trial_folder.root / "artifacts" / "uid-1"
    folder.mkdir(parents=True)

    def missing() -> int:
        return 8 * 1024 + extra - len(launch.dump(launch.list_artifacts(str(folder))[0]))

    while missing() > 350:
        (folder / f"{missing():05}".ljust(150, "x")).touch()
    (folder / "z".ljust(missing() - len(',{"bytes":0,"path":"","sha256":""}') - 64, "z")).touch()
    assert missing() == 0

    kept, left_out = launch.keep_artifacts(attempt)

    assert isinstance(kept, dict) == bool(extra)
    assert left_out == 0


def test_metrics_are_left_out_before_the_objective(trial_folder: TrialFolder) -> None:
    trial_folder.changes = {"metric": {"name": "zz", "source": "result"}}
    trial_folder.command = python(
        "import json, os\n"
        "metrics = {'m' * 55 + str(number): 0.1234567890123456 for number in range(99)}\n"
        "json.dump({**metrics, 'zz': 1}, open(os.environ['SWEEP_RESULT'], 'w'))"
    )

    record = trial_folder.try_once()

    assert record["metrics"]["zz"] == 1
    assert record["details"]["metrics_dropped"] == 100 - len(record["metrics"]) > 0
    assert len(launch.dump(launch.first_part(record))) <= 4000 + len(str(record["exit"])) + 200


def test_the_launchers_own_details_are_never_dropped(trial_folder: TrialFolder) -> None:
    details = {f"d{number}": "x" * 70 for number in range(200)} | {"error": "of the trial"}

    kept = launch.small(details, {"error": "y" * 1000, "parent": "t1"})

    assert (kept["error"], kept["parent"]) == ("y" * 1000, "t1")
    assert kept["details_dropped"] == 201 - len([name for name in kept if name.startswith("d")])
    assert len(json.dumps(kept)) <= 8 * 1024


def learned(*names: str, epochs: int, objective: str = "test_accuracy") -> list[str]:
    """Return a command that reports each of these metrics, and the objective, once an epoch."""
    return python(
        "import json, os, random\n"
        "chance = random.Random(1)\n"
        "with open(os.environ['SWEEP_RESULT'], 'w') as file:\n"
        f"    for step in range({epochs}):\n"
        f"        line = {{name: chance.random() for name in {[*names, objective]}}}\n"
        "        file.write(json.dumps({'step': step, **line}) + '\\n')\n"
    )


@pytest.mark.parametrize(
    ("names", "epochs", "kept", "most"),
    [
        pytest.param(["a", "loss"], 20, 3, 20, id="all fit"),
        pytest.param([f"m{number:02}" for number in range(90)], 1000, 28, 199, id="too many"),
        pytest.param([f"m{number:03}" for number in range(99)], 2, 100, 2, id="as many as there may be"),
    ],
)
def test_the_curves_of_all_metrics_share_the_room(
    names: list[str], epochs: int, kept: int, most: int, trial_folder: TrialFolder
) -> None:
    trial_folder.changes = {"metric": JSONL | {"others": ["loss"] if "loss" in names else []}}
    trial_folder.command = learned(*names, epochs=epochs)

    curves = (record := trial_folder.try_once())["curves"]

    assert (len(curves), len(curves["test_accuracy"])) == (kept, most)
    assert min(map(len, curves.values())) >= min(
        epochs, 7
    )  # first, last, lowest, highest and even ones may coincide
    assert len(launch.dump(curves)) <= 10 * 1024
    assert record["details"].get("curves_left_out", 0) == len(names) + 1 - kept
    assert set(curves) >= {"test_accuracy", *sorted(names)[: kept - 1]}


def test_a_message_without_room_loses_the_least_important_curves(trial_folder: TrialFolder) -> None:
    trial_folder.changes = {"metric": JSONL | {"others": ["size"], "curve": "z"}}
    trial_folder.command = learned("a", "b", "size", "z", epochs=50)
    log = trial_folder.root / "termination-log"
    log.touch()

    record = trial_folder.try_once()
    message = json.loads(log.read_bytes())

    assert set(record["curves"]) == {"a", "b", "size", "test_accuracy", "z"}
    assert message["curves_left_out"] == 1
    curves = unpacked(message["curves_zlib"])
    assert curves == {name: record["curves"][name] for name in ("a", "size", "test_accuracy", "z")}
