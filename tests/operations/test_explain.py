"""`sweep compare --explain`: factors that were planted in a repository, and proposals that are valid specs."""

from pathlib import Path

import pytest

from sweepledger.errors import RepositoryError, UsageError
from sweepledger.operations.reports.difference_causes import explain_sweeps, write_proposals
from sweepledger.repo import batches
from sweepledger.results.causes import Factor
from tests.operations.test_collect import leave
from tests.operations.test_compare import recorded
from tests.repository import Sandbox, replace_in

DIGESTS = {name: f"sha256:{number * 64}" for name, number in (("a", "1"), ("b", "2"))}
DATASETS = "".join(f"  {name}: {{digest: '{digest}', claim: {name}}}\n" for name, digest in DIGESTS.items())


def record_again(sandbox: Sandbox, volume: Path, name: str, gain: float) -> None:
    """Run the trials of a sweep again with the current code, each better by `gain` and a little noise."""
    assert sandbox.generate(name, update=True)
    sandbox.commit("Request again")
    batch = batches.of_sweep(sandbox.batches(), name)[-1]
    data = batch.lock.program.data
    digest = data.digest if data else None
    for index, row in enumerate(batch.rows):
        x = row.values["x"]
        assert isinstance(x, int)
        leave(volume, batch, index, metrics={"score": x / 10 + gain + x % 3 / 1000}, data=digest)
    assert sandbox.collect(volume, {batch.name}, push=False)


def test_better_code_is_named_with_its_files(sandbox: Sandbox, tmp_path: Path) -> None:
    before = recorded(sandbox, tmp_path / "v", "peak", {x: x / 10 for x in range(1, 7)})
    sandbox.commit("Better code", {"code/train.py": "# better\n"})
    record_again(sandbox, tmp_path / "v", "peak", 0.05)

    text = sandbox.sweep("compare", f"peak@{before}", "peak", "--explain").stdout
    data = explain_sweeps(sandbox.workspace, f"peak@{before}", "peak").as_data()

    assert "why: code" in text
    assert "code/train.py: +1" in text
    assert (data["named"], data["is_noise"], data["proposals"]) == (("code",), False, ())
    (code,) = [factor for factor in data["factors"] if factor["factor"] == "code"]
    assert code["interval"]["low"] < code["effect"] < code["interval"]["high"]
    assert code["effect"] == pytest.approx(0.051, abs=0.001)
    with pytest.raises(UsageError, match="no sweep 'other'"):
        explain_sweeps(sandbox.workspace, "peak", "other")


def test_code_and_data_that_changed_together_need_one_sweep_more(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.commit("Add data", {"sweepledger.yaml": f"version: 1\ndatasets:\n{DATASETS}"})
    spec = sandbox.spec("peak", "1, 2, 3, 4")
    replace_in(spec, "run:\n", "run:\n  data: a\n")
    assert sandbox.generate()
    sandbox.commit("Request")
    batch = sandbox.batches()[-1]
    for index in range(4):
        leave(tmp_path / "v", batch, index, metrics={"score": index / 10}, data=DIGESTS["a"])
    assert sandbox.collect(tmp_path / "v", {batch.name}, push=False)
    sandbox.push()
    replace_in(spec, "data: a", "data: b")
    sandbox.commit("Better code and other data", {"code/train.py": "# better\n"})
    record_again(sandbox, tmp_path / "v", "peak", 0.3)

    explained = explain_sweeps(sandbox.workspace, "peak@b1", "peak@b2")

    assert explained.explanation.confounded == (Factor.CODE, Factor.DATA)
    assert explained.explanation.verdict == "the recorded trials cannot tell"
    (proposal,) = explained.proposals
    write_proposals(sandbox.workspace, explained.proposals)
    (parsed,) = sandbox.workspace.sweeps([proposal.name])
    assert (parsed.run.data, parsed.replicates) == ("a", 5)
    assert proposal.trials == 5
    assert proposal.notes == ()
    with pytest.raises(UsageError, match="exists"):
        write_proposals(sandbox.workspace, explained.proposals)

    sandbox.commit("Separate them")
    assert sandbox.generate(proposal.name)
    sandbox.commit("Request what separates them")
    separating = batches.of_sweep(sandbox.batches(), proposal.name)[-1]
    for index in range(separating.lock.trials):
        # The best of the old data with the new code: all of the gain is the code's.
        score = 0.701 + (index - 2) / 1000
        leave(tmp_path / "v", separating, index, metrics={"score": score}, data=DIGESTS["a"])
    assert sandbox.collect(tmp_path / "v", {separating.name}, push=False)

    separated = explain_sweeps(sandbox.workspace, "peak@b1", "peak@b2")
    assert separated.explanation.named == (Factor.CODE,)
    assert separated.proposals == ()


def test_without_replicates_two_configurations_need_replicates(sandbox: Sandbox, tmp_path: Path) -> None:
    recorded(sandbox, tmp_path / "v", "one", {1: 0.5, 2: 0.6})
    recorded(sandbox, tmp_path / "v", "two", {3: 0.7})
    recorded(sandbox, tmp_path / "v", "loss", {1: 0.5}, old="name: score", new="name: loss")

    explained = explain_sweeps(sandbox.workspace, "one", "two")

    assert explained.explanation.confounded == (Factor.VALUES,)
    assert explained.differences[Factor.VALUES] == ("x: 2 → 3",)
    (proposal,) = explained.proposals
    write_proposals(sandbox.workspace, explained.proposals)
    (parsed,) = sandbox.workspace.sweeps([proposal.name])
    assert (proposal.trials, parsed.replicates) == (10, 5)
    with pytest.raises(UsageError, match="one has score, maximize; loss has loss, maximize"):
        explain_sweeps(sandbox.workspace, "one", "loss")


def test_a_sweep_without_a_result_explains_nothing(sandbox: Sandbox, tmp_path: Path) -> None:
    recorded(sandbox, tmp_path / "v", "one", {1: 0.5})
    sandbox.spec("two", "1")
    assert sandbox.generate("two")
    sandbox.commit("Request")
    batch = batches.of_sweep(sandbox.batches(), "two")[-1]
    leave(tmp_path / "v", batch, 0, status="failed", reason="exit-1", metrics={})
    leave(tmp_path / "v", batch, 0, status="failed", reason="exit-1", metrics={}, attempt=2)
    assert sandbox.collect(tmp_path / "v", {batch.name}, push=False)

    with pytest.raises(RepositoryError, match="two: no trial is ok and has score"):
        explain_sweeps(sandbox.workspace, "one", "two")
