"""What the trial reports: the result file, lines on stdout, and files to keep. All of it may be hostile."""

import itertools
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.launcher.folders import TRIALS, TrialFolder, launch, metric, python, sha256, shell

MEBIBYTE = 1024 * 1024


def read(content: bytes | str, tmp_path: Path, objective: str = "loss") -> Any:
    path = tmp_path / "result.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return launch.report_of_file(str(path), [objective])


def nested(levels: int) -> str:
    """Write an object with so many containers within each other."""
    return '{"loss": 1, "x": ' + "[" * (levels - 1) + "]" * (levels - 1) + "}"


def test_numbers_are_metrics_and_all_else_is_details(tmp_path: Path) -> None:
    text = (
        '{"loss": 0.25, "epochs": 3, "device": "cpu", "fast": true, "none": null, "versions": {"torch": "2"}}'
    )

    report = read(text, tmp_path)

    assert report.metrics == {"loss": 0.25, "epochs": 3.0}
    assert [type(value) for value in report.metrics.values()] == [float, float]
    assert report.details == {"device": "cpu", "fast": True, "none": None, "versions": {"torch": "2"}}
    assert (report.reason, report.message) == (None, "")


def test_a_member_metrics_holds_the_metrics_alone(tmp_path: Path) -> None:
    text = '{"metrics": {"loss": 1, "note": "x", "done": true}, "seconds": 3.5, "note": "y"}'

    report = read(text, tmp_path)

    assert report.metrics == {"loss": 1.0}
    assert report.details == {"seconds": 3.5, "note": "y", "done": True}


@pytest.mark.parametrize(("inner", "kind"), [("[]", "list"), ("null", "NoneType")])
def test_a_member_metrics_of_another_kind_is_invalid(inner: str, kind: str, tmp_path: Path) -> None:
    report = read(f'{{"loss": 1, "metrics": {inner}}}', tmp_path)

    assert report.reason == "result-invalid"
    assert (
        report.message
        == f"$SWEEP_RESULT is no valid result: its member metrics must be an object, got {kind}"
    )


TWICE = ('{"loss": 1, "loss": 2}', '{"loss": 1, "x": [{"a": 1, "a": 1}]}')
ENDLESS = ("[" * 900_000, '{"a":' * 150_000)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "Expecting value"),
        ('{"loss": 0.', "delimiter"),
        ('{"loss": 1} {"loss": 2}', "Extra data"),
        *((text, "it is no JSON object") for text in ("[1]", "null")),
        *((text, "an object has the same name twice") for text in TWICE),
        ('{"loss": 1, "x": ' + "1" * 301 + "}", "a whole number has more than 300 digits"),
        (b'{"loss": "\xff"}', "'utf-8' codec"),
        (b'\xef\xbb\xbf{"loss": 1}', "BOM"),
        *((text, "it is nested deeper than 16") for text in (nested(17), nested(5000), *ENDLESS)),
        ('{"loss": 1}' + " " * (MEBIBYTE - 10), "it is larger than 1 MiB"),
    ],
)
def test_a_file_that_is_no_result_is_invalid(content: bytes | str, message: str, tmp_path: Path) -> None:
    report = read(content, tmp_path)

    assert (report.metrics, report.details, report.reason) == ({}, {}, "result-invalid")
    assert report.message.startswith("$SWEEP_RESULT is no valid result: ")
    assert message in report.message.replace("it is not a JSON object", "it is no JSON object")


@pytest.mark.parametrize(
    "content",
    [
        nested(16),
        '{"loss": 1}' + " " * (MEBIBYTE - 11),
        '{"loss": 1, "x": ' + "1" * 300 + "}",
    ],
)
def test_a_file_within_the_limits_is_a_result(content: str, tmp_path: Path) -> None:
    report = read(content, tmp_path)

    assert report.reason is None
    assert report.metrics["loss"] == 1


def test_a_result_that_is_a_link_a_pipe_or_a_folder_is_invalid(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text('{"loss": 1}')
    (tmp_path / "link").symlink_to("secret")
    (tmp_path / "dangling").symlink_to("nowhere")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()

    for name, form in itertools.product(("link", "dangling", "fifo", "folder"), ("json", "log")):
        files, how = launch.Files(str(tmp_path / name)), metric(format=form)
        report = launch.read_report(None, files, how)

        assert (name, report.reason, report.metrics) == (name, "result-invalid", {})


def test_no_result_file_is_a_missing_metric(tmp_path: Path) -> None:
    report = launch.report_of_file(str(tmp_path / "none"), ["loss"])

    assert report == ({}, {}, "metric-missing", "the trial wrote no $SWEEP_RESULT", {})


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("{}", "none"),
        ('{"Loss": 1, "accuracy": 2}', "Loss, accuracy"),
        ('{"loss": true}', "none"),
        ('{"loss": 1, "metrics": {}}', "none"),
        (json.dumps({f"m{number:02}": 1 for number in range(12)}), ", ".join(f"m{n:02}" for n in range(10))),
    ],
)
def test_a_result_without_the_metric_names_the_numbers_it_has(text: str, names: str, tmp_path: Path) -> None:
    report = read(text, tmp_path)

    assert report.reason == "metric-missing"
    assert report.message == f"$SWEEP_RESULT has no number loss; its numbers: {names}"


