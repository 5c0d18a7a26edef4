"""`sweep try` finds what a program left instead of its metric, and `--write` puts the block into the spec."""

from pathlib import Path

import pytest
import yaml

from tests.cli.test_first_sweeps import repository
from tests.command_line import git, run_sweep
from tests.launcher.test_launcher_formats import event, simple


def event_file(*tags: str) -> bytes:
    """Return an event file of TensorBoard with a scalar of 0.5 for each tag."""
    return b"".join(event(1, (tag, simple(0.5))) for tag in tags)


WRITE = """import pathlib
def put(path, content):
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
"""
LEFT = {
    "a sentence": ("print('| epoch 3 | valid loss 4.13 | valid ppl 62')", "val_loss", 4.13),
    "a row of a table": ("print('accuracy     0.9580       143')", "accuracy", 0.958),
    "a name within another": (
        "print('loss: 0.5'); print('val_loss: 2'); print('total loss: 9')",
        "loss",
        0.5,
    ),
    "a name that starts a line": ("print('loss: 0.5'); print('at 3 loss: 9 kl: 1')", "loss", 9),
    "standard error": (
        "import logging; logging.basicConfig(level=20); logging.info('f1: %s', 0.5)",
        "f1",
        0.5,
    ),
    "held-out data": ("print('Training accuracy: 0.9'); print('Test accuracy: 0.5')", "accuracy", 0.5),
    "a table": (
        f"{WRITE}put('logs/version_3/metrics.csv', b'step,val_acc\\n1,0.25\\n2,0.5\\n')",
        "score",
        0.5,
    ),
    "an object": (f"{WRITE}put('out/result.json', b'{{\"auc\": 0.5}}')", "auc", 0.5),
    "events": (
        f"{WRITE}put('runs/cart__7/events.out.tfevents.1', {event_file('lr', 'charts/return')!r})",
        "score",
        0.5,
    ),
}


def lab_with(folder: Path, source: str) -> Path:
    (folder / "lab").mkdir()
    return repository(folder / "lab", {"train.py": f"{source}\n"})


@pytest.mark.parametrize("left", LEFT)
def test_two_commands_and_a_proposal_lead_to_the_right_result(tmp_path: Path, left: str) -> None:
    source, metric, expected = LEFT[left]
    lab = lab_with(tmp_path, source)
    run_sweep("new", "fit", "--command", "python train.py", "--param", "x=1,2", "--metric", metric, cwd=lab)

    proposed = run_sweep("try", "fit", "--write", cwd=lab)

    assert proposed.returncode == 0, proposed.stderr
    block = yaml.safe_load((lab / "sweeps/fit.yaml").read_text())["metric"]
    assert f"wrote to sweeps/fit.yaml: metric: {{name: {block['name']}" in proposed.stdout
    tried = run_sweep("try", "fit", "--format", "json", cwd=lab)
    assert f'"{block["name"]}":{expected}' in tried.stdout.replace(" ", "")


PRINTED = "print('num_sources = 1'); print('Objective over sources: 0.25'); print('it 40 residual 0.5')"


@pytest.mark.parametrize("metric", ["average_loss", "score", "residual"])
def test_a_number_of_another_name_is_never_written(tmp_path: Path, metric: str) -> None:
    lab = lab_with(tmp_path, PRINTED)
    run_sweep("new", "fit", "--command", "python train.py", "--param", "x=1,2", "--metric", metric, cwd=lab)
    spec = lab / "sweeps/fit.yaml"
    before = spec.read_text()

    tried = run_sweep("try", "fit", "--write", cwd=lab)

    if metric == "residual":
        assert (tried.returncode, "wrote to sweeps/fit.yaml" in tried.stdout) == (0, True)
        return
    assert (tried.returncode, spec.read_text()) == (1, before)
    assert "  stdout: Objective over sources: 0.25\n" in tried.stdout
    assert "(num_sources, objective_over_sources, it, residual) as `metric.name`" in tried.stdout
    spec.write_text(before.replace(f"name: {metric}", "name: objective_over_sources"))
    assert run_sweep("try", "fit", "--write", cwd=lab).returncode == 0
    assert '"objective_over_sources": 0.25' in run_sweep("try", "fit", "--format", "json", cwd=lab).stdout


