"""`sweep import`: a file of a stranger in, a spec and a report out."""

import json
from pathlib import Path

import pytest

from sweepledger.errors import SpecError, UsageError
from sweepledger.exchange.conversion import ForeignFormat, Imported
from sweepledger.verbs import import_
from sweepledger.verbs.import_ import import_spec, read_foreign
from tests.command_line import run_sweep
from tests.exchange.conformance import a_journal
from tests.repository import Sandbox, answer

WANDB = """\
program: code/train.py
method: grid
metric: {name: score, goal: maximize}
project: peaks
parameters:
  x: {values: [1, 2]}
"""

JOB = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: OptimizationJob
spec:
  parameters"""
DISTRIBUTION = json.dumps({"name": "FloatDistribution", "attributes": {"low": 0, "high": 1, "log": False}})


def a_source(text: str = WANDB, shown: str = "old/Peaks.yaml") -> tuple[bytes, str]:
    return text.encode(), shown


def test_a_spec_goes_to_standard_output_and_the_report_beside_it(tmp_path: Path) -> None:
    (tmp_path / "Peaks.yaml").write_text(WANDB)

    done = run_sweep("import", "wandb", "Peaks.yaml", cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert done.stdout == import_spec("wandb", *a_source(), folder=tmp_path)[0].text
    assert "name: peaks\n" in done.stdout
    assert "project" in done.stderr


def test_standard_input_is_a_file_too(tmp_path: Path) -> None:
    done = run_sweep("import", "wandb", "-", cwd=tmp_path, stdin=WANDB.encode())

    assert done.returncode == 0, done.stderr
    assert "name: imported\n" in done.stdout


def test_machines_get_the_spec_and_the_losses_of_standard_input_in_one_object(tmp_path: Path) -> None:
    done = run_sweep(
        "import", "wandb", "-", "--name", "lr", "--format", "json", cwd=tmp_path, stdin=WANDB.encode()
    )

    envelope = json.loads(done.stdout)
    assert envelope["status"] == "ok"
    assert "name: lr\n" in envelope["data"]["spec"]
    assert "project: peaks" in [loss["part"] for loss in envelope["data"]["losses"]]
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("own", "shown", "name", "expected"),
    [
        ("name: LR 2", "old.yaml", None, "lr-2"),
        ("name: LR 2", "old.yaml", "mine", "mine"),
        ("", "My File.yaml", None, "my-file"),
        ("", "-", None, "imported"),
        ("name: '99'", "1.yaml", None, "imported"),
    ],
)
def test_a_sweep_has_a_name(own: str, shown: str, name: str | None, expected: str, tmp_path: Path) -> None:
    spec, problems = import_spec("wandb", *a_source(f"{WANDB}{own}\n", shown), folder=tmp_path, name=name)

    assert f"\nname: {expected}\n" in spec.text
    assert problems == ()


def test_a_spec_that_our_rules_refuse_is_given_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(WANDB.replace("[1, 2]", "[1, 99999999999999999999]"))

    done = run_sweep("import", "wandb", "s.yaml", cwd=tmp_path)

    assert done.returncode == 1
    assert "99999999999999999999" in done.stdout
    assert "[number-range]" in done.stderr


@pytest.mark.parametrize(
    ("format_name", "content", "remedy"),
    [
        ("optimization-job", "kind: Job", "an OptimizationJob of Kubeflow Trainer"),
        ("katib", "a: {{ .Values.a }}", "`helm template`"),
        ("optimization-job", "# How\n\n*Tune* it:\n```yaml\nkind: OptimizationJob\n```\n", "copy the block"),
        (
            "optimization-job",
            f"{JOB}: [{{name: a, searchSpace: {{categorical: {{choices: 5}}}}}}]",
            "choices: [5]",
        ),
        (
            "optimization-job",
            f"{JOB}: [{{name: a, searchSpace: {{categorical: {{}}}}}}]",
            "write the values to try",
        ),
        ("katib", "kind: Experiment\nkind: Job", "delete the other"),
        ("wandb", "{method: random, parameters: {a: {min: 0, max: .inf}}}", "write the largest value"),
        ("optuna", "SQLite format 3\0", "the one of your study's storage"),
        ("optuna", a_journal(**{"A b": [], "c": []}).decode(), "`--name a-b`"),
        ("optuna", "", "when a trial has run"),
    ],
    ids=["kind", "template", "document", "list", "empty", "repeated", "infinite", "other", "several", "none"],
)
def test_a_refusal_has_a_remedy(format_name: str, content: str, remedy: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError) as refused:
        import_spec(format_name, *a_source(content), folder=tmp_path)

    (problem,) = refused.value.problems
    assert remedy in (problem.hint or "")


def test_a_study_is_chosen_by_the_name_that_its_sweep_gets(tmp_path: Path) -> None:
    studies = a_journal(
        **{"HAD_PSO TUNING": [{"of_0": DISTRIBUTION}], "other": [{"of_1": DISTRIBUTION}]}
    ).decode()

    spec, _ = import_spec("optuna", *a_source(studies), folder=tmp_path, name="had-pso-tuning")

    assert "name: had-pso-tuning\n" in spec.text
    assert "of_0:" in spec.text


def test_problems_of_a_spec_that_is_only_shown_name_no_file(tmp_path: Path) -> None:
    source = a_source(WANDB.replace("[1, 2]", "[1, 99999999999999999999]"))
    output = tmp_path / "peaks.yaml"

    _, (shown,) = import_spec("wandb", *source, folder=tmp_path)
    _, (problem,) = import_spec("wandb", *source, folder=tmp_path, output=output)

    assert shown.file == "<imported>"
    assert problem.file == output.as_posix()
    assert (shown.line, shown.code) == (problem.line, problem.code)


def test_problems_of_a_table_beside_a_spec_that_is_only_shown_name_the_table(tmp_path: Path) -> None:
    rows = "".join(f"{number},x\n" for number in range(5_000))

    _, problems = import_spec("csv", *a_source(f"x,note\n{rows}5,x\n", "old/table.csv"), folder=tmp_path)

    assert {problem.file for problem in problems} == {"old/table.csv"}


def test_nothing_is_ever_overwritten(tmp_path: Path) -> None:
    source, output = tmp_path / "peaks.yaml", tmp_path / "lr.yaml"
    source.write_text(WANDB)
    output.write_text("precious")

    with pytest.raises(UsageError, match="not overwritten"):
        answer(import_.import_, "wandb", str(source), output=output)

    assert output.read_text() == "precious"
    output.unlink()
    output.symlink_to("elsewhere")
    with pytest.raises(UsageError, match="not overwritten"):
        answer(import_.import_, "wandb", str(source), output=output)


def test_what_is_no_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no file"):
        read_foreign(f"{tmp_path}/missing.yaml")


def test_no_file_can_move_the_cursor_or_write_a_line_of_the_report(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(
        WANDB.replace("name: score", '"name": "m\\n::error::metric"')
        + '"x\\n::error::unknownkey": 1\n"k\\e[2J": 1\n"metric\\u202e": 1\n'
    )

    done = run_sweep("import", "wandb", "s.yaml", cwd=tmp_path)

    assert "unknownkey" in done.stderr
    assert not any(line.lstrip().startswith("::") for line in done.stderr.splitlines())
    assert "\x1b" not in done.stdout + done.stderr
    assert "\u202e" not in done.stdout + done.stderr


def test_nothing_is_imported_into_gits_own_folder_or_through_a_link(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.write("s.yaml", WANDB)
    (tmp_path / "elsewhere").mkdir()
    (sandbox.root / "sweeps").symlink_to(tmp_path / "elsewhere")

    for output in (".git/hooks/post-checkout", "sweeps/z.yaml"):
        done = run_sweep("import", "wandb", "s.yaml", "--output", output, cwd=sandbox.root)

        assert done.returncode == 3, done.stderr
    assert not (sandbox.root / ".git/hooks/post-checkout").exists()
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 1 << 20_000], ids=["nan", "inf", "huge"])
def test_a_number_out_of_reach(number: float, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def read(content: bytes, *, name: str) -> Imported:
        return Imported({"name": name, "x": number}, ())

    monkeypatch.setattr(import_, "formats", lambda: {"csv": ForeignFormat("csv", "numbers", read=read)})

    with pytest.raises(SpecError) as refused:
        import_spec("csv", *a_source(), folder=tmp_path)

    assert [problem.code for problem in refused.value.problems] == ["foreign-file"]