def test_a_hundred_numbers_are_metrics_and_the_deciding_one_always_is(tmp_path: Path) -> None:
    numbers = {f"m{number:03}": number for number in range(102)}

    report = read(json.dumps({**numbers, "loss": 1}), tmp_path)

    assert list(report.metrics) == [*list(numbers)[:100], "loss"]
    assert report.details == {"m100": 100, "m101": 101}


def test_a_number_under_an_odd_name_is_a_detail(tmp_path: Path) -> None:
    good = ["a", "Z9", "val/top-1@5", "a.b_c", "a" * 63]
    odd = ["", "1st", "_x", "a b", "a,b", "a\nb", "größe", "a" * 64, "=1+1"]

    report = read(json.dumps({**dict.fromkeys([*good, *odd], 1), "loss": 2}), tmp_path)

    assert report.metrics == {**dict.fromkeys(good, 1.0), "loss": 2.0}
    assert report.details == dict.fromkeys(odd, 1)


def test_other_numbers_that_are_not_finite_are_kept_as_text_and_deep_details_dropped(
    trial_folder: TrialFolder,
) -> None:
    deep = {"deep": "[" * 15 + "]" * 15, "less": "[" * 14 + "]" * 14}
    members = ", ".join(f'"{name}": {text}' for name, text in deep.items())
    numbers = '"test_accuracy": -0.0, "a": NaN, "b": Infinity, "c": {"d": [-Infinity, 1]}, "e": 1'
    trial_folder.command = shell(f"printf '{{{numbers}, {members}}}' > $SWEEP_RESULT")

    record = trial_folder.try_once()

    assert record["status"] == "ok"
    assert record["metrics"] == {"test_accuracy": 0.0, "e": 1.0}
    assert "-0" not in json.dumps(record["metrics"])
    assert record["details"] == {
        "a": "nan",
        "b": "inf",
        "c": {"d": ["-inf", 1]},
        "less": json.loads(deep["less"]),
        "details_dropped": 1,
    }


def test_an_invalid_result_is_explained_in_record_and_log(trial_folder: TrialFolder) -> None:
    trial_folder.command = shell("ln -s /etc/passwd $SWEEP_RESULT")

    record = trial_folder.try_once()

    error = record["details"].pop("error")
    assert (record["reason"], record["exit"], record["details"]) == ("result-invalid", 1, {})
    assert error.startswith("$SWEEP_RESULT is no valid result: [Errno")
    assert record["said"] == [f"{TRIALS[0]}: failed: result-invalid: {error}"]
    assert "root:" not in json.dumps(record)


def test_a_failed_trial_keeps_what_it_reported_and_no_other_reason(trial_folder: TrialFolder) -> None:
    trial_folder.command = shell('printf \'{"loss": 1, "why": "x"}\' > $SWEEP_RESULT; exit 3')

    record = trial_folder.try_once()

    assert (record["reason"], record["metrics"], record["details"]) == ("exit-3", {"loss": 1}, {"why": "x"})
    assert record["said"] == [f"{TRIALS[0]}: failed: exit-3"]


def test_details_keep_the_smallest_members_within_8_kibibytes() -> None:
    details = {"big": "x" * 9000, "a": 1, "half": "y" * 4000, "other": "z" * 4001, "more": "z" * 4100}
    exact = {"a": [1, 2], "b": "x" * (8192 - len('{"a": [1, 2], "b": ""}'))}

    assert launch.small(details) == {"a": 1, "half": "y" * 4000, "other": "z" * 4001, "details_dropped": 2}
    assert launch.small(exact) == exact
    assert launch.small({**exact, "b": exact["b"] + "x"}) == {"a": [1, 2], "details_dropped": 1}  # type: ignore[operator]


def scan(*chunks: bytes, objective: str = "loss") -> Any:
    """Give the numbers found in an output that comes in pieces."""
    found = launch.Stream(metric(objective, "stdout"))
    for chunk in chunks:
        found.feed(chunk)
    found.finish()
    return found.gathered.metrics


@given(st.lists(st.integers(0, 40), max_size=8))
@settings(max_examples=50, deadline=None)
def test_it_does_not_matter_in_what_pieces_the_output_comes(cuts: list[int]) -> None:
    text = b"loss=1\nx\n\nacc=0.5\r\nloss=2.25\nlast=7"
    places = sorted({min(cut, len(text)) for cut in cuts} | {0, len(text)})

    chunks = [text[start:end] for start, end in itertools.pairwise(places)]

    assert scan(b"loss=\xff1\n", *chunks) == {"loss": 2.25, "acc": 0.5, "last": 7.0}


