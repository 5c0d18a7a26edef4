import pytest

from sweepledger.errors import RepositoryError, SpecError
from sweepledger.operations.generation.next_batch import Generated
from sweepledger.repo import kustomize
from sweepledger.structs.run_config import Shape
from tests.builders import present
from tests.repository import Sandbox, append_to, followed_by, replace_in


def only(generated_batches: tuple[Generated, ...]) -> Generated:
    (generated_batch,) = generated_batches
    return generated_batch


def archive(sandbox: Sandbox, name: str) -> None:
    """Do what a results commit does to a batch."""
    sandbox.write(f"results/{name.partition('-')[0]}/records/{name}.jsonl", "")
    sandbox.git("mv", f"overlays/active/{name}", f"overlays/archive/{name}")
    sandbox.publish(f"results({name})")


def test_a_spec_becomes_a_batch_of_all_its_trials_once(sandbox: Sandbox) -> None:
    sandbox.spec()

    made = only(sandbox.generate())

    assert (made.trials, made.known) == (3, 0)
    assert sandbox.active() == [present(made.batch).name]
    (stored,) = sandbox.batches()
    assert stored.tree == present(made.batch).tree
    assert [row.values["x"] for row in stored.rows] == [1, 2, 3]
    before = {path: path.stat().st_mtime_ns for path in (sandbox.root / "overlays").rglob("*")}
    assert not only(sandbox.generate()).is_pending
    assert {path: path.stat().st_mtime_ns for path in (sandbox.root / "overlays").rglob("*")} == before


@pytest.mark.parametrize(
    ("former", "later", "shown"),
    [
        ("0, 0.5", "0.0, 0.50", "x: 0.0 is 0 in peak-b1-"),
        ("[1, 2], [3, 4]", "[1, 2], [3.0, 4]", "x: [3.0, 4] is [3, 4] in peak-b1-"),
        ("1e3, 0.5", "0.5, 1000.0", None),
    ],
)
def test_another_spelling_requests_nothing(
    sandbox: Sandbox, former: str, later: str, shown: str | None
) -> None:
    sandbox.merged(xs=former)
    sandbox.spec(xs=later)

    made = only(sandbox.generate())

    assert (made.batch, made.trials - made.known) == (None, 0)
    messages = [problem.message for problem in made.warnings if problem.code == "value-respelled"]
    assert len(messages) == (shown is not None)
    assert shown is None or shown in messages[0]


def test_an_added_value_makes_a_second_batch_with_only_the_new_trials(sandbox: Sandbox) -> None:
    first = sandbox.merged()
    sandbox.spec(xs="1, 2, 3, 4")

    made = only(sandbox.generate())

    assert made.batch is not None
    assert (made.batch.lock.number, made.batch.lock.parent, made.batch.lock.trials) == (2, first, 1)
    assert sandbox.active() == [first, made.batch.name]


def test_a_squash_merged_branch_makes_nothing_new(sandbox: Sandbox) -> None:
    sandbox.git("switch", "-q", "-c", "ask")
    sandbox.spec()
    sandbox.commit_batches("Ask")
    sandbox.commit("More", {"docs/readme.md": "words"})
    sandbox.git("switch", "-q", "main")
    sandbox.git("merge", "-q", "--squash", "ask")
    sandbox.publish("Ask (#1)")

    assert only(sandbox.generate()).batch is None


def test_changed_code_and_resources_ask_for_nothing_until_the_author_says_so(sandbox: Sandbox) -> None:
    sandbox.merged()
    sandbox.commit("Improve the code", {"code/train.py": "other code"})
    replace_in(sandbox.root / "sweeps/peak.yaml", "256Mi", "512Mi")
    assert only(sandbox.generate()).batch is None

    updated = sandbox.generate("peak", update=True)[0]

    assert updated.batch is not None
    assert (updated.batch.lock.number, updated.batch.lock.trials) == (2, 3)
    assert updated.batch.lock.program.code.tree == sandbox.git("rev-parse", "HEAD:code").strip()
    assert not only(sandbox.generate()).is_pending, "the update is the newest program"
    replace_in(sandbox.root / "sweeps/peak.yaml", "code/train.py,", "-O, code/train.py,")
    assert present(only(sandbox.generate()).batch).lock.trials == 3, "another command is another program"


@pytest.mark.parametrize("controller", ["none", "flux"])
def test_an_edited_spec_replaces_the_batch_that_was_not_merged_yet(sandbox: Sandbox, controller: str) -> None:
    sandbox.publish("Choose a controller", {"sweepledger.yaml": followed_by(controller)})
    sandbox.spec()
    first = only(sandbox.generate())
    sandbox.spec(xs="1, 2")

    second = only(sandbox.generate())

    assert [stored.name for stored in second.stale] == [present(first.batch).name]
    assert sandbox.active() == [present(second.batch).name]
    assert announced(sandbox) == (sandbox.active() if controller == "flux" else [])


