"""Batches of launcher and record version 1, of an earlier release: they are checked and recorded as they were."""

import shutil
from pathlib import Path

import pytest

from sweepledger.commands.check import check
from sweepledger.commands.collection.results_commit import commit_results
from sweepledger.commands.repository import batch_records, costs
from sweepledger.commands.repository.base_files import write_bases
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.commands.verify import verify
from sweepledger.formats import record_json
from sweepledger.repo import batches
from sweepledger.repo.batches import StoredBatch
from sweepledger.structs.record import Record
from tests.commands.test_collect import leave, target
from tests.golden.test_golden import SETTINGS
from tests.repository import Sandbox

BATCHES = Path(__file__).parent / "first_version"
CASES = Path(__file__).parents[1] / "golden/cases"


@pytest.fixture(params=["indexed", "jobs"])
def batch(request: pytest.FixtureRequest, sandbox: Sandbox) -> StoredBatch:
    """Merge a batch of version 1, as an earlier release generated it."""
    sandbox.write("sweepledger.yaml", SETTINGS)
    sandbox.write("code/train.py", "print('the same code for ever')\n")
    shutil.copytree(CASES / request.param / "sweeps", sandbox.root / "sweeps")
    shutil.copytree(BATCHES / request.param, sandbox.root / "overlays/active")
    (stored,) = batches.in_work_tree(sandbox.root)
    write_bases(sandbox.root, stored.lock.bases)
    sandbox.commit("As the release before generated it")
    sandbox.push()
    return stored


@pytest.mark.sampled(1)
def test_it_passes_the_check_and_its_bases_stay_frozen(
    sandbox: Sandbox, batch: StoredBatch, needs_kustomize: None
) -> None:
    assert (batch.lock.max_disruptions, batch.lock.record_version) == (None, 1)
    assert check(Workspace.find(sandbox.root)).problems == ()

    base = sandbox.root / "base" / batch.lock.bases[1] / "job.yaml"
    base.write_text(base.read_text() + "# a remark\n")

    problems = check(Workspace.find(sandbox.root)).problems
    assert "base-changed" in {problem.code for problem in problems}


@pytest.mark.sampled(1)
def test_it_is_recorded_and_verified_in_the_first_form(
    sandbox: Sandbox, batch: StoredBatch, tmp_path: Path
) -> None:
    data = None if batch.lock.program.data is None else batch.lock.program.data.digest
    for index in range(batch.lock.trials):
        leave(tmp_path, batch, index, data=data)

    (made,) = commit_results(target(sandbox), tmp_path, {batch.name})

    assert made.corrupt == ()
    sandbox.pull()
    lines = (sandbox.root / batch_records.records_file(batch)).read_text().splitlines()
    assert len(lines) == batch.lock.trials
    for line in lines:
        record = record_json.from_line(line)
        assert isinstance(record, Record)
        assert (record.version, record_json.to_line(record)) == (1, line)
    assert all(not sweep.differences for sweep in verify(Workspace.find(sandbox.root)).sweeps)


def test_no_disruption_is_reserved_for_it(batch: StoredBatch) -> None:
    run = costs.run_of(batch)

    assert run is not None
    assert run.max_trial_seconds == run.timeout_seconds * (batch.lock.retries + 1)


def test_a_record_of_the_second_version_is_none_of_its(
    batch: StoredBatch, tmp_path: Path, sandbox: Sandbox
) -> None:
    leave(tmp_path, batch, 0, version=2, disruptions=0, environment=None)

    (made,) = commit_results(target(sandbox), tmp_path, {batch.name})

    assert made.corrupt.count("foreign") == 1
