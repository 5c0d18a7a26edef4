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


def test_a_spec_becomes_a_batch_of_all_its_trials(sandbox: Sandbox) -> None:
    sandbox.spec()

    made = only(sandbox.generate())

    assert (made.trials, made.known) == (3, 0)
    assert sandbox.active() == [present(made.batch).name]
    (stored,) = sandbox.batches()
    assert stored.tree == present(made.batch).tree
    assert [row.values["x"] for row in stored.rows] == [1, 2, 3]


def test_the_second_run_writes_nothing(sandbox: Sandbox) -> None:
    sandbox.propose()
    before = {path: path.stat().st_mtime_ns for path in (sandbox.root / "overlays").rglob("*")}

    again = only(sandbox.generate())

    assert not again.is_pending
    assert {path: path.stat().st_mtime_ns for path in (sandbox.root / "overlays").rglob("*")} == before


@pytest.mark.parametrize(
    ("former", "later", "shown"),
    [
        ("0, 0.5", "0.0, 0.5", "x: 0.0 is 0 in peak-b1-"),
        ("1.0, 2.0, 3", "1, 2, 3", "x: 1 is 1.0 in peak-b1-"),
        ("[1, 2], [3, 4]", "[1, 2], [3.0, 4]", "x: [3.0, 4] is [3, 4] in peak-b1-"),
        ("1e3, 2", "1000, 2", "x: 1000 is 1000.0 in peak-b1-"),
    ],
)
def test_another_spelling_requests_nothing(sandbox: Sandbox, former: str, later: str, shown: str) -> None:
    sandbox.merged(xs=former)
    sandbox.spec(xs=later)

    made = only(sandbox.generate())

    assert (made.batch, made.trials - made.known) == (None, 0)
    (warning,) = [problem for problem in made.warnings if problem.code == "value-respelled"]
    assert shown in warning.message


@pytest.mark.parametrize("later", ["0, 0.50", "0.5, 0", "0, 5e-1, 1"])
def test_values_that_are_written_alike_are_no_news(sandbox: Sandbox, later: str) -> None:
    sandbox.merged(xs="0, 0.5")
    sandbox.spec(xs=later)

    assert "value-respelled" not in {problem.code for problem in only(sandbox.generate()).warnings}


def test_the_spelling_of_the_spec_is_that_of_the_table(sandbox: Sandbox) -> None:
    sandbox.propose(xs="0.0, 1e3, 2, [1.0, 2]")

    (stored,) = sandbox.batches()
    table = stored.tree["hyperparams.csv"].decode()
    expected = ['"0.0"', '"1000.0"', '"2"', '"[1.0, 2]"']
    assert [line.partition(",")[2].rpartition(",")[0] for line in table.splitlines()[1:]] == expected


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


def test_changed_code_asks_for_nothing_until_the_author_says_so(sandbox: Sandbox) -> None:
    sandbox.merged()
    sandbox.commit("Improve the code", {"code/train.py": "other code"})
    assert only(sandbox.generate()).batch is None

    updated = sandbox.generate("peak", update=True)[0]

    assert updated.batch is not None
    assert (updated.batch.lock.number, updated.batch.lock.trials) == (2, 3)
    assert updated.batch.lock.program.code.tree == sandbox.git("rev-parse", "HEAD:code").strip()
    assert not only(sandbox.generate()).is_pending, "the update is the newest program"


def test_a_changed_command_is_another_program(sandbox: Sandbox) -> None:
    sandbox.merged()
    replace_in(sandbox.root / "sweeps/peak.yaml", "code/train.py,", "-O, code/train.py,")

    assert present(only(sandbox.generate()).batch).lock.trials == 3


def test_a_changed_run_applies_to_the_next_batch_only(sandbox: Sandbox) -> None:
    sandbox.merged()
    replace_in(sandbox.root / "sweeps/peak.yaml", "256Mi", "512Mi")

    assert only(sandbox.generate()).batch is None


def test_an_edited_spec_replaces_the_batch_that_was_not_merged_yet(sandbox: Sandbox) -> None:
    sandbox.spec()
    first = only(sandbox.generate())
    sandbox.spec(xs="1, 2")

    second = only(sandbox.generate())

    assert [stored.name for stored in second.stale] == [present(first.batch).name]
    assert sandbox.active() == [present(second.batch).name]


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


def test_dirty_code_is_not_locked(sandbox: Sandbox) -> None:
    sandbox.spec()
    sandbox.write("code/train.py", "dirty")

    with pytest.raises(RepositoryError, match=r"code/ has uncommitted changes \(code/train.py\)"):
        sandbox.generate()

    assert sandbox.active() == []


def test_a_wrong_spec_that_is_named_writes_nothing_of_any_sweep(sandbox: Sandbox) -> None:
    sandbox.spec("good")
    sandbox.write("sweeps/bad.yaml", "name: bad\n")

    with pytest.raises(SpecError):
        sandbox.generate("good", "bad")

    assert sandbox.active() == []


@pytest.mark.parametrize(
    ("broken", "code", "message"),
    [
        ("name: bad\n", 1, "sweeps/bad.yaml:1:1"),
        ("path: nowhere", 3, "sweeps/bad.yaml: nowhere/ is not a folder in the last commit"),
        ("values: [1, 1]", 1, "sweeps/bad.yaml"),
    ],
    ids=["wrong", "without its code", "without trials"],
)
def test_a_broken_spec_stops_no_other(broken: str, code: int, message: str, sandbox: Sandbox) -> None:
    sandbox.spec("good")
    path = sandbox.spec("bad")
    text = path.read_text()
    changed = {
        "path: nowhere": text.replace("{path: code}", "{path: nowhere}"),
        "values: [1, 1]": text + "constraints: ['x > 100']\n",
    }
    path.write_text(changed.get(broken, broken))

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


@pytest.fixture
def flux(sandbox: Sandbox) -> Sandbox:
    sandbox.publish("Use Flux", {"sweepledger.yaml": followed_by("flux")})
    return sandbox


def announced(sandbox: Sandbox) -> list[str]:
    return sorted(path.stem for path in (sandbox.root / "clusters/flux/active").glob("*.yaml"))


def test_with_flux_each_batch_has_its_file_and_loses_it_with_its_folder(flux: Sandbox) -> None:
    flux.spec(xs="1, 2")
    first = only(flux.generate()).batch
    assert announced(flux) == [present(first).name]
    flux.spec(xs="1, 2, 3")

    second = only(flux.generate()).batch

    assert announced(flux) == flux.active() == [present(second).name]


def test_with_flux_a_file_that_was_not_written_any_more_is_written_next_time(flux: Sandbox) -> None:
    flux.spec()
    made = only(flux.generate()).batch
    assert made is not None
    (flux.root / f"clusters/flux/active/{made.name}.yaml").unlink()
    assert only(flux.generate(check=True)).is_pending

    again = only(flux.generate())

    assert announced(flux) == [made.name]
    assert present(again.batch).name == made.name
    assert not only(flux.generate()).is_pending
