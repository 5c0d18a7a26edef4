"""Whatever is edited later is found, and named; what is made to fit is signed by nobody."""

import random
from pathlib import Path

import pytest

from sweepledger.operations.verification.batch_audit import SweepAudit
from sweepledger.verbs.verify import VerificationState
from tests.operations.mutating import mutate
from tests.operations.test_read import recorded
from tests.repo.test_signatures import key, line, signed_commit
from tests.repository import Sandbox, replace_in

SHORT = 10
"""`python benchmarks/mutations.py` makes a thousand."""


def test_every_edit_has_row_and_column(sandbox: Sandbox, tmp_path: Path) -> None:
    recorded(sandbox, tmp_path / "volume", "1, 2")
    recorded(sandbox, tmp_path / "volume", "1, 2, 3")
    start = sandbox.head()
    rng = random.Random(7)  # noqa: S311 - the same edits every time
    missed = []
    for number in range(SHORT):
        sandbox.git("reset", "-q", "--hard", start)
        sandbox.git("clean", "-q", "-fd", "results", "overlays")
        done = mutate(sandbox.root, "peak", rng)
        sandbox.commit("Edit it")
        (verification,) = sandbox.verify("peak", revision="HEAD").sweeps
        if verification.state is not VerificationState.DIFFERS or not done.is_told(verification.differences):
            missed.append((number, done, verification.differences))

    assert missed == []


@pytest.mark.sampled(1)
@pytest.mark.parametrize("how", ["follow-up", "rewrite"])
def test_results_of_forged_records_are_never_signed(sandbox: Sandbox, tmp_path: Path, how: str) -> None:
    listed = key(tmp_path, "listed")
    sandbox.publish("List a key", {"sweepledger.yaml": f"version: 1\nsigners: ['{line(listed)}']\n"})
    batch = recorded(sandbox, tmp_path / "volume")
    sandbox.git("reset", "-q", "--soft", "HEAD~1")
    signed_commit(sandbox, listed, "Record it")
    assert sandbox.verify().is_good

    replace_in(sandbox.root / f"results/peak/records/{batch.name}.jsonl", '"score":0.5', '"score":0.75')
    forged = sandbox.commit("Forge")
    for name, content in SweepAudit(sandbox.workspace.repository, forged, "peak").rebuilt_files():
        (sandbox.root / "results/peak" / name).write_bytes(content)
    sandbox.git("add", "--all")
    sandbox.git("commit", "-q", "--amend", "-m", "Make it fit")
    if how == "rewrite":
        sandbox.git("reset", "-q", "--soft", "HEAD~2")
        sandbox.commit("Record it")

    (verification,) = sandbox.verify().sweeps

    assert (verification.differences, verification.state) == ((), VerificationState.UNSIGNED)
    assert not sandbox.verify().is_good