@pytest.mark.parametrize(("length", "counts"), [(64 * 1024, True), (64 * 1024 + 1, False), (300_000, False)])
@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_line_is_searched_up_to_64_kibibytes(length: int, end: bytes, *, counts: bool) -> None:
    text = b"a=1\n" + b"loss=1".ljust(length) + end

    for piece in (1000, 10**6):
        found = scan(*(text[start : start + piece] for start in range(0, len(text), piece)))
        assert found == ({"a": 1.0, "loss": 1.0} if counts else {"a": 1.0})


def test_an_endless_line_takes_no_memory_and_what_follows_it_is_read_again() -> None:
    found = launch.Stream(metric(source="stdout"))
    for _ in range(5):
        found.feed(b"loss=9 " + b"1" * 65536)
    kept = len(found.rest)
    found.feed(b"loss=9" + b" " * 10 + b"\nloss=1\n")

    assert kept == 64 * 1024 + 1
    assert found.gathered.metrics == {"loss": 1.0}


@pytest.mark.parametrize(
    "line", [b"loss=" + b"1" * 65_000 + b"x", b"loss=" + b" " * 65_000 + b"x", b"a" * 65_000]
)
def test_a_hostile_line_takes_no_quadratic_time(line: bytes) -> None:
    assert scan(line + b"\n") == {}


def test_lines_on_stdout_are_the_report_where_the_sweep_says_so(trial_folder: TrialFolder) -> None:
    trial_folder.changes = {"metric": {"name": "val/loss", "source": "stdout"}}
    trial_folder.command = shell(
        "echo epoch 1; echo val/loss=0.5; echo seconds=3; echo val/loss=0.25; echo val/loss=9 >&2;"
        "echo bad=nan; printf '{\"val/loss\": 7}' > $SWEEP_RESULT; printf last=1"
    )

    record = trial_folder.try_once()

    assert (record["status"], record["exit"]) == ("ok", 0)
    assert record["metrics"] == {"val/loss": 0.25, "seconds": 3.0, "last": 1.0}
    assert record["details"] == {"bad": "nan"}


def test_artifacts_enter_the_record_in_order_with_size_and_digest(trial_folder: TrialFolder) -> None:
    trial_folder.command = shell(
        'cd "$SWEEP_ARTIFACTS"; mkdir -p z/y;'
        "printf model > model.pt; : > empty; printf b > z/b; printf c > z/y/c;"
        "printf 'ü' > 'größe 1'; ln -s model.pt link; ln -s /etc etc; ln -s nowhere gone; mkfifo pipe;"
        "printf '{\"test_accuracy\": 1}' > $SWEEP_RESULT"
    )

    record = trial_folder.try_once()

    found = [(item["path"], item["bytes"], item["sha256"]) for item in record["artifacts"]]
    contents = {"empty": b"", "größe 1": "ü".encode(), "model.pt": b"model", "z/b": b"b", "z/y/c": b"c"}
    assert found == [(path, len(content), sha256(content)) for path, content in contents.items()]
    assert record["details"] == {}


def test_a_large_artifact_is_read_in_pieces(tmp_path: Path) -> None:
    content = bytes(range(256)) * 10_000
    (tmp_path / "large").write_bytes(content)
    (tmp_path / os.fsdecode(b"a\xff")).touch()

    (odd, large), left_out = launch.list_artifacts(str(tmp_path))

    assert odd["path"] == "a\\xff", "a name that is no text is shown escaped"
    assert large == {"path": "large", "bytes": 2_560_000, "sha256": sha256(content)}
    assert left_out == 0


def test_an_artifact_with_a_path_too_long_or_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    folder = tmp_path / ("d" * 250)
    folder.mkdir()
    (folder / ("f" * 247)).touch()
    (folder / ("g" * 248)).touch()
    os.mknod(tmp_path / "pipe", 0o600 | 0o010000)
    if os.getuid() != 0:
        (tmp_path / "secret").touch(mode=0o000)

    listed, left_out = launch.list_artifacts(str(tmp_path))

    assert [item["path"] for item in listed] == [f"{'d' * 250}/{'f' * 247}"]
    assert len(json.dumps(listed[0]["path"])) == 500
    assert left_out == (1 if os.getuid() == 0 else 2)


def test_a_thousand_artifacts_are_listed_and_others_counted(trial_folder: TrialFolder) -> None:
    trial_folder.command = python(
        "import os\n"
        "os.chdir(os.environ['SWEEP_ARTIFACTS'])\n"
        "for number in range(1002): open(f'{number:04}', 'w').close()\n"
    )

    record = trial_folder.try_once()

    listed = json.loads((trial_folder.results / "uid-1.artifacts").read_bytes())
    assert [item["path"] for item in listed] == [f"{number:04}" for number in range(1000)]
    assert record["details"]["artifacts_left_out"] == 2


def test_artifacts_swapped_for_a_link_lead_nowhere(trial_folder: TrialFolder) -> None:
    (trial_folder.root / "else").mkdir()
    (trial_folder.root / "else" / "secret").touch()
    trial_folder.command = shell(
        f'rmdir "$SWEEP_ARTIFACTS"; ln -s {trial_folder.root}/else "$SWEEP_ARTIFACTS"'
    )

    assert trial_folder.try_once()["artifacts"] == []
