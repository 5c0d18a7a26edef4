"""Reports of other versions: compared with what their results commit wrote, while numbers are recomputed."""

import json
from pathlib import Path

import pytest

from sweepledger.commands.collection.results_commit import commit_results
from sweepledger.commands.generate import generate
from sweepledger.commands.repository.workspace import Target
from sweepledger.commands.verification.rebuild import rebuild_results
from sweepledger.commands.verify import verify
from sweepledger.repo import batches
from sweepledger.repo.batches import StoredBatch
from sweepledger.results.outcomes import BatchRecords
from sweepledger.results.provenance import FIRST_REPORT_WITH_ALL_METRICS, REPORT_VERSION
from tests.commands.test_collect import leave
from tests.commands.test_read import recorded
from tests.repository import Sandbox

PROVENANCE = "results/peak/provenance.json"
README = "results/peak/README.md"
FIGURE = "results/peak/figures/trials.svg"
SUMMARY = "results/peak/summary.csv"
Place = tuple[str, str, str]


def set_version(sandbox: Sandbox, version: object) -> None:
    provenance = json.loads((sandbox.root / PROVENANCE).read_text())
    provenance.pop("report", None)
    if version is not None:
        provenance["report"] = version
    sandbox.write(PROVENANCE, json.dumps(provenance, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def edit(sandbox: Sandbox, path: str, old: str, new: str) -> None:
    text = (sandbox.root / path).read_text()
    assert old in text
    sandbox.write(path, text.replace(old, new, 1))


def as_another_version_wrote_it(sandbox: Sandbox, version: int | None) -> None:
    """Rewrite the results commit as if another version of the report had written it."""
    set_version(sandbox, version)
    sandbox.write(README, "# peak\n\nThe same numbers in other words.\n")
    sandbox.write(FIGURE, "<svg><!-- drawn otherwise --></svg>\n")
    sandbox.write("results/peak/figures/of-another-version.svg", "<svg/>\n")
    sandbox.git("add", "--all")
    sandbox.git("commit", "-q", "--amend", "--no-edit")


def differences(sandbox: Sandbox) -> dict[Place, str]:
    return {
        (difference.path, difference.row, difference.column): difference.message
        for sweep in verify(sandbox.workspace, revision="HEAD").sweeps
        for difference in sweep.differences
    }


@pytest.fixture
def batch(sandbox: Sandbox, tmp_path: Path) -> StoredBatch:
    return recorded(sandbox, tmp_path / "volume")


def test_a_new_report_names_its_version_and_is_recomputed(sandbox: Sandbox, batch: StoredBatch) -> None:
    assert json.loads((sandbox.root / PROVENANCE).read_text())["report"] == REPORT_VERSION
    assert differences(sandbox) == {}

    edit(sandbox, README, "# peak", "# Peak")
    sandbox.commit("Edit it")

    assert "by the records" in differences(sandbox)[README, "line 7", "byte 3"]


@pytest.mark.parametrize("version", [None, REPORT_VERSION + 1], ids=["first", "later"])
def test_an_untouched_report_of_another_version_verifies(
    sandbox: Sandbox, batch: StoredBatch, version: int | None
) -> None:
    as_another_version_wrote_it(sandbox, version)
    sandbox.write("docs/later.md", "unrelated\n")
    sandbox.commit("Go on")

    assert differences(sandbox) == {}


def test_a_report_of_before_all_metrics_were_needed_verifies(sandbox: Sandbox, tmp_path: Path) -> None:
    spec = sandbox.spec()
    metrics = "metrics:\n  - {name: score, goal: maximize}\n  - {name: latency, goal: minimize}\n"
    text = spec.read_text().replace("metric: {name: score, goal: maximize}\n", metrics)
    spec.write_text(text.replace("method: grid", "method: nsga2\nseed: 1\nrounds: {size: 3, max: 1}"))
    (generated,) = generate(sandbox.workspace, ["peak"])
    assert generated.batch is not None
    sandbox.commit("Ask for two metrics")
    (stored,) = batches.in_work_tree(sandbox.root)
    for index in range(3):
        leave(tmp_path / "volume", stored, index)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BatchRecords, "needed_metrics", property(lambda self: self.lock.metrics[:1]))
        commit_results(Target(sandbox.workspace.repository, None, "main"), tmp_path / "volume", {stored.name})
    sandbox.git("reset", "-q", "--hard")

    as_another_version_wrote_it(sandbox, FIRST_REPORT_WITH_ALL_METRICS - 1)
    assert ",ok," in (sandbox.root / SUMMARY).read_text()
    assert differences(sandbox) == {}

    set_version(sandbox, FIRST_REPORT_WITH_ALL_METRICS)
    sandbox.commit("Claim that it needs all of them")
    assert (SUMMARY, stored.rows[0].trial, "status") in differences(sandbox)


def test_a_squash_keeps_a_report_of_another_version_valid(sandbox: Sandbox, batch: StoredBatch) -> None:
    as_another_version_wrote_it(sandbox, None)
    sandbox.git("reset", "-q", "--soft", "HEAD~2")
    sandbox.commit("Everything at once")

    assert differences(sandbox) == {}


def test_an_edited_report_of_another_version_is_named_with_its_results_commit(
    sandbox: Sandbox, batch: StoredBatch
) -> None:
    as_another_version_wrote_it(sandbox, None)
    origin = sandbox.head()
    edit(sandbox, README, "other words", "better words")
    edit(sandbox, FIGURE, "drawn", "painted")
    sandbox.write("results/peak/figures/more.svg", "<svg/>\n")
    (sandbox.root / "results/peak/figures/of-another-version.svg").unlink()
    sandbox.commit("Edit it")

    found = differences(sandbox)

    assert {path for path, _, _ in found} == {
        README,
        FIGURE,
        "results/peak/figures/more.svg",
        "results/peak/figures/of-another-version.svg",
    }
    assert f"as commit {origin[:12]} wrote it" in found[README, "line 3", "byte 21"]


def test_a_report_that_is_edited_together_with_its_provenance_is_found(
    sandbox: Sandbox, batch: StoredBatch
) -> None:
    """The commit that restores the provenance is the last that touched it, but did not record the results."""
    as_another_version_wrote_it(sandbox, None)
    edit(sandbox, README, "other words", "better words")
    edit(sandbox, PROVENANCE, '"version": 1', '"version": 7')
    sandbox.commit("Edit both")
    edit(sandbox, PROVENANCE, '"version": 7', '"version": 1')
    sandbox.commit("Restore one")

    assert {path for path, _, _ in differences(sandbox)} == {README}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("version", [None, REPORT_VERSION + 1, "other"], ids=["first", "later", "text"])
def test_a_current_report_cannot_be_passed_off_as_another_version(
    sandbox: Sandbox, batch: StoredBatch, version: object
) -> None:
    set_version(sandbox, version)
    edit(sandbox, README, "# peak", "# Peak")
    sandbox.commit("Claim that another version wrote it")

    assert set(differences(sandbox)) == {(PROVENANCE, "", "report"), (README, "line 7", "byte 3")}


def test_a_report_of_another_version_cannot_be_passed_off_as_a_third(
    sandbox: Sandbox, batch: StoredBatch
) -> None:
    as_another_version_wrote_it(sandbox, None)
    set_version(sandbox, REPORT_VERSION + 1)
    edit(sandbox, README, "other words", "better words")
    sandbox.commit("Claim that a third version wrote it")

    assert set(differences(sandbox)) == {(PROVENANCE, "", "report"), (README, "line 3", "byte 21")}


def test_an_edited_number_below_a_report_of_another_version_is_found(
    sandbox: Sandbox, batch: StoredBatch
) -> None:
    as_another_version_wrote_it(sandbox, None)
    edit(sandbox, SUMMARY, ",0.5,1.5,", ",0.75,1.5,")
    sandbox.commit("Improve it")

    assert set(differences(sandbox)) == {(SUMMARY, batch.rows[1].trial, "metrics.score")}


def test_an_edited_record_below_a_report_of_another_version_is_found(
    sandbox: Sandbox, batch: StoredBatch
) -> None:
    as_another_version_wrote_it(sandbox, None)
    records = f"results/peak/records/{batch.name}.jsonl"
    edit(sandbox, records, '"seconds":1.5', '"seconds":2.5')
    sandbox.commit("Say that it took longer")

    found = differences(sandbox)

    assert (records, batch.rows[0].trial, "seconds") in found
    assert README not in {path for path, _, _ in found}


def test_the_next_batch_replaces_the_whole_report(
    sandbox: Sandbox, batch: StoredBatch, tmp_path: Path
) -> None:
    as_another_version_wrote_it(sandbox, None)
    (sandbox.root / "results/peak/figures/of-another-version.svg").unlink()
    sandbox.git("add", "--all")
    sandbox.git("commit", "-q", "--amend", "--no-edit")

    recorded(sandbox, tmp_path / "volume", xs="1, 2, 3, 4")

    assert json.loads((sandbox.root / PROVENANCE).read_text())["report"] == REPORT_VERSION
    assert differences(sandbox) == {}


def test_a_report_before_messages_of_failed_trials_verifies_without_them(
    sandbox: Sandbox, batch: StoredBatch, tmp_path: Path
) -> None:
    """The summary of an earlier version has no column of messages, although the records have them."""
    records = f"results/peak/records/{batch.name}.jsonl"
    edit(
        sandbox,
        records,
        '"status":"ok"',
        '"details":{"error":"ValueError: a"},"reason":"exit-1","status":"failed"',
    )
    for path, content in rebuild_results(sandbox.workspace.repository, sandbox.commit("Fail"), "peak").files:
        sandbox.write(f"results/peak/{path}", content.decode())
    head, *rows = (sandbox.root / SUMMARY).read_text().splitlines()
    assert head.endswith(",error")
    assert [row.rpartition(",")[2] for row in rows] == ['"ValueError: a"', "", ""]
    sandbox.write(SUMMARY, "".join(f"{line.rpartition(',')[0]}\n" for line in (head, *rows)))
    set_version(sandbox, 2)
    sandbox.commit("Record it as the second version did")

    assert differences(sandbox) == {}
