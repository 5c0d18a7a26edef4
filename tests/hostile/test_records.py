"""What trials leave on the results volume: rows R1 to R17.

A row that another test covers names it; one that does not apply says why.
"""

import json
import os
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import record_files
from sweepledger.formats import record_json
from sweepledger.formats.record_json import CorruptRecord
from sweepledger.repo import results_volume
from sweepledger.structs.record import LARGEST_TRIAL_FILE, Record

ROOT = Path(__file__).parents[2]
BATCH = record_files.BATCH
GOOD = record_files.good(0)

ELSEWHERE = {
    "R1": "tests/formats/test_record_reading.py::test_what_is_no_record_is_corrupt_for_one_reason, "
    "tests/operations/test_collect.py::test_what_cannot_be_believed_has_a_record_of_the_collector",
    "R2": "tests/formats/test_record_reading.py::test_a_number_beyond_the_documented_bound_counts_as_not_finite, "
    "tests/results/test_outcomes.py::test_a_trial_is_ok_only_with_every_metric",
    "R3": "tests/formats/test_record_reading.py::test_what_is_no_record_is_corrupt_for_one_reason",
    "R4": "tests/results/test_outcomes.py::test_a_foreign_record_is_counted_and_never_used, "
    "tests/operations/test_collect.py::test_a_record_that_a_trial_wrote_for_another_is_not_used",
    "R5": "tests/results/test_outcomes.py::test_of_several_attempts_one_counts, "
    "tests/results/test_outcomes.py::test_order_and_duplicates_never_matter",
    "R5 the highest attempt": "reason: ok wins, then the earliest: to run again improves nothing",
    "R6": "tests/repo/test_results_volume.py::test_records_are_read_and_links_devices_and_large_files_ignored",
    "R7": "tests/formats/test_summary_csv.py::test_no_cell_of_a_hostile_metric_name_becomes_a_formula, "
    "tests/formats/test_summary_csv.py::test_a_value_has_one_cell_that_reads_back",
    "R8": "tests/launcher/test_launcher_contract.py::test_a_message_is_one_line_whatever_it_holds, "
    "tests/cli/test_responses.py::test_control_characters_in_commit_messages_are_escaped",
    "R9": "tests/operations/test_collect.py::test_a_job_that_ended_leaves_rows_for_trials_that_left_nothing, "
    "tests/results/test_outcomes.py::test_a_failure_is_called_by_what_ended_it",
    "R10": "tests/results/test_outcomes.py::test_ok_without_the_metric_is_a_failure, "
    "tests/launcher/test_launcher_results.py::test_a_result_without_the_metric_names_the_numbers_it_has",
    "R11": "tests/results/test_best_trial.py"
    "::test_with_one_trial_an_assignment_the_best_wins_and_ties_go_to_the_id, "
    "tests/results/test_best_trial.py::test_without_a_result_there_is_no_winner_and_the_verdict_says_why",
    "R13 writers": "tests/launcher/test_launcher_records.py"
    "::test_killed_at_any_moment_it_leaves_no_half_record",
    "R14 generated files": "tests/contract/test_same_bytes.py"
    "::test_no_hash_seed_and_no_locale_changes_a_byte",
    "R15": "tests/formats/test_record_lines.py::test_a_record_survives_its_line_exactly",
    "R16": "tests/formats/test_summary_csv.py::test_a_summary_that_was_edited_is_refused_by_line, "
    "tests/results/test_same_bytes.py::test_parts_merged_in_any_order_equal_the_whole",
    "R17": "tests/operations/test_collect.py::test_collecting_again_makes_no_commit",
}


def test_rows_that_are_covered_elsewhere_are_there() -> None:
    for message in ELSEWHERE.values():
        for place in () if message.startswith("reason:") else message.split(", "):
            path, _, name = place.partition("::")
            assert f"def {name}(" in (ROOT / path).read_text(), place


def judged(results: Path, index: int = 0) -> list[Record | CorruptRecord]:
    """Read what a trial left, as the collector does."""
    return list(map(record_json.read, results_volume.attempt_records(results, BATCH, str(index))))


def left(results: Path, content: bytes = GOOD, name: str = "pod-0.json") -> Path:
    """Leave a file in the first trial's folder."""
    path = results / BATCH / "0" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(("reason", "spoil"), record_files.WAYS.items(), ids=lambda way: str(way)[:24])
def test_r1_a_corrupt_file_hides_none(reason: str, spoil: Callable[[bytes], bytes], tmp_path: Path) -> None:
    left(tmp_path, spoil(GOOD), "a.json")
    left(tmp_path, GOOD, "b.json")

    assert judged(tmp_path) == [CorruptRecord(reason), record_json.read(GOOD)]


def test_r3_a_hundred_megabytes_are_too_large_in_constant_memory(tmp_path: Path) -> None:
    os.truncate(left(tmp_path, b"{"), 100_000_000)
    tracemalloc.start()

    assert judged(tmp_path) == [CorruptRecord("too-large")]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * LARGEST_TRIAL_FILE


