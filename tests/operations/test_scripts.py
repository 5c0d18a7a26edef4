"""A program that the code does not have is found before it costs every trial."""

from pathlib import Path

import pytest

from sweepledger.errors import SpecError
from sweepledger.problems import Problem, Severity
from tests.repository import Sandbox, check_specs

SPEC = """name: {name}
method: grid
metric: {{name: score, goal: maximize}}
parameters: {{x: {{values: [1, 2]}}}}
{runs}
run: {{code: {{path: {folder}}}}}
"""


def new_spec(sandbox: Sandbox, runs: str, *, name: str = "peak", folder: str = "code") -> Path:
    return sandbox.write(f"sweeps/{name}.yaml", SPEC.format(name=name, runs=runs, folder=folder))


def refused(sandbox: Sandbox) -> tuple[Problem, ...]:
    with pytest.raises(SpecError) as caught:
        sandbox.generate()
    return caught.value.problems


def warned(sandbox: Sandbox) -> list[str]:
    sweeps, problems = check_specs(sandbox.workspace)
    assert len(sweeps) == 1
    assert {problem.severity for problem in problems} <= {Severity.WARNING}
    return [problem.message for problem in problems if problem.code == "program-missing"]


def test_a_program_that_the_commit_lacks_is_refused_at_its_place(sandbox: Sandbox) -> None:
    new_spec(sandbox, "program: trian.py")

    (problem,) = refused(sandbox)

    assert str(problem) == (
        "sweeps/peak.yaml:5:10: program: must name a committed file of code/, got 'trian.py' "
        "[program-missing]\n  hint: did you mean 'train.py'?"
    )
    assert sandbox.active() == []


def test_the_programs_of_all_sweeps_are_looked_at_in_one_run(sandbox: Sandbox) -> None:
    new_spec(sandbox, "program: trian.py")
    new_spec(sandbox, "program: trial.py", name="other")

    assert [problem.file for problem in refused(sandbox)] == ["sweeps/other.yaml", "sweeps/peak.yaml"]


def test_a_program_that_is_there_is_fine(sandbox: Sandbox) -> None:
    new_spec(sandbox, "program: train.py")

    assert warned(sandbox) == []
    assert [generated.warnings for generated in sandbox.generate()] == [()]


@pytest.mark.parametrize("command", ["[python, code/trian.py]", "[python, code/lib/train.py, --fast]"])
def test_a_path_into_the_code_among_the_arguments_may_be_a_slip(sandbox: Sandbox, command: str) -> None:
    new_spec(sandbox, f"command: {command}")

    (generated,) = sandbox.generate()

    (problem,) = generated.warnings
    assert (problem.code, problem.path, problem.line) == ("program-missing", "command[1]", 5)
    assert problem.severity is Severity.WARNING
    assert generated.batch is not None


@pytest.mark.parametrize(
    "command",
    [
        "[python, -m, code.train]",
        "[python, code/train.py]",
        "[python, '--into=code/x.pt']",
        "[python, code/lib]",
        "[python, 'code/${args_json_file}.json']",
        "[python, code/../x.py]",
        "[python, /opt/benchmarks/train.py]",
        "[python, code/train.py, --also, hooks.py]",
        "[python, -m, train, notes.txt]",
    ],
)
def test_other_arguments_are_no_files_of_the_code(sandbox: Sandbox, command: str) -> None:
    new_spec(sandbox, f"command: {command}")

    assert warned(sandbox) == []


@pytest.mark.parametrize("command", ["[python, train.py]", "[torchrun, --standalone, train.py, '${args}']"])
def test_a_program_beside_the_code_is_told_its_path(sandbox: Sandbox, command: str) -> None:
    new_spec(sandbox, f"command: {command}")

    (generated,) = sandbox.generate()

    (problem,) = generated.warnings
    assert (problem.code, problem.severity, problem.line) == ("program-missing", Severity.WARNING, 5)
    assert problem.message == "must begin with code/, since a trial starts beside that folder, got 'train.py'"
    assert problem.hint == "write code/train.py"
    assert [f"{problem.message}"] == warned(sandbox)


@pytest.mark.parametrize("is_there", [True, False], ids=["beside the code", "nowhere"])
def test_a_program_outside_the_code_is_missing_for_a_trial(sandbox: Sandbox, *, is_there: bool) -> None:
    if is_there:
        sandbox.commit("Bring a tool", {"tools/start.sh": "true"})
    new_spec(sandbox, "command: [bash, tools/start.sh, code/train.py]")

    (generated,) = sandbox.generate()

    (problem,) = generated.warnings
    assert problem.message.endswith("got 'tools/start.sh'")
    assert str(problem.hint).startswith("of the repository a trial has code/ alone; ")


