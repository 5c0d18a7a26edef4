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


def test_programs_that_the_commit_lacks_are_refused_at_their_places(sandbox: Sandbox) -> None:
    new_spec(sandbox, "program: trian.py")
    new_spec(sandbox, "program: code/train.py", name="rooted")

    first, second = refused(sandbox)

    assert str(first) == (
        "sweeps/peak.yaml:5:10: program: must name a committed file of code/, got 'trian.py' "
        "[program-missing]\n  hint: did you mean 'train.py'?"
    )
    assert (second.file, second.hint) == (
        "sweeps/rooted.yaml",
        "the path begins inside code/: write train.py",
    )
    assert sandbox.active() == []


@pytest.mark.parametrize(
    ("command", "message", "hint"),
    [
        ("[python, code/trian.py]", "must name a committed file of code/, got 'trian.py'", "did you mean"),
        (
            "[torchrun, --standalone, train.py, '${args}']",
            "must begin with code/, since a trial starts beside that folder, got 'train.py'",
            "write code/train.py",
        ),
        (
            "[bash, tools/start.sh, code/train.py]",
            "must begin with code/, since a trial starts beside that folder, got 'tools/start.sh'",
            "of the repository a trial has code/ alone; ",
        ),
    ],
    ids=["in the code", "beside the code", "outside the code"],
)
def test_a_file_among_the_arguments_that_a_trial_lacks_is_a_warning(
    sandbox: Sandbox, command: str, message: str, hint: str
) -> None:
    sandbox.commit("Bring a tool", {"tools/start.sh": "true"})
    new_spec(sandbox, f"command: {command}")

    (generated,) = sandbox.generate()

    (problem,) = generated.warnings
    assert (problem.code, problem.severity, problem.line) == ("program-missing", Severity.WARNING, 5)
    assert problem.message == message
    assert str(problem.hint).startswith(hint)
    assert generated.batch is not None


def test_other_arguments_are_no_files_of_the_code(sandbox: Sandbox) -> None:
    for command in (
        "[python, -m, code.train]",
        "[python, '--into=code/x.pt']",
        "[python, code/lib]",
        "[python, 'code/${args_json_file}.json']",
        "[python, code/../x.py]",
        "[python, /opt/benchmarks/train.py]",
        "[python, code/train.py, --also, hooks.py]",
        "[python, -m, train, notes.txt]",
    ):
        new_spec(sandbox, f"command: {command}")
        assert warned(sandbox) == [], command


def test_a_program_that_git_ignores_is_not_what_a_batch_runs(sandbox: Sandbox) -> None:
    sandbox.write(".gitignore", "made.py\n")
    new_spec(sandbox, "program: made.py")
    sandbox.commit("Ask")
    assert warned(sandbox) == ["must name a file of code/, got 'made.py'"]
    sandbox.write("code/made.py", "print(1)")

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


def test_an_option_that_misreads_booleans_has_a_warning(sandbox: Sandbox) -> None:
    for option, reason in {
        'p.add_argument("-a", "--augment", type=bool, help="(twice)")': "takes the text False for true",
        "p.add_argument(\n    '--augment', default=bool(1), type = bool,\n)": "takes the text False for true",
        'p.add_argument("--augment", action="store_true")': "takes no value",
        'p.add_argument("--augment", action=BooleanOptionalAction)': "takes no value",
    }.items():
        (message,) = boolean_warnings(sandbox, option)
        assert reason in message, option


def test_other_options_have_none(sandbox: Sandbox) -> None:
    for option, macro in (
        ('p.add_argument("--augment", type=lambda text: text == "True")', "${args}"),
        ('p.add_argument("--other", type=bool)', "${args}"),
        ('p.add_argument("--augment", action="store_true")', "${args_no_boolean_flags}"),
        ('p.add_argument("--augment", type=str)  # not type=bool', "${args}"),
        ('p.add_argument("--augment", action=BooleanOptionalAction)', "${args_switches:augment}"),
    ):
        assert boolean_warnings(sandbox, option, macro) == [], option


def test_an_option_is_read_in_the_folder_that_trials_start_in(sandbox: Sandbox) -> None:
    sandbox.write("code/inner/p.py", "p.add_argument('--augment', type=bool)\n")
    spec = BOOLEANS.replace("MACRO", "${args}").replace("code/p.py", "p.py")
    spec = spec.replace("{path: code}}", "{path: code}, workdir: code/inner}")
    sandbox.write("sweeps/peak.yaml", spec)

    codes = [problem.code for problem in check_specs(sandbox.workspace, ["peak"])[1]]

    assert codes == ["boolean-argument"]
