"""All files of a results folder, from what git holds and from nothing else."""

import hashlib
import json
from dataclasses import replace

from sweepledger.formats import record_json, summary_csv
from sweepledger.results.outcomes import BatchRecords
from sweepledger.results.summary import summarise
from sweepledger.results.tree import result_files
from sweepledger.structs.names import records_path, results_folder
from sweepledger.structs.record import Status
from sweepledger.structs.values import bytes_digest
from tests.builders import DATA, TREE, a_grid, a_lock, a_program, a_record, an_expected_trial

NAME = "mnist-grid-b1-3f9a1c2e"


def files(*batches: BatchRecords) -> dict[str, str]:
    made = result_files(summarise(batches, description="Why?"))
    return {path: content.decode() for path, content in made}


def test_a_results_folder_has_these_files() -> None:
    later = a_grid({"a": [2]}, lambda _: 0.6, number=2, name="mnist-grid-b2-00000000")

    made = files(a_grid({"a": [1]}, lambda _: 0.5), later)

    assert list(made) == [
        "README.md",
        "figures/parallel.svg",
        "figures/slices.svg",
        "figures/trials.svg",
        "provenance.json",
        "records/mnist-grid-b1-3f9a1c2e.jsonl",
        "records/mnist-grid-b2-00000000.jsonl",
        "summary.csv",
    ]
    assert all(text.endswith("\n") and "\r" not in text for text in made.values())
    assert records_path(NAME) in made
    assert results_folder("mnist-grid") == "results/mnist-grid"


def test_a_batch_without_records_has_an_empty_file_and_all_its_rows() -> None:
    made = files(a_grid({"a": [1, 2]}, lambda _: None))

    assert made[records_path(NAME)] == ""
    assert [row.status for row in summary_csv.read(made["summary.csv"]).rows] == ["missing", "missing"]


def test_provenance_is_exactly_this() -> None:
    expected = (an_expected_trial(0), an_expected_trial(1))
    failed = a_record(0, uid="first", status="failed", metrics={}, details={})
    batch = BatchRecords(a_lock(), expected, (a_record(0, attempt=2), failed))

    made = result_files(
        summarise(
            [replace(batch, lock_digest="sha256:" + "10c4" * 16)],
            description="Why?",
            spec_digest="sha256:" + "5ec0" * 16,
        )
    )
    text, records = (made[path].decode() for path in ("provenance.json", records_path(NAME)))
    inputs = (
        f"{'10c4' * 16}  overlays/archive/{NAME}/batch.json\n"
        f"{hashlib.sha256(records.encode()).hexdigest()}  results/mnist-grid/{records_path(NAME)}\n"
        f"{'5ec0' * 16}  sweeps/mnist-grid.yaml\n"
    )

    program = {
        "code": {"disk": 0, "path": "trainer", "tree": TREE},
        "command": ["python", "-m", "trainer", "mnist", "${args}"],
        "data": {"digest": DATA, "name": "mnist"},
        "digest": a_program().digest,
        "image": "local",
    }
    expected_data = {
        "batches": {
            NAME: {
                "counts": {**{str(status): 0 for status in Status}, "missing": 1, "ok": 1},
                "digest": "3f9a1c2e" * 8,
                "generator": "0.1.0",
                "number": 1,
                "parent": None,
                "program": program,
                "seed_base": 0,
                "spec": {"digest": "sha256:" + "5bec" * 16, "path": "sweeps/mnist-grid.yaml"},
                "trials": [
                    {
                        "attempts": [
                            {
                                "attempt": record.attempt,
                                "node": record.node,
                                "record": bytes_digest(record_json.to_line(record).encode()),
                                "uid": record.uid,
                            }
                            for record in (failed, batch.records[0])
                        ],
                        "batch": NAME,
                        "code": TREE,
                        "data": DATA,
                        "device": "cpu",
                        "index": 0,
                        "ran": "process",
                        "reason": None,
                        "row": expected[0].row,
                        "seed": 0,
                        "status": "ok",
                        "trial": "t00000000000",
                        "uid": "pod-0",
                        "versions": {"torch": "2.9.0"},
                    },
                    {
                        "attempts": [],
                        "batch": NAME,
                        "code": TREE,
                        "data": DATA,
                        "index": 1,
                        "reason": None,
                        "row": expected[1].row,
                        "status": "missing",
                        "trial": "t00000000001",
                    },
                ],
            }
        },
        "spec": {"path": "sweeps/mnist-grid.yaml", "digest": "sha256:" + "5ec0" * 16},
        "inputs_digest": "sha256:" + hashlib.sha256(inputs.encode()).hexdigest(),
        "generated": "by sweepledger from git alone; do not edit",
        "metric": {"goal": "maximize", "name": "test_accuracy"},
        "sweep": "mnist-grid",
        "version": 1,
    }
    assert text == json.dumps(expected_data, indent=1, sort_keys=True) + "\n"
