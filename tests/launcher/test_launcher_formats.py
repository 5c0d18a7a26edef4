"""The formats of files that other libraries write: CSV, event files of TensorBoard, and lines by patterns."""

import re
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.launcher.folders import TrialFolder, launch, metric, python, report_of, shell

# --------------------------------------------------------------------------------------------------------- CSV

LIGHTNING = """\
\ufeffepoch,step,train_loss,val_acc,note
0,49,0.5,,
0,49,,0.81,
1,99,0.25,,"a, b"
1,99,,0.93,
"""


def test_a_csv_file_with_sparse_rows_is_a_curve(tmp_path: Path) -> None:
    report = report_of(LIGHTNING.replace("\n", "\r\n"), tmp_path, name="val_acc", format="csv")

    assert report.metrics == {"epoch": 1.0, "train_loss": 0.25, "val_acc": 0.93}
    assert (report.details, report.reason) == ({"note": "a, b"}, None)
    assert report.curves == {
        "val_acc": [[49, 0.81], [99, 0.93]],
        "epoch": [[49, 0.0], [99, 1.0]],
        "train_loss": [[49, 0.5], [99, 0.25]],
    }


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("loss\n1,2\n", "line 2: it has 2 cells, and the header 1"),
        ("loss,loss\n1,2\n", "line 1: an object has the same name twice"),
        ('loss\n"1\n', "line 2: unexpected end of data"),
        (b"loss\n\xff\n", "line 2: 'utf-8' codec"),
    ],
)
def test_a_file_that_is_not_csv_is_invalid(content: str | bytes, message: str, tmp_path: Path) -> None:
    report = report_of(content, tmp_path, format="csv")

    assert report.reason == "result-invalid"
    assert message in report.message


@pytest.mark.parametrize(
    ("content", "message"), [("acc\n1\n", "; its numbers: acc"), ("loss\nn/a\n", ", and 'n/a' is no number")]
)
def test_a_csv_file_without_the_objective_misses_it(content: str, message: str, tmp_path: Path) -> None:
    report = report_of(content, tmp_path, format="csv")

    assert report.reason == "metric-missing"
    assert report.message == f"there is no number in a column loss in $SWEEP_RESULT{message}"


# ---------------------------------------------------------------------------------------------- files by path


def in_csv(path: str) -> dict[str, Any]:
    return {"metric": {"name": "test_accuracy", "source": "result", "format": "csv", "path": path}}


def test_the_newest_file_of_this_attempt_is_read(trial_folder: TrialFolder) -> None:
    (trial_folder.code / "logs/version_9").mkdir(parents=True)
    (trial_folder.code / "logs/version_9/metrics.csv").write_text("test_accuracy\n0.99\n")
    trial_folder.changes = in_csv("logs/version_*/metrics.csv")
    trial_folder.command = shell(
        "mkdir logs/version_0 logs/version_1;"
        "printf 'test_accuracy\\n0.2\\n' > logs/version_1/metrics.csv; sleep 0.02;"
        "printf 'test_accuracy\\n0.3\\n' > logs/version_0/metrics.csv"
    )

    assert trial_folder.try_once()["metrics"] == {"test_accuracy": 0.3}


LINKED = ": there is a link, which is not followed; write the file itself"
UNCHANGED = (
    ": the file existed before the trial started and its bytes did not change; remove it from the code"
)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        pytest.param("""printf '{"test_accuracy": 0.99}' > metrics.json""", UNCHANGED, id="the same bytes"),
        pytest.param("rm metrics.json", "", id="removed"),
        pytest.param("mv metrics.json a; ln -s a metrics.json", LINKED, id="a link"),
        pytest.param("ln -sf $SWEEP_TRIAL metrics.json", LINKED, id="a link to another file"),
    ],
)
def test_an_unchanged_file_does_not_count(trial_folder: TrialFolder, command: str, said: str) -> None:
    trial_folder.code.mkdir()
    (trial_folder.code / "metrics.json").write_text('{"test_accuracy": 0.99}')
    trial_folder.changes = {"metric": {"name": "test_accuracy", "source": "result", "path": "metrics.json"}}
    trial_folder.command = shell(command)

    record = trial_folder.try_once()

    assert (record["reason"], record["metrics"]) == ("metric-missing", {})
    assert record["details"]["error"] == f"the trial wrote no metrics.json{said}"


