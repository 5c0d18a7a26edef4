"""Code in any layout: what a batch locks, what runs, and what is said of code that changed."""

import json

import pytest

from sweepledger.errors import RepositoryError
from sweepledger.formats import yaml
from sweepledger.operations.run import SweepRun
from sweepledger.repo import batches
from sweepledger.verbs.try_ import try_trial
from tests.builders import present
from tests.repository import TRAIN, Sandbox

PROGRAM = "import helper\n" + TRAIN
SCRIPT = '[python, train.py, "${args}"]'


def ask(sandbox: Sandbox, *, code: str, command: str = SCRIPT, xs: str = "1, 2") -> None:
    run = f"{{code: {code}, resources: {{cpu: 1, memory: 256Mi}}, parallelism: 2, timeout: 1m}}"
    parameters = yaml.load(f"{{x: {{values: [{xs}]}}}}")
    sandbox.write_spec("fit", parameters=parameters, command=yaml.load(command), run=yaml.load(run))


@pytest.fixture
def script(sandbox: Sandbox) -> Sandbox:
    """A repository with a script and its module at the root."""
    sandbox.git("rm", "-q", "-r", "code")
    sandbox.publish("A project", {"train.py": PROGRAM, "helper.py": "", "README.md": "A project"})
    return sandbox


def ask_and_run(sandbox: Sandbox) -> tuple[str, ...]:
    """Generate, merge and run the sweep; return the statuses of its trials."""
    sandbox.publish_batches("Ask")
    list(sandbox.local())
    sandbox.pull()
    (records,) = sandbox.root.glob("results/fit/records/*.jsonl")
    lines = map(json.loads, records.read_text().splitlines())
    return tuple(line["status"] for line in lines if "status" in line)


def test_a_batch_and_a_note_keep_the_trials_and_a_module_does_not(script: Sandbox) -> None:
    ask(script, code="{path: ., exclude: ['*.md']}")
    script.generate()
    script.publish("Ask", {"README.md": "Other words"})

    assert script.generate()[0].batch is None
    assert script.generate("fit", update=True)[0].batch is None
    script.commit("Helper", {"helper.py": "# changed"})
    script.generate("fit", update=True)
    first, second = (
        {trial.id for trial in batch.trials} for batch in batches.of_sweep(script.batches(), "fit")
    )
    assert first.isdisjoint(second)


def test_uncommitted_files_matter_only_if_they_are_selected(script: Sandbox) -> None:
    ask(script, code="{path: [source]}")
    with pytest.raises(RepositoryError, match="selects no file of the last commit"):
        script.generate()
    ask(script, code="{path: ., exclude: ['*.md']}")
    script.write("notes.md", "not code")
    script.write("forgotten.py", "no import of the program")
    assert script.generate()[0].batch is not None
    script.write("helper.py", "# edited")

    with pytest.raises(RepositoryError, match=r"the repository has uncommitted changes \(helper.py\)"):
        script.generate("fit", update=True)


def test_an_installed_program_needs_no_committed_file(sandbox: Sandbox, needs_kustomize: None) -> None:
    sandbox.git("rm", "-q", "-r", "code")
    sandbox.publish("A repository of sweeps")
    ask(
        sandbox,
        code="{path: .}",
        command="""[sh, -c, 'echo "{\\"score\\": 1}" > "$SWEEP_RESULT"', sh, "${args}"]""",
    )

    assert ask_and_run(sandbox) == ("ok", "ok")
    assert sandbox.check().problems == ()
    assert sandbox.sweep("verify", "fit").returncode == 0


def test_a_trial_of_the_work_tree_has_the_selected_files_only(script: Sandbox) -> None:
    ask(script, code="{path: [train.py]}")
    assert not try_trial(script.workspace, "fit", 0, quiet=True).is_ok
    ask(script, code="{path: [train.py, helper.py]}")
    script.write("helper.py", "not_committed = True")
    assert try_trial(script.workspace, "fit", 0, quiet=True).is_ok


def test_code_of_a_merged_batch_is_found_again_after_the_store_was_pruned(script: Sandbox) -> None:
    ask(script, code="{path: ., exclude: ['*.md']}")
    script.publish_batches("Ask")
    script.publish("Change the code", {"helper.py": "# changed"})
    script.git("gc", "-q", "--prune=now")
    ask(script, code="{path: ., exclude: ['*.md']}", xs="1, 2, 3")

    (generated,) = script.generate()

    assert present(generated.batch).lock.trials == 1
    (warning,) = generated.warnings
    assert (warning.code, warning.path) == ("code-changed", "run.code.path")
    assert warning.message.endswith(": helper.py")
    script.name_person()
    assert SweepRun.prepare(script.workspace, ("fit",)).dry_run()[0].warnings == (warning,)
    script.commit("Extend")
    assert script.check().problems == ()


def test_code_that_is_selected_from_no_commit_is_refused(script: Sandbox) -> None:
    ask(script, code="{path: .}")
    script.generate()
    script.write("helper.py", "# another version")
    script.git("add", "--all")
    script.git("commit", "-q", "-m", "Ask and change")
    script.git("commit", "-q", "--amend", "-m", "As one")

    codes = {problem.code for problem in script.check().problems}

    assert codes & {"program-not-shown", "code-unreachable"}
