"""A search never stands still in silence: a model that fails is replaced, and what blocks a search is a failure."""

import subprocess
from pathlib import Path

from sweepledger.repo import batches
from sweepledger.repo.batches import StoredBatch
from tests.command_line import run_sweep_process
from tests.repository import Sandbox, append_to
from tests.searches import begun, hill, leave

ROOT = Path(__file__).parents[2]
MANY = "{values: [" + ", ".join(f"w{at}" for at in range(150)) + "]}"
WHY = "egobox models at most 40 columns"


def rounds(sandbox: Sandbox) -> list[StoredBatch]:
    return list(batches.readable(batches.of_sweep_in_commit(sandbox.workspace.repository, "HEAD", "hill")))


def with_many_words(sandbox: Sandbox) -> None:
    path = hill(sandbox, method="bayes", size=2, rounds=3)
    text = path.read_text().replace("max: 3}", "max: 3, startup: 2}")
    path.write_text(text.replace("parameters:\n", f"parameters:\n  word: {MANY}\n"))
    program = sandbox.root / "code/train.py"
    program.write_text(
        "import json, os\nx = float(os.environ['SWEEP_PARAM_X'])\n"
        "json.dump({'score': -(x**2)}, open(os.environ['SWEEP_RESULT'], 'w'))\n"
    )


def without(library: str, tmp_path: Path) -> dict[str, str]:
    """Return the environment of a process in which a library looks as if it were not installed."""
    stubs = tmp_path / "stubs"
    stubs.mkdir()
    (stubs / f"{library}.py").write_text("raise ImportError\n")
    return {"PYTHONPATH": f"{stubs}:{ROOT / 'generator'}"}


def test_a_search_whose_model_cannot_take_its_space_runs_to_its_end_and_says_so(sandbox: Sandbox) -> None:
    with_many_words(sandbox)
    sandbox.publish("Search many words")
    sandbox.use_as_laptop()

    done = sandbox.sweep("run", "hill")

    assert done.returncode == 0, done.stderr
    locks = [batch.lock for batch in rounds(sandbox)]
    expected = [(1, "bayes", 2), (2, "bayes", 2), (3, "bayes", 2)]
    assert [(lock.round, lock.method, lock.trials) for lock in locks] == expected
    assert [lock.engine for lock in locks] == ["sweepledger"] * 3
    assert all(str(lock.unfitted).startswith(WHY) for lock in locks)
    assert done.stdout.count(f"drawn at random, because {WHY}") == 2
    readme = " ".join((sandbox.root / "results/hill/README.md").read_text().split())
    assert f"Drawn at random: round 1, 2, 3, because {WHY}" in readme
    assert "153" in readme


def is_blocked(done: subprocess.CompletedProcess[str], command: str) -> bool:
    """Tell whether a command failed because of the missing library, and named the way out."""
    assert f"sweep {command}: the search hill is blocked: " in done.stderr
    assert "require Optuna, which is not installed" in done.stderr
    assert "hint: `pip install 'sweepledger[adaptive]'`" in done.stderr
    return done.returncode == 3


def test_a_run_with_a_blocked_search_fails_and_goes_on_once_its_cause_is_gone(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    begun(sandbox, size=2, rounds=2)
    sandbox.use_as_laptop()

    blocked = run_sweep_process("run", "hill", cwd=sandbox.root, **without("optuna", tmp_path))

    assert is_blocked(blocked, "run")
    assert [batch.lock.round for batch in rounds(sandbox)] == [1]
    assert sandbox.sweep("run", "hill").returncode == 0
    assert [batch.lock.round for batch in rounds(sandbox)] == [1, 2]


def test_commands_of_a_cluster_with_a_blocked_search_fail(sandbox: Sandbox, tmp_path: Path) -> None:
    begun(sandbox, size=2, rounds=3)
    hidden = without("optuna", tmp_path)

    played = run_sweep_process("cluster", "local", "--once", cwd=sandbox.root, **hidden)
    sandbox.pull()
    requested = run_sweep_process("cluster", "next", "hill", "--push", cwd=sandbox.root, **hidden)

    assert is_blocked(played, "cluster local")
    assert is_blocked(requested, "cluster next")


def test_a_collection_that_cannot_continue_a_search_fails(sandbox: Sandbox, tmp_path: Path) -> None:
    begun(sandbox, size=2, rounds=3)
    results = tmp_path / "results"
    results.mkdir()
    leave(results, rounds(sandbox)[0])

    blocked = run_sweep_process(
        "cluster", "collect", f"--results={results}", cwd=sandbox.root, **without("optuna", tmp_path)
    )
    again = sandbox.sweep("cluster", "collect", f"--results={results}")

    assert blocked.returncode == 3, blocked.stdout
    assert "sweep cluster collect: the search hill is blocked: " in blocked.stderr
    assert (sandbox.root / "results/hill/summary.csv").is_file()
    assert again.returncode == 0, again.stderr
    assert len(rounds(sandbox)) == 2


def test_update_begins_a_search_anew_with_the_changed_code(sandbox: Sandbox) -> None:
    begun(sandbox, size=2, rounds=2)
    sandbox.use_as_laptop()
    assert sandbox.sweep("run", "hill").returncode == 0
    append_to(sandbox.root / "code/train.py", "\n# changed\n")

    done = sandbox.sweep("run", "hill", "--commit-code", "--update")

    assert done.returncode == 0, done.stderr
    assert [batch.lock.round for batch in rounds(sandbox)] == [1, 2, 1, 2]


def test_update_says_why_it_requests_nothing(sandbox: Sandbox) -> None:
    """After a revert the code is one that has run before."""
    begun(sandbox, size=2, rounds=1)
    sandbox.use_as_laptop()
    program = sandbox.root / "code/train.py"
    before = program.read_text()
    for text in (before, f"{before}\n# changed\n", before):
        program.write_text(text)
        done = sandbox.sweep("run", "hill", "--commit-code", "--update")
        assert done.returncode == 0, done.stderr

    dry = sandbox.sweep("run", "hill", "--update", "--dry-run")

    why = f"{rounds(sandbox)[0].name} has the current code, image and data"
    assert f"--update requests nothing of hill: {why}" in done.stdout
    assert f"nothing to write: {why}" in dry.stdout


def test_a_paused_search_is_no_failure(sandbox: Sandbox) -> None:
    begun(sandbox, size=2, rounds=2)
    assert sandbox.sweep("cluster", "pause", "hill").returncode == 0
    sandbox.push()

    for arguments in (["local", "--once"], ["next", "hill", "--push"]):
        assert sandbox.sweep("cluster", *arguments).returncode == 0, arguments