@pytest.mark.parametrize("merged", [True, False], ids=["merged", "new"])
def test_a_tree_edited_by_hand_is_never_overwritten(sandbox: Sandbox, *, merged: bool) -> None:
    name = sandbox.merged() if merged else ""
    if not merged:
        sandbox.spec()
        made = only(sandbox.generate()).batch
        name = present(made).name
    edited = sandbox.root / "overlays/active" / name / "job.yaml"
    replace_in(edited, "completions: 3", "completions: 4")
    sandbox.spec(xs="7")

    with pytest.raises(
        RepositoryError, match=r"edited by hand; it is not overwritten:\n  changed  job.yaml"
    ) as caught:
        sandbox.generate()

    assert ("\n    -  completions: 3\n    +  completions: 4" in str(caught.value)) is merged
    assert "completions: 4" in edited.read_text()
    assert sandbox.active() == [name]


@pytest.mark.parametrize(
    ("old", "new", "code", "message"),
    [
        ("name: bad", "nome: bad", 1, "sweeps/bad.yaml:1:1"),
        ("path: code", "path: nowhere", 3, "sweeps/bad.yaml: nowhere/ is not a folder in the last commit"),
        ("command:", "constraints: ['x > 100']\ncommand:", 1, "sweeps/bad.yaml"),
    ],
    ids=["wrong", "without its code", "without trials"],
)
def test_a_broken_spec_that_is_not_named_stops_no_other(
    old: str, new: str, code: int, message: str, sandbox: Sandbox
) -> None:
    sandbox.spec("good")
    replace_in(sandbox.spec("bad"), old, new)
    with pytest.raises((SpecError, RepositoryError)):
        sandbox.generate("good", "bad")
    assert sandbox.active() == []

    done = sandbox.sweep("generate")

    assert done.returncode == code
    assert message in done.stderr
    assert [folder.partition("-b1-")[0] for folder in sandbox.active()] == ["good"]


def test_an_edited_batch_stops_every_sweep(sandbox: Sandbox) -> None:
    sandbox.merged("first")
    (name,) = sandbox.active()
    sandbox.write(f"overlays/active/{name}/batch.json", "edited\n")
    sandbox.spec("second")

    done = sandbox.sweep("generate")

    assert done.returncode == 3
    assert "was edited by hand" in done.stderr
    assert sandbox.active() == [name]


def test_the_foundation_is_laid_where_it_is_missing_and_left_alone_after(sandbox: Sandbox) -> None:
    sandbox.propose()
    for path in ("overlays/active/.gitkeep", "overlays/archive/.gitkeep", "base/trial/v1/job.yaml"):
        assert (sandbox.root / path).is_file()
    (made,) = sandbox.batches()
    laid = {
        str(path.relative_to(sandbox.root / "base")) for path in (sandbox.root / "base").glob("**/v[0-9]")
    }
    assert laid == set(made.lock.bases), "what no batch was made from is not there to be kept for ever"
    own = sandbox.write("base/launcher/v1/launch.py", "# our own\n")
    sandbox.propose(xs="5")

    assert own.read_text() == "# our own\n"
    (stored,) = sandbox.batches()
    (launcher,) = (
        made for made in kustomize.build(sandbox.root / stored.folder) if "launch.py" in made.get("data", {})
    )
    assert launcher["data"]["launch.py"] == "# our own\n"


@pytest.mark.parametrize(
    ("xs", "more", "shape"),
    [("1, 2", "", Shape.JOBS), ("1, 2, 3", "", Shape.INDEXED), ("1, 2", "  max_failed: 1\n", Shape.INDEXED)],
)
def test_the_shape_follows_from_trials(sandbox: Sandbox, xs: str, more: str, shape: Shape) -> None:
    append_to(sandbox.spec(xs=xs), more)

    assert sandbox.new_batch().lock.shape is shape


def announced(sandbox: Sandbox) -> list[str]:
    return sorted(path.stem for path in (sandbox.root / "clusters/flux/active").glob("*.yaml"))


def test_with_flux_a_file_that_was_not_written_any_more_is_written_next_time(sandbox: Sandbox) -> None:
    sandbox.publish("Use Flux", {"sweepledger.yaml": followed_by("flux")})
    sandbox.spec()
    name = present(only(sandbox.generate()).batch).name
    (sandbox.root / f"clusters/flux/active/{name}.yaml").unlink()
    assert only(sandbox.generate(check=True)).is_pending

    again = only(sandbox.generate())

    assert announced(sandbox) == [name]
    assert present(again.batch).name == name
    assert not only(sandbox.generate()).is_pending
