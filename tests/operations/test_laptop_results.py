"""Results made on a laptop, in a pull request: accepted if the settings say so, always marked, and never verified."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import sweepledger
from sweepledger.operations.reports import results, status
from sweepledger.operations.reports.comparison import compare_sweeps
from sweepledger.operations.verification.batch_audit import SweepAudit
from sweepledger.structs.names import LAPTOP_WARNING
from sweepledger.verbs.log import log
from sweepledger.verbs.show import trial_details
from sweepledger.verbs.site import build_site
from sweepledger.verbs.verify import VerificationState
from tests.repository import Sandbox, answer, append_to, replace_in

SETTINGS = "version: 1\nresults: {{from_pull_request: {mode}}}\n"
MARK = "results/peak/laptop.txt"


@pytest.fixture(scope="module")
def proposal(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """A branch with a batch that ran here, on a remote with another that was merged before."""
    made = Sandbox.create(tmp_path_factory.mktemp("proposal"))
    made.name_person()
    made.write("sweepledger.yaml", SETTINGS.format(mode="signed"))
    made.spec(xs="0")
    made.commit("Ask")
    list(made.run("peak"))
    made.publish("Accept results made on laptops", {"sweepledger.yaml": SETTINGS.format(mode="marked")})
    made.git("switch", "-q", "-c", "laptop")
    made.spec(xs="0, 2")
    made.spec("lone", xs="1")
    list(made.run("lone", "peak"))
    return made


@pytest.fixture
def laptop(proposal: Sandbox, tmp_path: Path) -> Sandbox:
    copy = Sandbox(tmp_path / "remote.git", tmp_path / "work tree")
    copy.copy_from(proposal)
    return copy


def codes(sandbox: Sandbox) -> set[str]:
    return {problem.code for problem in sandbox.check(base="origin/main").problems}


def set_policy(sandbox: Sandbox, mode: str) -> None:
    """Merge other settings before the proposal."""
    sandbox.git("switch", "-q", "main")
    sandbox.publish("Change the settings", {"sweepledger.yaml": SETTINGS.format(mode=mode)})
    sandbox.git("switch", "-q", "laptop")
    sandbox.git("merge", "-q", "--no-edit", "main")


def test_a_marked_batch_is_labelled_wherever_it_is_shown(laptop: Sandbox, tmp_path: Path) -> None:
    workspace = laptop.workspace
    (batch,) = (laptop.root / MARK).read_text().split()
    best, *_ = results.rank_trials(workspace, "peak").rows

    assert codes(laptop) == set()
    assert batch in (laptop.root / "results/peak/README.md").read_text()
    provenance = json.loads((laptop.root / "results/peak/provenance.json").read_text())
    assert [each.get("made_on") for each in provenance["batches"].values()] == [None, "laptop"]
    assert results.rank_trials(workspace, "peak").laptop == (batch,)
    assert trial_details(workspace, best.trial).is_laptop
    assert [
        "on a laptop" in entry.text
        for entry in answer(log, workspace, "peak")["entries"]
        if entry.kind == "results"
    ] == [False, True]
    assert any("laptop" in warning for warning in compare_sweeps(workspace, "peak@b1", "peak@b2").warnings)
    assert {each.sweep: each.laptop for each in status.sweep_statuses(workspace, state=tmp_path)}["peak"] == (
        batch,
    )


def test_the_python_api_labels_marked_batches(laptop: Sandbox) -> None:
    peak = sweepledger.open(laptop.root).sweep("peak")
    (batch,) = (laptop.root / MARK).read_text().split()

    assert peak.laptop == (batch,)
    assert {(trial.batch == batch, trial.made_on) for trial in peak.trials} == {
        (False, None),
        (True, "laptop"),
    }
    assert peak.trials.to_pandas()["made_on"].tolist().count("laptop") == 1
    assert f"<th>{LAPTOP_WARNING}</th><td>{batch}</td>" in peak._repr_html_()


def test_the_site_labels_marked_batches_on_every_page(laptop: Sandbox, tmp_path: Path) -> None:
    (batch,) = (laptop.root / MARK).read_text().split()

    build_site(laptop.workspace, tmp_path / "site")

    def page(path: str) -> str:
        return (tmp_path / "site" / path).read_text()

    assert page("index.html").count(f'<p class="label">{LAPTOP_WARNING}</p>') == 2, "both sweeps"
    assert f"{LAPTOP_WARNING}: {batch}" in page("sweeps/peak/index.html")
    assert f'"laptop":["{batch}"]' in page("sweeps/peak/trials.html")
    assert f'"laptop":["{batch}"]' in page("compare.html")


def test_a_marked_batch_is_never_verified_whoever_signs(laptop: Sandbox) -> None:
    lone, peak = laptop.verify().sweeps

    assert lone.state is VerificationState.LAPTOP
    assert peak.state is VerificationState.UNSIGNED, "the first batch is neither signed nor marked"
    assert lone.differences == peak.differences == ()
    assert [peak.commits, len(peak.unsigned)] == [2, 1]

    edit_records(laptop, "lone-b1-*", '"score":', '"score":1')
    laptop.commit("Edit what a laptop recorded")

    lone, _ = laptop.verify().sweeps
    assert [lone.state, len(lone.unsigned)] == [VerificationState.DIFFERS, 1]


def unmarked(laptop: Sandbox) -> None:
    (laptop.root / MARK).unlink()


def another_marked(laptop: Sandbox) -> None:
    first = next((laptop.root / "results/peak/records").glob("peak-b1-*")).stem
    (laptop.root / MARK).write_text(f"{first}\n{(laptop.root / MARK).read_text()}")


def own_text(laptop: Sandbox) -> None:
    append_to(laptop.root / "results/peak/README.md", "\nIt is the best of all.\n")


def other_number(laptop: Sandbox) -> None:
    replace_in(laptop.root / "results/peak/summary.csv", "0.5", "0.9")


def image(laptop: Sandbox) -> None:
    """Claim an image, and compute everything else from that claim."""
    edit_records(laptop, "peak-b2-*", '"process"', f'"registry.example.org/x@sha256:{"0" * 64}"')
    laptop.amend()
    for path, content in SweepAudit(laptop.workspace.repository, "HEAD", "peak").rebuilt_files():
        (laptop.root / "results/peak" / path).write_bytes(content)


def record_of_the_merged_batch(laptop: Sandbox) -> None:
    edit_records(laptop, "peak-b1-*", '"score":', '"score":1')


def edit_records(laptop: Sandbox, batch: str, old: str, new: str) -> None:
    (path,) = (laptop.root / "results").glob(f"*/records/{batch}")
    replace_in(path, old, new)


def no_records(laptop: Sandbox) -> None:
    (path,) = (laptop.root / "results/peak/records").glob("peak-b2-*")
    path.unlink()


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("forge", "code"),
    [
        (unmarked, "laptop-results"),
        (another_marked, "laptop-results"),
        (own_text, "laptop-results"),
        (other_number, "laptop-results"),
        (image, "laptop-results"),
        (no_records, "laptop-results"),
        (record_of_the_merged_batch, "history-unsigned"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_forged_results_are_refused(laptop: Sandbox, forge: Callable[[Sandbox], None], code: str) -> None:
    forge(laptop)
    if laptop.git("status", "--porcelain"):
        laptop.commit("Forge")

    assert code in codes(laptop)


def test_other_settings_refuse_what_a_laptop_recorded(laptop: Sandbox) -> None:
    set_policy(laptop, "refuse")

    assert "history-unsigned" in codes(laptop)


def test_settings_of_the_pull_request_itself_accept_nothing(laptop: Sandbox) -> None:
    set_policy(laptop, "signed")
    laptop.commit("Accept it myself", {"sweepledger.yaml": SETTINGS.format(mode="marked")})

    assert {"history-unsigned", "batch-moved"} <= codes(laptop)
