"""Writers that publish, are killed in the middle and come again, in any order: every row once, none lost."""

import shutil
import tempfile
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from tests.faults import writers
from tests.faults.shim import Mode, Plan, Shim
from tests.faults.worlds import fsck, git
from tests.repository import Sandbox

WRITERS = 3


class Writers(RuleBasedStateMachine):
    """A repository, and what each writer has been promised."""

    shim: ClassVar[Shim]

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.sandbox = Sandbox.create(self.folder)
        self.clones = writers.clones(self.sandbox.remote, self.folder, WRITERS)
        self.promised: set[str] = set()
        self.owed: set[tuple[int, str]] = set()
        self.next = 0

    def publish(self, writer: int, row: str, plan: Plan | None = None) -> int:
        clone = self.clones[writer]
        return self.shim.run(["publish-row", str(clone), row], cwd=self.folder, plan=plan).code

    def row(self) -> str:
        self.next += 1
        return f"row-{self.next:03d}"

    @rule(writer=st.integers(0, WRITERS - 1))
    def writes(self, writer: int) -> None:
        row = self.row()
        assert self.publish(writer, row) == 0
        self.promised.add(row)

    @rule(writer=st.integers(0, WRITERS - 1), at=st.integers(1, 40))
    def is_killed(self, writer: int, at: int) -> None:
        row = self.row()
        if self.publish(writer, row, Plan(Mode.KILL, at)) == 0:
            self.promised.add(row)
        else:
            self.owed.add((writer, row))

    @rule()
    def comes_again(self) -> None:
        for writer, row in sorted(self.owed):
            assert self.publish(writer, row) == 0
            self.promised.add(row)
        self.owed.clear()

    @invariant()
    def every_promised_row_is_there_once(self) -> None:
        if git(self.sandbox.remote, "ls-tree", "-r", "--name-only", "main", writers.SUMMARY):
            rows = git(self.sandbox.remote, "show", f"main:{writers.SUMMARY}").splitlines()
        else:
            rows = []
        assert rows == sorted(set(rows))
        assert self.promised <= set(rows) <= self.promised | {row for _, row in self.owed}
        assert git(self.sandbox.remote, "rev-list", "--count", "main") == str(len(rows) + 1)
        assert git(self.sandbox.remote, "rev-list", "--merges", "--count", "main") == "0"

    def teardown(self) -> None:
        self.comes_again()
        self.every_promised_row_is_there_once()
        for folder in (self.sandbox.remote, *self.clones):
            fsck(folder)
        shutil.rmtree(self.folder)


@pytest.mark.parametrize(
    ("examples", "steps"),
    [(2, 4), pytest.param(6, 8, marks=pytest.mark.full_suite("more points of failure"))],
)
def test_every_row_lands_once(
    shim: Shim, monkeypatch: pytest.MonkeyPatch, examples: int, steps: int
) -> None:
    monkeypatch.setattr(Writers, "shim", shim, raising=False)

    run_state_machine_as_test(Writers, settings=settings(max_examples=examples, stateful_step_count=steps))