def test_a_path_that_begins_at_the_root_is_told_where_it_begins(sandbox: Sandbox) -> None:
    new_spec(sandbox, "program: code/train.py")

    (problem,) = refused(sandbox)

    assert problem.hint == "the path begins inside code/: write train.py"


def test_a_program_that_git_ignores_is_not_what_a_batch_runs(sandbox: Sandbox) -> None:
    sandbox.write(".gitignore", "made.py\n")
    sandbox.write("code/made.py", "print(1)")
    new_spec(sandbox, "program: made.py")
    sandbox.commit("Ask")

    (problem,) = refused(sandbox)

    assert str(problem.hint).startswith("it exists here: commit it; `sweep generate peak --update` locks")
    assert warned(sandbox) == []


def test_what_lies_in_a_folder_below_or_starts_as_a_folder_or_is_linked_is_there(sandbox: Sandbox) -> None:
    sandbox.write("code/lib/train.py", "print(1)")
    sandbox.write("code/app/__main__.py", "print(1)")
    (sandbox.root / "code/link").symlink_to("lib")
    sandbox.commit("Grow")
    for number, path in enumerate(("lib/train.py", "app", "link/train.py")):
        new_spec(sandbox, f"program: {path}", name=f"s{number}")

    assert [generated.warnings for generated in sandbox.generate()] == [(), (), ()]
    assert check_specs(sandbox.workspace)[1] == ()


def test_a_merged_batch_is_not_held_against_code_that_moved_on(sandbox: Sandbox) -> None:
    new_spec(sandbox, "program: train.py")
    sandbox.publish_batches("Ask")
    sandbox.git("mv", "code/train.py", "code/main.py")
    sandbox.commit("Rename")

    assert [generated.warnings for generated in sandbox.generate()] == [()]
    with pytest.raises(SpecError):
        sandbox.generate("peak", update=True)


def test_validate_warns_of_what_the_work_tree_lacks(sandbox: Sandbox) -> None:
    new_spec(sandbox, "program: trian.py")
    assert warned(sandbox) == ["must name a file of code/, got 'trian.py'"]

    sandbox.write("code/trian.py", "not committed")

    assert warned(sandbox) == []


BOOLEANS = """name: peak
method: grid
metric: {name: score, goal: maximize}
parameters: {augment: {values: [true, false]}, k: {values: [1, 2]}}
command: [python, code/p.py, "MACRO"]
run: {code: {path: code}}
"""


def boolean_warnings(sandbox: Sandbox, option: str, macro: str = "${args}") -> list[str]:
    sandbox.write("code/p.py", f"p = argparse.ArgumentParser()\n{option}\np.add_argument('--k', type=int)\n")
    sandbox.write("sweeps/peak.yaml", BOOLEANS.replace("MACRO", macro))
    problems = check_specs(sandbox.workspace, ["peak"])[1]
    return [problem.message for problem in problems if problem.code == "boolean-argument"]


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ('p.add_argument("--augment", type=bool)', "takes the text False for true"),
        (
            "p.add_argument(\n    '--augment', default=bool(1), type = bool,\n)",
            "takes the text False for true",
        ),
        ('p.add_argument("-a", "--augment", type=bool, help="(twice)")', "takes the text False for true"),
        ('p.add_argument("--augment", action="store_true")', "takes no value"),
        ('p.add_argument("--augment", action=BooleanOptionalAction)', "takes no value"),
    ],
)
def test_an_option_that_misreads_booleans_has_a_warning(sandbox: Sandbox, option: str, reason: str) -> None:
    (message,) = boolean_warnings(sandbox, option)

    assert reason in message


@pytest.mark.parametrize(
    ("option", "macro"),
    [
        ('p.add_argument("--augment", type=lambda text: text == "True")', "${args}"),
        ('p.add_argument("--other", type=bool)', "${args}"),
        ('p.add_argument("--augment", action="store_true")', "${args_no_boolean_flags}"),
        ('p.add_argument("--augment", type=str)  # not type=bool', "${args}"),
        ('p.add_argument("--augment", action=BooleanOptionalAction)', "${args_switches:augment}"),
    ],
)
def test_other_options_have_none(sandbox: Sandbox, option: str, macro: str) -> None:
    assert boolean_warnings(sandbox, option, macro) == []


def test_an_option_is_read_in_the_folder_that_trials_start_in(sandbox: Sandbox) -> None:
    sandbox.write("code/inner/p.py", "p.add_argument('--augment', type=bool)\n")
    spec = BOOLEANS.replace("MACRO", "${args}").replace("code/p.py", "p.py")
    spec = spec.replace("{path: code}}", "{path: code}, workdir: code/inner}")
    sandbox.write("sweeps/peak.yaml", spec)

    codes = [problem.code for problem in check_specs(sandbox.workspace, ["peak"])[1]]

    assert codes == ["boolean-argument"]
