"""Specs that `sweep generate` and `sweep check` need not read: their newest batch was made from them as they are."""

import pytest

from sweepledger.operations.generation.next_batch import EditedError
from sweepledger.verbs.generate import generate_changed
from tests.repository import Sandbox, append_to


def changed(sandbox: Sandbox) -> tuple[list[str], list[str]]:
    made = generate_changed(sandbox.workspace)
    return [one.sweep.name for one in made.generated], sorted(path.stem for path in made.unchanged)


def test_only_changed_specs_are_read(sandbox: Sandbox) -> None:
    sandbox.merged("other")
    sandbox.merged("peak")
    assert changed(sandbox) == ([], ["other", "peak"])

    sandbox.spec("peak", xs="1, 2, 3, 4")

    assert changed(sandbox) == (["peak"], ["other"])
    assert len(sandbox.active()) == 3
    sandbox.git("checkout", "--", "sweeps/peak.yaml")
    assert changed(sandbox) == (["peak"], ["other"]), "the proposed batch of the restored spec is removed"
    assert len(sandbox.active()) == 2
    append_to(sandbox.root / "sweepledger.yaml", "# a remark\n")
    assert changed(sandbox) == (["other", "peak"], [])


def test_a_changed_table_is_a_change_of_the_spec_that_names_it(sandbox: Sandbox) -> None:
    sandbox.write_spec("listed", method="list", assignments="points.csv")
    sandbox.write("sweeps/points.csv", "x\n1\n2\n")
    generate_changed(sandbox.workspace)
    sandbox.publish("Two points")
    assert changed(sandbox) == (["listed"], [])

    sandbox.write("sweeps/points.csv", "x\n1\n2\n3\n")

    assert "drift" in {problem.code for problem in sandbox.check().problems}
    assert changed(sandbox) == (["listed"], [])
    assert len(sandbox.active()) == 2


@pytest.mark.parametrize("kept", ["in a commit", "from git", "ignored"])
def test_an_edited_active_batch_of_an_unchanged_spec_is_refused(sandbox: Sandbox, kept: str) -> None:
    name = sandbox.merged("peak")
    path = f"overlays/active/{name}/{'notes.log' if kept == 'ignored' else 'hyperparams.csv'}"
    sandbox.spec("other")
    sandbox.write(".git/info/exclude", "*.log\n")
    if kept == "from git":
        sandbox.git("update-index", "--assume-unchanged", path)
    sandbox.write(path, "")
    if kept == "in a commit":
        sandbox.git("add", path)
        sandbox.git("commit", "-q", "-m", "Edit", "--", path)

    with pytest.raises(EditedError, match=path.rpartition("/")[2]):
        generate_changed(sandbox.workspace)
