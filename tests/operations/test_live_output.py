"""`sweep logs --follow`: what trials print while they run; the run goes on while the lines are waited for."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sweepledger.engine.local.events import PodEnded, PodStarted
from sweepledger.errors import RepositoryError, UsageError
from sweepledger.operations.run import RunEvent, RunOptions, SweepRun
from sweepledger.repo.state import create_state
from sweepledger.verbs.logs import LONGEST_LINE, OutputLine, OutputStream
from sweepledger.verbs.logs import follow_output as follow
from tests.repository import Sandbox

PROGRAM = """import os, sys, time
x = sys.argv[1].split("=")[1]
print(f"begin {x}", flush=True)
print("epoch 1/2\\repoch 2/2\\r", end="", file=sys.stderr, flush=True)
while not os.path.exists(f"GATE{x}"):
    time.sleep(0.01)
open(os.environ["SWEEP_RESULT"], "w").write('{"score": 1}')
print(f"\\x1b[2Jend {x}", end="", flush=True)
"""


class Watched:
    """A run of two trials at once, each until its gate opens, which goes on whenever somebody waits."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self.folder = folder
        self.workspace = sandbox.workspace
        self.state = create_state(self.workspace.repository)
        self.events: Iterator[RunEvent] = SweepRun.prepare(self.workspace, ("peak",)).run(
            RunOptions(self.state)
        )
        self.trials: dict[int, str] = {}

    def start(self) -> None:
        """Go on until both trials run."""
        while len(self.trials) < 2:
            event = next(self.events)
            if isinstance(event, PodStarted):
                self.trials[event.attempt.index + 1] = event.attempt.trial

    def wait(self, _: float = 0) -> None:
        next(self.events, None)

    def follow(self, reference: str) -> Iterator[OutputLine]:
        return follow(self.workspace, reference, state=self.state, wait=self.wait)

    def open_gate(self, x: int) -> None:
        (self.folder / f"gate{x}").touch()


@pytest.fixture
def watched(sandbox: Sandbox, tmp_path: Path) -> Watched:
    sandbox.name_person()
    sandbox.write("code/train.py", PROGRAM.replace("GATE", str(tmp_path / "gate")))
    sandbox.spec(xs="1, 2", parallelism=2)
    sandbox.publish("Ask")
    return Watched(sandbox, tmp_path)


def test_lines_of_a_sweep_come_while_its_trials_run_until_the_batch_ends(watched: Watched) -> None:
    watched.start()
    seen: list[OutputLine] = []

    for line in watched.follow("peak"):
        seen.append(line)
        if sum("begin" in text for _, text in seen) == 2:
            watched.open_gate(2)
        if "end 2" in line[1]:
            watched.open_gate(1)

    for x in (1, 2):
        own = [text for trial, text in seen if trial == watched.trials[x]]
        assert sorted(own) == [f"\x1b[2Jend {x}", f"begin {x}", "epoch 2/2"]
    assert seen.index((watched.trials[2], "\x1b[2Jend 2")) < seen.index((watched.trials[1], "\x1b[2Jend 1"))
    with pytest.raises(UsageError, match="no trial of 'peak' runs here"):
        next(watched.follow("peak"))


def test_one_trial_is_followed_to_its_own_end_from_its_beginning(watched: Watched) -> None:
    watched.start()
    watched.open_gate(2)

    texts = [text for _, text in watched.follow(watched.trials[2])]

    assert sorted(texts) == ["\x1b[2Jend 2", "begin 2", "epoch 2/2"]
    assert next(text for _, text in watched.follow(watched.trials[2])) == "begin 2", "also after its end"
    watched.open_gate(1)
    assert any(isinstance(event, PodEnded) for event in watched.events)


def test_an_interrupted_run_ends_the_lines_with_the_way_to_go_on(watched: Watched) -> None:
    watched.start()
    lines = watched.follow("peak")
    next(lines)

    watched.events.close()  # type: ignore[attr-defined]  # it is a generator

    with pytest.raises(RepositoryError, match="nothing runs peak here any more") as refused:
        list(lines)
    assert refused.value.hint == "`sweep run peak` continues it"


def test_characters_lines_and_bars_that_are_written_in_parts_come_whole() -> None:
    content = "é" * 3 + "\n" + "loss 1\rloss 2\rloss" + " 3\n" + "x" * (LONGEST_LINE + 1)
    ends = iter((1, 18, None))
    stream = OutputStream(lambda start: content.encode()[start : next(ends)])

    lines = [list(stream.lines(is_last=False)) for _ in range(3)]

    assert lines == [[], ["ééé", "loss 1"], ["loss 3", "x" * (LONGEST_LINE + 1)]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--failed",), "--follow cannot be combined with --failed"),
        (("--format", "json"), "--follow cannot be combined with --format json"),
        (("--by-pod",), "kubectl logs --follow"),
    ],
)
def test_what_cannot_be_followed_is_refused(sandbox: Sandbox, options: tuple[str, ...], message: str) -> None:
    done = sandbox.sweep("logs", "peak", "--follow", *options)

    assert done.returncode == 2
    assert message in done.stdout + done.stderr
