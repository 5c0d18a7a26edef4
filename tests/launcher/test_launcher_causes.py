"""What the launcher records of a failed command: the last exception of its stderr, else the last line."""

import pytest

from tests.launcher.folders import REPORT, TrialFolder, launch, shell

HEADER = "Traceback (most recent call last):"
FRAME = '  File "train.py", line 1, in <module>'


def cause(text: str, *secrets: bytes) -> str:
    words = launch.LastWords()
    for start in range(0, len(text.encode()), 7):
        words.feed(text.encode()[start : start + 7])
    said: str = words.cause(secrets)
    return said


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([HEADER, FRAME, "    train()", "ValueError: rate is 3", ""], "ValueError: rate is 3"),
        ([HEADER, FRAME, "KeyError: 'lr'", "wandb: find logs at ./wandb"], "KeyError: 'lr'"),
        (
            [HEADER, FRAME, "KeyError: 1", "", "During the handling …", "", HEADER, FRAME, "OSError: 2"],
            "OSError: 2",
        ),
        ([HEADER, FRAME, "A: 1", "Exception ignored in: <f>", HEADER, FRAME, "B: 2"], "A: 1"),
        ([HEADER, FRAME], FRAME.strip()),
        (
            ["train.py: error: unrecognized arguments: --lr", "", "  "],
            "train.py: error: unrecognized arguments: --lr",
        ),
        (["two\t  words\r"], "two words"),
        (["x" * 1000], "x" * 300),
        (["", " "], ""),
    ],
    ids=["exception", "later line", "chained", "ignored", "cut", "no exception", "blanks", "long", "nothing"],
)
def test_the_cause_is_the_last_exception_or_the_last_line(lines: list[str], expected: str) -> None:
    assert cause("\n".join(lines)) == expected


def test_the_values_of_secrets_are_left_out() -> None:
    assert cause("ValueError: no access with s3cr3t\n", b"s3cr3t", b"") == "ValueError: no access with ***"
    assert cause("no access with s3\x1b[1mcr3t", b"s3cr3t") == "no access with ***"
    assert cause("bad key: line two", b"line one\nline two") == "bad key: ***"
    assert cause("y" * 20_000 + "tail of a secret", b"secret" * 4000) == ""


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (shell("printf 'ValueError: rate \\033[31m is 3\\n' >&2; exit 42"), "ValueError: rate is 3"),
        (shell("echo warning >&2; exit 0"), "the trial wrote no "),
        (shell("echo a warning >&2; kill -9 $$"), "a warning"),
        (shell(f"echo a warning >&2; {REPORT}"), None),
    ],
    ids=["exception", "no metric", "signal", "success"],
)
def test_a_record_says_why(command: list[object], said: str | None, trial_folder: TrialFolder) -> None:
    trial_folder.command = command

    error = trial_folder.try_once()["details"].get("error")

    assert error is None if said is None else said in error


def test_a_secret_in_a_message_is_not_recorded(trial_folder: TrialFolder) -> None:
    path = trial_folder.root / "secret"
    path.write_text("s3cr3t\n")
    trial_folder.changes = {"secrets": {"HUB_KEY": str(path)}}
    trial_folder.command = shell('echo "no access with $HUB_KEY" >&2; exit 1')

    assert trial_folder.try_once()["details"]["error"] == "no access with ***"