def test_a_path_may_name_the_folders_of_the_trial(trial_folder: TrialFolder) -> None:
    trial_folder.changes = in_csv("$SWEEP_ARTIFACTS/${SWEEP_TRIAL_ID}/**/*.csv")
    trial_folder.command = shell(
        "mkdir -p $SWEEP_ARTIFACTS/$SWEEP_TRIAL_ID/a/b; cd $SWEEP_ARTIFACTS/$SWEEP_TRIAL_ID/a/b;"
        "printf 'test_accuracy\\n0.4\\n' > m.csv"
    )

    assert trial_folder.try_once()["metrics"] == {"test_accuracy": 0.4}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source": "stdout", "path": "x"}, "path needs a file, and stdout is none"),
        ({"source": "stdout", "format": "csv"}, "the format csv needs a file, and stdout is none"),
        ({"format": "tensorboard"}, "the format tensorboard needs a path"),
        ({"format": "regex"}, "patterns and the format regex need each other"),
        ({"patterns": ["(?P<value>x)"]}, "patterns and the format regex need each other"),
        ({"path": 5}, "path must be str, got 5"),
    ],
)
def test_members_that_do_not_fit_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(launch.Refused, match=re.escape(message)):
        metric(**changes)


# ---------------------------------------------------------------------------------------------------- patterns


NESTED = "must not refer to its groups, nor repeat what has repeats or alternatives"
LOOSE = "could take too long, because it can divide a line in more than 10000000 ways"


def matched(text: str, *patterns: str, **changes: Any) -> Any:
    complete = metric(source="stdout", format="regex", patterns=list(patterns), **changes)
    stream = launch.Stream(complete)
    stream.feed(text.encode())
    return launch.read_report(stream, launch.Files("/nowhere"), complete)


def test_patterns_find_names_values_and_steps() -> None:
    report = matched(
        "Epoch 3/9 - loss: 0.25 - acc: 0.9\nEpoch 4/9 - loss: nan - acc: 91e-2\nhello\n",
        r"(?P<name>loss|acc): (?P<value>\S+)",
        r"Epoch (?P<step>\d+)/.* loss: (?P<value>\S+)",
    )

    assert report.metrics.keys() == {"loss", "acc"}
    assert (report.metrics["acc"], report.curves["loss"]) == (0.91, [[3, 0.25], [4, None]])


def test_a_progress_bar_is_several_lines() -> None:
    report = matched("loss 0.5\rloss 0.25\rloss 0.125\n", r"^loss (?P<value>\S+)")

    assert report.metrics == {"loss": 0.125}