def test_without_write_the_block_is_shown_and_the_spec_stays(tmp_path: Path) -> None:
    lab = lab_with(tmp_path, "print('test loss: 0.25')")
    run_sweep("new", "fit", "--command", "python train.py", "--param", "x=1,2", "--metric", "loss", cwd=lab)
    before = (lab / "sweeps/fit.yaml").read_bytes()

    tried = run_sweep("try", "fit", cwd=lab)

    assert tried.returncode == 1
    assert "  stdout: test loss: 0.25\nproposed: metric: {name: loss, goal: minimize," in tried.stdout
    assert (lab / "sweeps/fit.yaml").read_bytes() == before


@pytest.mark.parametrize("head", ["2026-11-30 07:18:02,277 INFO train: ", "INFO:root:"])
def test_level_and_logger_of_a_log_are_no_part_of_the_name(tmp_path: Path, head: str) -> None:
    lab = lab_with(tmp_path, f"print('{head}Test accuracy: 0.5')")
    run_sweep("new", "fit", "--command", "python train.py", "--param", "x=1,2", cwd=lab)

    assert (
        "proposed: metric: {name: test_accuracy, goal: maximize," in run_sweep("try", "fit", cwd=lab).stdout
    )


def test_a_file_of_the_code_is_no_result_and_a_failed_program_has_no_proposal(tmp_path: Path) -> None:
    lab = lab_with(tmp_path, "print('no result')")
    (lab / "old.csv").write_text("step,loss\n1,0.5\n")
    git(lab, "add", ".")
    git(lab, "commit", "-q", "-m", "Keep a table")
    run_sweep("new", "fit", "--command", "python train.py", "--param", "x=1,2", cwd=lab)
    assert "proposed" not in run_sweep("try", "fit", cwd=lab).stdout

    (lab / "train.py").write_text("print('loss: 0.5'); raise SystemExit(1)\n")
    assert "proposed" not in run_sweep("try", "fit", cwd=lab).stdout


def test_a_file_that_git_ignores_is_named_as_none_of_the_code(tmp_path: Path) -> None:
    lab = lab_with(tmp_path, "print('score=%d' % len(open('data/a.csv').read()))")
    (lab / ".gitignore").write_text("data/\n")
    (lab / "data").mkdir()
    (lab / "data/a.csv").write_text("1\n")
    run_sweep("new", "fit", "--command", "python train.py", "--param", "x=1,2", cwd=lab)
    hint = "hint: data/a.csv: here, but not in the committed code that run.code selects"
    assert hint in run_sweep("try", "fit", cwd=lab).stdout

    git(lab, "add", "--force", "data")
    assert "hint" not in run_sweep("try", "fit", cwd=lab).stdout


def test_a_command_that_git_ignores_is_named_and_a_missing_interpreter_is_not(tmp_path: Path) -> None:
    lab = lab_with(tmp_path, "print(1)")
    (lab / ".gitignore").write_text("solve\n")
    (lab / "solve").write_text("#!/no/such/interpreter\n")
    (lab / "solve").chmod(0o755)
    run_sweep("new", "fit", "--command", "./solve -n 2", "--param", "x=1,2", cwd=lab)
    assert "hint: solve: here, but not in the committed code" in run_sweep("try", "fit", cwd=lab).stdout

    git(lab, "add", "--force", "solve")
    tried = run_sweep("try", "fit", cwd=lab).stdout
    assert "cannot be started" in tried
    assert "hint" not in tried


def test_refused_arguments_are_answered_with_the_names_and_the_macro_of_the_program(tmp_path: Path) -> None:
    options = "p.add_argument('--batch-size'); p.add_argument('--flip', action='store_true')"
    lab = lab_with(tmp_path, f"import argparse\np = argparse.ArgumentParser()\n{options}\np.parse_args()")
    parameters = ("--param", "batch-size=1,2", "--param", "flip=true,false")
    run_sweep("new", "fit", "--command", "python train.py", *parameters, cwd=lab)
    spec = lab / "sweeps/fit.yaml"
    text = spec.read_text().replace("args_no_boolean_flags", "args")
    spec.write_text(text.replace("batch-size", "batch_size"))

    tried = run_sweep("try", "fit", cwd=lab)

    assert "hint: rename the parameter batch_size to batch-size, as train.py calls it" in tried.stdout
    assert 'hint: write "${args_no_boolean_flags}" in place of "${args}"' in tried.stdout
