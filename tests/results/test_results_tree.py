"""All files of a results folder, from what git holds and from nothing else."""

import hashlib
import json
from dataclasses import replace

from sweepledger.formats import record_json, records_jsonl
from sweepledger.results.outcomes import BatchRecords
from sweepledger.results.summary import summarise
from sweepledger.results.tree import result_files
from sweepledger.structs.names import records_path, results_folder
from sweepledger.structs.record import Record
from sweepledger.structs.values import bytes_digest
from tests.builders import DATA, TREE, a_grid, a_lock, a_record, an_expected_trial

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


def test_the_files_are_rebuilt_from_the_records_in_git() -> None:
    batch = a_grid({"a": [1, 2], "b": ["x", "y"]}, lambda v: 0.1 + 0.2 if v["b"] == "x" else 1.0)
    stray = a_record(0, row="0" * 64)
    first = files(replace(batch, records=(*reversed(batch.records), stray, *batch.records)))

    kept = records_jsonl.records(first[records_path(NAME)].encode())
    rebuilt = files(replace(batch, records=tuple(each for each in kept if isinstance(each, Record))))

    assert rebuilt == first
    assert len(kept) == 4


def test_provenance_names_each_attempt_and_digests_what_results_were_made_of() -> None:
    expected = (an_expected_trial(0), an_expected_trial(1))
    failed = a_record(0, uid="first", status="failed", metrics={}, details={})
    batch = BatchRecords(a_lock(), expected, (a_record(0, attempt=2), failed))
    lock, spec = "10c4" * 16, "5ec0" * 16

    made = result_files(
        summarise(
            [replace(batch, lock_digest=f"sha256:{lock}")], description="Why?", spec_digest=f"sha256:{spec}"
        )
    )

    records, provenance = made[records_path(NAME)], json.loads(made["provenance.json"])
    inputs = (
        f"{lock}  overlays/archive/{NAME}/batch.json\n"
        f"{hashlib.sha256(records).hexdigest()}  results/mnist-grid/{records_path(NAME)}\n"
        f"{spec}  sweeps/mnist-grid.yaml\n"
    )
    first, second = provenance["batches"][NAME]["trials"]
    assert provenance["inputs_digest"] == f"sha256:{hashlib.sha256(inputs.encode()).hexdigest()}"
    assert [(each["uid"], each["record"]) for each in first["attempts"]] == [
        (each.uid, bytes_digest(record_json.to_line(each).encode())) for each in (failed, batch.records[0])
    ]
    assert (first["status"], first["uid"], first["code"], first["data"]) == ("ok", "pod-0", TREE, DATA)
    assert (second["status"], second["attempts"], second["row"]) == ("missing", [], expected[1].row)