def test_a_pattern_is_applied_to_the_first_1000_characters() -> None:
    assert matched(f"{'x' * 991}loss 0.5 \n", r"loss (?P<value>[0-9.]+)").metrics == {"loss": 0.5}
    assert matched(f"{'x' * 994}loss 0.5\n", r"loss (?P<value>[0-9.]+)").metrics == {}
    assert matched(f"{'x' * 1000}loss 0.5\n", r"loss (?P<value>[0-9.]+)").metrics == {}


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(", "is not a pattern"),
        (r"(?P<value>x)(?P<other>y)", "must have the group value"),
        (r"(?P<value>(a+)+)", NESTED),
        (r"(?P<value>(a|ab)*)", NESTED),
        (r"(?P<value>(?:(?:xa*)y){2,})", NESTED),
        (r"(?P<value>x)\1", NESTED),
        (r".*(?P<value>x).*y.*z", LOOSE),
        (r"\S+(?P<value>[^a]+)\D*x", LOOSE),
        (r"a{0,99}[aA]*(?:a+)?(?P<value>ab)", LOOSE),
        (r"(?i)x*X*x*(?P<value>X)", LOOSE),
        (r"(?P<value>[ab]*[ab]*[ab]*)$", LOOSE),
        (r"[y-z]*z*z*z*(?P<value>\d)", LOOSE),
        (f"{'a?' * 40}(?P<value>a)", LOOSE),
    ],
)
def test_a_pattern_that_could_take_long_is_refused(pattern: Any, message: str) -> None:
    with pytest.raises(launch.Refused, match=re.escape(message)):
        launch.check_pattern(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        r"\[(?P<step>\d+)/\d+\] .* val loss = +(?P<value>[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?) *\| time=\S+ s",
        r"(?P<name>[\w/]+)\s*[=:]\s*(?P<value>[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)",
        r"^.*epoch (?P<step>\d{1,6}).*loss=(?P<value>[^,]{1,20})",
        r"(?i)LOSS (?P<value>\d+)(?=\s|$)",
    ],
)
def test_the_usual_patterns_are_accepted(pattern: str) -> None:
    launch.check_pattern(pattern)


def test_patterns_are_judged_alike_in_every_python(any_python: str, trial_folder: TrialFolder) -> None:
    trial_folder.interpreter = any_python
    for number, (pattern, code) in enumerate(
        [(r"acc (?P<value>\d+(?:\.\d+)?)", 0), (r"acc (?P<value>(\d+)+)", 43), (r".*.*.*(?P<value>\S+)", 43)]
    ):
        trial_folder.changes = {
            "metric": {"name": "acc", "source": "stdout", "format": "regex", "patterns": [pattern]}
        }
        trial_folder.command = shell("echo acc 0.5")

        assert trial_folder.run(SWEEP_POD_UID=f"u{number}").code in {code, 0} - ({0} if code else set())


# ------------------------------------------------------------------------------------------------- TensorBoard


