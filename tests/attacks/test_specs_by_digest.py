"""Bytes that a lock happens to name are put in the place of a spec, and rows under a lock that claims its spec."""

from pathlib import Path

import pytest

from sweepledger.errors import SpecError
from tests.operations.test_check_hostile import resign
from tests.operations.test_collect import column, leave, stored
from tests.repository import Sandbox, replace_in


@pytest.fixture
def cancelled(sandbox: Sandbox) -> Sandbox:
    """A batch that its merged spec cancels, after the spec that it was made from."""
    sandbox.merged()
    sandbox.cancel(push=True)
    return sandbox


def test_the_spec_from_before_a_cancellation_is_not_put_back(cancelled: Sandbox) -> None:
    cancelled.git("checkout", "-q", "HEAD~1", "--", "sweeps/peak.yaml")
    cancelled.commit("Tidy up")

    assert cancelled.codes(base="origin/main") == {"cancel-removed"}


def test_nor_is_it_removed_before_the_batch_is_recorded(cancelled: Sandbox) -> None:
    cancelled.git("rm", "-q", "sweeps/peak.yaml")
    cancelled.commit("Tidy up")

    assert cancelled.codes(base="origin/main") == {"spec-removed"}


ENTRIES = (
    "cancel: []",
    "# cancel: none",
    *(f"cancel: [peak-b{rest}]" for rest in ("9-00000000", "10-00000000")),
)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("entry", [*ENTRIES, "cancel: [peak-b1-ffffffff]"])
def test_nor_is_an_entry_replaced(cancelled: Sandbox, entry: str) -> None:
    lines = (cancelled.root / "sweeps/peak.yaml").read_text().splitlines()
    kept = [line for line in lines if "cancel" not in line and "peak-b1" not in line]
    cancelled.commit("Tidy up", {"sweeps/peak.yaml": "\n".join([*kept, entry]) + "\n"})

    assert "cancel-removed" in cancelled.codes(base="origin/main")


def test_a_further_cancellation_is_allowed(cancelled: Sandbox) -> None:
    cancelled.merged(xs="1, 2, 3, 4")
    cancelled.cancel()

    assert cancelled.codes(base="origin/main") == set()


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "file", ["sweeps/other.yaml", "launch.json", "batch.json", "hyperparams.csv", "job.yaml"]
)
def test_neither_a_file_that_the_lock_names_nor_another_spec_is_the_spec(sandbox: Sandbox, file: str) -> None:
    sandbox.merged("other")
    folder = f"overlays/active/{sandbox.merged()}/"
    content = (sandbox.root / (file if "/" in file else folder + file)).read_bytes()
    (sandbox.root / "sweeps/peak.yaml").write_bytes(content)
    sandbox.commit("Tidy up")

    with pytest.raises(SpecError):
        sandbox.check(base="origin/main")


def test_a_row_that_the_spec_cannot_produce_is_not_in_it(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.spec(xs="1, 2, 99")
    (forged,) = [one.batch for one in sandbox.generate() if one.batch]
    sandbox.spec(xs="1, 2, 3")
    lock = sandbox.root / "overlays/active" / forged.name / "batch.json"
    claimed = forged.lock.spec.digest
    honest = sandbox.workspace.sweeps()[0].digest
    replace_in(lock, claimed, honest)
    resign(lock.parent)
    sandbox.publish("Past the check")
    batch = stored(sandbox)
    assert batch.lock.spec.digest == honest
    for index in range(3):
        leave(tmp_path / "results", batch, index)

    sandbox.collect(tmp_path / "results", {batch.name})

    assert column(sandbox, "in_spec") == ["true", "true", "false"]
