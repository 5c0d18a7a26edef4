"""The collector's credential deletes, rewrites or adds recorded results, or files that only look like results."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sweepledger.verbs.verify import verify_since
from tests.operations.test_bootstrap import push
from tests.operations.test_pushed_rounds import pristine, searching
from tests.repository import Sandbox, append_to

__all__ = ["pristine", "searching"]  # fixtures

Attack = Callable[[Path, str], object]
"""Changes a work tree; the name is that of a recorded batch of sweep `hill`."""


@pytest.fixture
def recorded(searching: Sandbox) -> Sandbox:
    """A repository whose branch has the records of a batch, and the next round."""
    assert push(searching) == ""
    return searching


def recorded_batch(sandbox: Sandbox) -> str:
    (batch,) = (path.name for path in (sandbox.root / "overlays/archive").glob("hill-*"))
    return batch


def wrote(path: str, text: str = "x\n") -> Attack:
    def attack(root: Path, batch: str) -> None:
        file = root / path.format(batch=batch, active=next((root / "overlays/active").glob("hill-*")).name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    return attack


def edited(path: str, edit: Callable[[str], str]) -> Attack:
    def attack(root: Path, batch: str) -> None:
        file = root / path.format(batch=batch)
        assert edit(file.read_text()) != file.read_text()
        file.write_text(edit(file.read_text()))

    return attack


def removed(pattern: str) -> Attack:
    def attack(root: Path, batch: str) -> None:
        files = [path for path in root.glob(pattern.format(batch=batch)) if path.is_file()]
        assert files
        for file in files:
            file.unlink()

    return attack


def linked(root: Path, _: str) -> None:
    report = root / "results/hill/README.md"
    report.unlink()
    report.symlink_to("summary.csv")


RECORDS = "results/hill/records/{batch}.jsonl"
ATTACKS: dict[str, Attack] = {
    "the records of a batch deleted": removed(RECORDS),
    "all results of a sweep deleted": removed("results/hill/**/*"),
    "a value rewritten": edited(RECORDS, lambda text: text.replace('"score":', '"score":9', 1)),
    "a record cut off": edited(RECORDS, lambda text: text.rpartition("{")[0]),
    "the summary deleted": removed("results/hill/summary.csv"),
    "the lock of an archived batch deleted": removed("overlays/archive/{batch}/batch.json"),
    "a record added": edited(RECORDS, lambda text: text + text.splitlines()[-1] + "\n"),
    "an archived table rewritten": edited(
        "overlays/archive/{batch}/hyperparams.csv", lambda text: text + "x"
    ),
    "figures two folders deeper": wrote("results/hill/x/y/figures/a.svg"),
    "records in a folder of another name": wrote("results/hill/z/records/{batch}.jsonl"),
    "records in a folder of a batch": wrote("results/hill/records/{batch}/{batch}.jsonl"),
    "a file among the batches": wrote("overlays/active/{batch}.yaml"),
    "a folder among the announcements": wrote("clusters/flux/active/{batch}/job.yaml"),
    "a sweep that does not exist": wrote("results/dale/README.md"),
    "records of a sweep that does not exist": wrote("results/dale/records/dale-b1-00000000.jsonl"),
    "a name that is a pattern": wrote("results/h.ll/README.md"),
    "a name in other letters": wrote("results/Hill/README.md"),
    "30 MB of records": wrote("results/hill/records/{active}.jsonl", "x" * 30_000_000),
    "70 MB of a report": wrote("results/hill/README.md", "x" * 70_000_000),
    "records of a batch that still runs": wrote("results/hill/records/{active}.jsonl"),
    "a further part of recorded records": wrote("results/hill/records/{batch}-001.jsonl"),
    "records of no batch": wrote("results/hill/records/hill-b9-00000000.jsonl"),
    "records of another sweep": wrote("results/hill/records/dale-b1-00000000.jsonl"),
    "an executable report": lambda root, _: (root / "results/hill/README.md").chmod(0o755),
    "a link as a report": linked,
    "a hidden file": wrote("results/hill/.gitattributes"),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("attack", ATTACKS)
def test_what_is_recorded_stays_and_nothing_else_comes(attack: str, recorded: Sandbox) -> None:
    ATTACKS[attack](recorded.root, recorded_batch(recorded))
    recorded.commit("Results")

    assert "may push nothing but results" in push(recorded)


def test_a_late_record_is_pushed_by_a_person_alone(recorded: Sandbox) -> None:
    path = recorded.root / RECORDS.format(batch=recorded_batch(recorded))
    append_to(path, "late\n")
    recorded.commit("Correct a missing row")

    assert f"{path.relative_to(recorded.root)} is recorded" in push(recorded)
    assert push(recorded, pusher="ada") == ""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("ref", ["refs/heads/other", "refs/tags/v1", "refs/notes/x", "refs/replace/{tip}"])
def test_no_other_ref_is_pushed(ref: str, recorded: Sandbox) -> None:
    tip = recorded.git("rev-parse", "HEAD").strip()

    assert "may push nothing but results" in push(recorded, f"HEAD:{ref.format(tip=tip)}")


def test_reports_of_recorded_sweeps_are_written_again(recorded: Sandbox) -> None:
    recorded.write("results/hill/README.md", "# hill\n")
    recorded.commit("Reports", {"results/hill/figures/curves.svg": "<svg/>\n"})
    assert push(recorded) == ""
    recorded.git("rm", "-q", "results/hill/figures/curves.svg")
    recorded.commit("A figure less")

    assert push(recorded) == ""


def test_a_batch_that_a_person_cancelled_gets_its_records_once(recorded: Sandbox) -> None:
    (batch,) = recorded.active()
    recorded.git("mv", f"overlays/active/{batch}", f"overlays/archive/{batch}")
    recorded.git("rm", "-q", f"clusters/flux/active/{batch}.yaml")
    recorded.commit("Cancel it")
    assert push(recorded, pusher="ada") == ""
    recorded.commit("Record a part", {f"results/hill/records/{batch}-001.jsonl": ""})
    assert "without the first part" in push(recorded)
    recorded.git("reset", "-q", "--hard", "HEAD^")
    recorded.commit("Record it", {f"results/hill/records/{batch}.jsonl": ""})
    assert push(recorded) == ""
    recorded.commit("Record it again", {f"results/hill/records/{batch}.jsonl": "again\n"})

    assert "is recorded" in push(recorded)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("attack", list(ATTACKS)[:4])
def test_on_a_host_without_hooks_the_branch_shows_it(attack: str, recorded: Sandbox) -> None:
    ATTACKS[attack](recorded.root, recorded_batch(recorded))
    recorded.commit("Results")

    assert not verify_since(recorded.workspace, "origin/main").is_good