def varint(value: int) -> bytes:
    value %= 2**64
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number: int, content: bytes | int) -> bytes:
    """Write a field of a message, as the specification of protobuf has it."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def crc32c(content: bytes) -> int:
    """Compute CRC-32C bit by bit, without a table."""
    crc = 0xFFFFFFFF
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(content: bytes) -> bytes:
    crc = crc32c(content)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) % 2**32)


def frame(event: bytes) -> bytes:
    length = struct.pack("<Q", len(event))
    return length + masked(length) + event + masked(event)


def simple(value: float) -> bytes:
    return varint(2 << 3 | 5) + struct.pack("<f", value)


def tensor(dtype: int, content: bytes, shape: bytes = field(2, b"")) -> bytes:
    return field(8, field(1, dtype) + shape + content)


def event(step: int, *values: tuple[str, bytes]) -> bytes:
    wall_time = varint(1 << 3 | 1) + struct.pack("<d", 1.7e9)
    summary = b"".join(field(1, field(1, tag.encode()) + value) for tag, value in values)
    return frame(wall_time + field(2, step) + field(5, summary))


VERSION = frame(varint(1 << 3 | 1) + struct.pack("<d", 1.7e9) + field(3, b"brain.Event:2"))


def events(tmp_path: Path, content: bytes, name: str = "events.out.tfevents.1.host", **changes: Any) -> Any:
    files = launch.Files("", str(tmp_path), [str(tmp_path)], shown="runs", is_folder=True)
    (tmp_path / name).write_bytes(content)
    return launch.read_report(None, files, metric(format="tensorboard", path="x", **changes))


def test_the_checksum_is_that_of_the_published_vectors() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    for content in (b"", b"\0" * 32, b"\xff" * 32, bytes(range(256))):
        assert launch.masked_crc(content) == struct.unpack("<I", masked(content))[0]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (simple(0.5), 0.5),
        (simple(float("nan")), None),
        (tensor(1, field(4, struct.pack("<f", 0.5))), 0.5),
        (tensor(1, field(5, struct.pack("<f", 0.5))), 0.5),
        (tensor(1, field(5, struct.pack("<f", 0.5)), field(2, field(2, field(1, 1)))), 0.5),
        (tensor(2, field(6, struct.pack("<d", 0.1))), 0.1),
        (tensor(2, field(4, struct.pack("<d", 0.1))), 0.1),
        (tensor(3, field(7, varint(-3))), -3.0),
        (tensor(9, field(10, varint(2**40))), float(2**40)),
        (tensor(9, field(10, 7)), 7.0),
        (tensor(19, field(13, varint(0x3800))), 0.5),
        (tensor(1, b""), 0.0),
    ],
    ids=lambda value: value.hex() if isinstance(value, bytes) else str(value),
)
def test_scalars_are_read_in_both_forms(value: bytes, expected: float | None, tmp_path: Path) -> None:
    report = events(tmp_path, VERSION + event(10, ("loss", value)) + event(20, ("acc", simple(0.25))))

    assert report.curves["loss"] == [[10, expected]]
    assert report.metrics["acc"] == 0.25
    assert report.details == {}


@pytest.mark.parametrize(
    "value",
    [
        tensor(1, field(5, struct.pack("<2f", 1, 2)), field(2, field(2, field(1, 2)))),
        tensor(7, field(8, b"text")),
        field(4, b"picture"),
    ],
)
def test_what_is_no_scalar_is_passed_over(value: bytes, tmp_path: Path) -> None:
    report = events(tmp_path, VERSION + event(1, ("x", value), ("loss", simple(0.5))))

    assert (report.metrics, report.details) == ({"loss": 0.5}, {})


@pytest.mark.parametrize(("place", "later"), [(-6, [[3, 0.25]]), (0, [])], ids=["content", "length"])
def test_a_record_with_a_wrong_checksum_is_skipped_and_all_after_a_wrong_length(
    place: int, later: list[list[float]], tmp_path: Path
) -> None:
    good, bad = event(1, ("loss", simple(0.5))), bytearray(event(2, ("loss", simple(9))))
    bad[place] ^= 1

    content = VERSION + good + bytes(bad) + event(3, ("loss", simple(0.25)), ("acc", simple(1)))
    report = events(tmp_path, event(0, ("loss", simple(1))) + content)

    assert report.curves["loss"] == [[0, 1.0], [1, 0.5], *later]
    assert report.details == {"events_skipped": 1}


@pytest.mark.parametrize("cut", [1, 30])
def test_a_record_that_is_being_written_is_left_for_later(cut: int, tmp_path: Path) -> None:
    last = event(2, ("loss", simple(9)))

    report = events(tmp_path, VERSION + event(1, ("loss", simple(0.5))) + last[:-cut])

    assert (report.metrics, report.details) == ({"loss": 0.5}, {})


def test_large_records_are_passed_over_in_constant_memory(tmp_path: Path) -> None:
    large = b"\0" * (3 << 20)
    length = struct.pack("<Q", len(large))
    picture = length + masked(length) + large + b"none"

    report = events(
        tmp_path, event(1, ("loss", simple(1))) + picture + event(2, ("loss", simple(0.5))) + picture
    )

    assert (report.curves["loss"], report.details) == ([[1, 1.0], [2, 0.5]], {})


def test_all_event_files_of_this_attempt_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    (tmp_path / "events.out.tfevents.0.old").write_bytes(event(9, ("loss", simple(9))))
    files = launch.Files("", str(tmp_path), [str(tmp_path)], is_folder=True)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "events.out.tfevents.2.h").write_bytes(event(3, ("loss", simple(0.25))))
    (tmp_path / "b" / "notes.txt").write_text("no events")
    (tmp_path / "a.tfevents.1").write_bytes(event(1, ("loss", simple(1.0))) + event(2, ("loss", simple(0.5))))

    report = launch.read_report(None, files, metric(format="tensorboard", path="x"))

    assert report.curves["loss"] == [[1, 1.0], [2, 0.5], [3, 0.25]]


def test_a_tag_that_is_missing_is_a_missing_metric(tmp_path: Path) -> None:
    report = events(tmp_path, event(1, ("acc", simple(1))))

    assert (report.reason, report.metrics) == ("metric-missing", {"acc": 1.0})
    assert report.message == "there is no scalar loss in runs"


@settings(max_examples=60, deadline=None)
@given(content=st.binary(max_size=60), place=st.integers(0, 200), byte=st.integers(0, 255))
def test_no_content_of_an_event_file_ends_the_launcher(content: bytes, place: int, byte: int) -> None:
    whole = bytearray(
        VERSION + event(1, ("loss", simple(0.5))) + frame(content) + event(2, ("loss", simple(1)))
    )
    whole[place % len(whole)] = byte
    gathered = launch.Gathered(metric(format="tensorboard", path="x"), launch.no_value)
    reader = launch.Events(gathered)

    for start in range(0, len(whole), 7):
        reader.feed(bytes(whole[start : start + 7]))

    assert reader.is_lost or reader.skipped or gathered.metrics.get("loss", 1) == 1


# ----------------------------------------------------------------------------------------------- while it runs

RULE = {"rule": "median", "goal": "minimize", "value": "best", "thresholds": [[2, 0.3]]}


def test_early_stopping_follows_event_files_too(trial_folder: TrialFolder) -> None:
    content = [VERSION + event(1, ("loss", simple(0.9))), event(2, ("loss", simple(0.8)))]
    trial_folder.changes = {"metric": metric(format="tensorboard", path="runs"), "stop": [RULE]}
    trial_folder.command = python(
        "import os, time\n"
        "os.makedirs('runs/a')\n"
        "with open('runs/a/events.out.tfevents.1', 'ab') as file:\n"
        f"    for content in {content!r}:\n"
        "        file.write(content[:9]); file.flush(); file.write(content[9:]); file.flush()\n"
        "time.sleep(600)"
    )

    record = trial_folder.try_once()

    assert (record["status"], record["reason"]) == ("pruned", "median")
    assert record["stopped"] == {"rule": "median", "step": 2, "threshold": 0.3, "seen": None}


def test_a_file_that_is_written_anew_with_other_columns_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    complete = metric(format="csv")
    follower = launch.Follower({"stop": [RULE], "metric": complete}, launch.Files(str(path)), lambda: None)
    path.write_text("step,loss\n1,0.1\n")
    follower.look()
    before = follower.low

    path.write_text("step,acc,loss\n1,0.5,0.4\n2,0.5,0.5\n")

    assert (before, follower.look(), follower.low) == (0.1, True, 0.4)


@pytest.mark.full_suite("needs tensorboard, and torch or tensorflow, in this environment")
def test_files_of_the_real_libraries_are_read(tmp_path: Path) -> None:
    tensorboard = pytest.importorskip(
        "torch.utils.tensorboard", reason="skipped: tensorboard is not installed"
    )
    files = launch.Files("", str(tmp_path), [str(tmp_path)], is_folder=True)
    with tensorboard.SummaryWriter(tmp_path) as writer:
        for step in range(5):
            writer.add_scalar("loss", 1 / (step + 1), step, new_style=bool(step % 2))

    report = launch.read_report(None, files, metric(format="tensorboard", path="x"))

    assert [step for step, _ in report.curves["loss"]] == [0, 1, 2, 3, 4]
    assert report.curves["loss"][4][1] == pytest.approx(0.2)
    assert report.details == {}