@pytest.mark.parametrize(("size", "most"), [(0, record_json.MOST_RECORDS), (40_000, 104)])
def test_a_trial_with_thousands_of_records_has_few_read(size: int, most: int, tmp_path: Path) -> None:
    content = GOOD + b" " * size
    for number in range(1000):
        left(tmp_path, content, f"pod-{number:04}.json")
    tracemalloc.start()

    contents = list(results_volume.attempt_records(tmp_path, BATCH, "0"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert [item != record_json.UNREAD for item in contents] == [True] * most + [False] * (1000 - most)
    assert peak < 2 * record_json.MOST_RECORD_BYTES


@pytest.mark.parametrize("kind", ["link", "dangling link", "fifo", "folder"])
def test_r6_what_is_no_regular_file_is_counted_and_not_opened(kind: str, tmp_path: Path) -> None:
    secret = left(tmp_path / "elsewhere")
    folder = tmp_path / "results" / BATCH / "0"
    folder.mkdir(parents=True)
    names = ("pod.json", "a\nb.json", "-.json")
    for place in (folder / name for name in names):
        match kind:
            case "fifo":
                os.mkfifo(place)
            case "folder":
                place.mkdir()
            case _:
                place.symlink_to(secret if kind == "link" else "nowhere")

    assert judged(tmp_path / "results") == [CorruptRecord("not-a-file")] * len(names)


def test_r6_a_folder_that_is_a_link_leads_nowhere_and_a_hard_link_is_a_file(tmp_path: Path) -> None:
    left(tmp_path / "elsewhere")
    (tmp_path / "secret").write_bytes(b"root:x:0:0")
    (tmp_path / BATCH / "1").mkdir(parents=True)
    (tmp_path / BATCH / "0").symlink_to(tmp_path / "elsewhere" / BATCH / "0")
    os.link(tmp_path / "secret", tmp_path / BATCH / "1" / "pod.json")

    assert judged(tmp_path) == []
    assert judged(tmp_path, index=1) == [CorruptRecord("not-json")]


@pytest.mark.parametrize("name", ["=cmd|' /C calc'!A0", "+1", "@SUM(A1)", "-x", "a\tb", "a\rb", 'a"b', "a,b"])
def test_r7_no_metric_of_a_record_is_called_like_a_formula(name: str) -> None:
    content = GOOD.replace(b'"loss"', json.dumps(name).encode())

    assert record_json.read(content) == CorruptRecord("wrong-value:metrics")


@pytest.mark.parametrize("member", ["node", "reason", "uid", "ran", "batch"])
def test_r8_no_member_of_a_record_can_speak_to_a_log(member: str) -> None:
    for text in ("\n[INFO] pushed ok", "\x1b[31m", "\x1b]8;;x\x07", "::error::x", "a\u2028b"):
        made = {**json.loads(GOOD), "status": "failed", "reason": "exit-1", member: text}

        assert record_json.read(json.dumps(made).encode()) == CorruptRecord(f"wrong-value:{member}")


def test_r12_many_files_some_of_them_corrupt_are_counted_exactly_in_little_memory(tmp_path: Path) -> None:
    counts = record_files.write(tmp_path, 2000)

    answer = record_files.measured(tmp_path, 2000)

    assert counts.total() == 2000
    assert counts["record"] == 1900
    assert set(counts) == {"record", *record_files.WAYS}
    assert answer["found"] == dict(counts)
    assert float(str(answer["mebibytes"])) < record_files.BARS["mebibytes"]


def test_r13_a_file_that_is_not_finished_is_not_looked_at(tmp_path: Path) -> None:
    left(tmp_path, GOOD[:50], "pod-0.json.tmp")
    os.utime(left(tmp_path), (4e9, 4e9))

    assert judged(tmp_path) == [record_json.read(GOOD)]


def test_r13_a_file_that_changes_is_read_once_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = left(tmp_path, b"x" * len(GOOD))
    read = os.read
    reads: list[int] = []

    def and_then_written(descriptor: int, size: int) -> bytes:
        content = read(descriptor, size)
        if not reads:
            path.write_bytes(GOOD + b" ")
        reads.append(size)
        return content

    monkeypatch.setattr(os, "read", and_then_written)

    assert judged(tmp_path) == [record_json.read(GOOD)]


def test_r13_a_file_that_is_replaced_all_the_time_is_always_whole(tmp_path: Path) -> None:
    path, stop = left(tmp_path), threading.Event()

    def replace() -> None:
        while not stop.is_set():
            temporary = path.with_suffix(".tmp")
            temporary.write_bytes(GOOD)
            temporary.rename(path)

    writer = threading.Thread(target=replace)
    writer.start()
    try:
        seen = [judged(tmp_path) for _ in range(200)]
    finally:
        stop.set()
        writer.join()

    assert all(records == [record_json.read(GOOD)] for records in seen)


ODD = {"LC_ALL": "de_DE.UTF-8", "PYTHONHASHSEED": "4711", "TZ": "Pacific/Chatham"}


def test_r14_no_locale_zone_or_seed_changes_a_byte_of_a_line() -> None:
    script = (
        "import os, sys; os.umask(0o77); from sweepledger.formats import record_json as record;"
        "found = record.read(sys.stdin.buffer.read()); sys.stdout.write(record.to_line(found))"
    )

    line = subprocess.run(
        [sys.executable, "-c", script],
        input=GOOD,
        env={"PYTHONPATH": str(ROOT / "generator"), "PATH": os.environ["PATH"], **ODD},
        check=True,
        capture_output=True,
    ).stdout

    record = record_json.read(GOOD)
    assert isinstance(record, Record)
    assert line.decode() == record_json.to_line(record)
