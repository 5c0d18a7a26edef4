"""Commands, macros and text that something else would fill in."""

from typing import Any

import pytest

from sweepledger.distributions.constant import Constant
from sweepledger.structs.space import Parameter
from tests.written_specs import DIGEST, a_spec, bad, good, good_spec, parsed, problems_of

SIGNS = {
    "{{": "Helm, ApplicationSets and workflows fill in {{ … }} in every manifest",
    "}}": "Helm, ApplicationSets and workflows fill in {{ … }} in every manifest",
    "{%": "template engines run {% … %} in every manifest",
    "$(": "Kubernetes fills in $(NAME) in every manifest",
    "${": "Flux fills in ${NAME} in every manifest",
}


@pytest.mark.parametrize("sign", SIGNS)
def test_template_syntax_is_refused_wherever_it_could_be_filled_in(sign: str) -> None:
    text = f"a{sign}b"
    sweep = parsed(
        a_spec(description=text, parameters={"p": {"values": ["x", text, ["y", text]]}, "q": {"value": text}})
    )

    assert isinstance(sweep, tuple)
    values = {f"parameters.{place}" for place in ("p.values[1]", "p.values[2][1]", "q.value")}
    assert {problem.path for problem in sweep} == {*values, "description"}
    assert {(problem.code, problem.message, problem.hint) for problem in sweep} == {
        ("template-syntax", f"must not contain {sign!r}, got {text!r}", SIGNS[sign])
    }


def test_a_workflow_expression_in_a_command_is_reported_once() -> None:
    assert bad(command=["x", "${{ secrets.X }}"]) == [("command[1]", "template-syntax")]


@pytest.mark.parametrize(
    "text", ["`ls`", "; rm -rf /", "&& x", "$HOME", "a { b } c", "%}", "$", "--upload-pack=x", "# x"]
)
def test_shell_text_is_data(text: str) -> None:
    sweep = good(description=text, command=["x", text], parameters={"p": {"value": text}})

    assert sweep.command == ("x", text)
    assert sweep.design.space.parameters == (Parameter("p", Constant(text)),)


def warned(**changes: Any) -> list[tuple[str, str]]:
    return [(problem.path, problem.code) for problem in good_spec(**changes).warnings]


def test_a_program_needs_no_command() -> None:
    command = good(command=..., program="src/train.py").command
    assert command == ("${env}", "${interpreter}", "trainer/src/train.py", "${args}")
    assert bad(command=...) == [("command", "missing-key")]


@pytest.mark.parametrize("argument", ["${seed}", "--seed=${seed}", "${envvar:SWEEP_SEED}"])
def test_replicates_use_their_seed(argument: str) -> None:
    assert warned(replicates=3, command=["train", argument]) == []


def test_replicates_that_do_not_get_their_seed_are_a_warning() -> None:
    assert warned(replicates=3) == [("command", "seed-unused")]
    assert warned(replicates=3, command=..., program="t.py") == [("replicates", "seed-unused")]
    assert warned(replicates=1) == []


@pytest.mark.parametrize(
    "command",
    [
        ["${env}", "${interpreter}", "${args}"],
        ["${env}", "${args_no_hyphens}"],
        ["${interpreter}", "-u", "-B", "${args_no_boolean_flags}"],
        ["${env}", "A=1", "${interpreter}", "${args}"],
    ],
    ids=" ".join,
)
def test_an_interpreter_is_given_a_program(command: list[str]) -> None:
    assert [code for _, code in bad(command=command)] == ["command-program"]


@pytest.mark.parametrize(
    "command",
    [
        ["${interpreter}", "-m", "pkg", "${args}"],
        ["${interpreter}", "-c", "print()"],
        ["${env}", "A=1", "${interpreter}", "t.py"],
        ["${interpreter}", "-u", "t.py", "${args}"],
        ["./run.sh", "${args}"],
    ],
    ids=" ".join,
)
def test_modules_and_texts_are_programs(command: list[str]) -> None:
    assert good(command=command).command == tuple(command)


@pytest.mark.parametrize(
    ("program", "command", "is_unused"),
    [
        ("train.py", ["python", "other.py", "${args}"], True),
        ("train.py", ["python", "-u", "${args}"], True),
        ("a/train.py", ["sh", "-c", "run"], True),
        ("train.py", ["python", "${program}", "${args}"], False),
        ("a/train.py", ["python", "a/train.py"], False),
        ("a/train.py", ["python", "-m", "a.train"], False),
        ("pkg/__main__.py", ["python", "-m", "pkg"], False),
        ("train.py", ["sh", "-c", "python train.py 2>&1"], False),
    ],
)
def test_a_program_left_out_has_a_warning(program: str, command: list[str], *, is_unused: bool) -> None:
    warnings = problems_of(a_spec(program=program, command=command))

    assert ("program-unused" in {problem.code for problem in warnings}) is is_unused


@pytest.mark.parametrize(
    ("word", "path"),
    [
        ("/mnt/data", "/mnt/data"),
        ("--data=/mnt/data", "/mnt/data"),
        ("data.root:/scratch/x", "/scratch/x"),
        ("python t.py --data /mnt/data > log", "/mnt/data"),
        ("['/a/b', 1]", "/a/b"),
        ("/home/me/fasttext", "/home/me/fasttext"),
    ],
)
def test_an_absolute_path_that_no_digest_covers_has_a_warning(word: str, path: str) -> None:
    (warning,) = problems_of(a_spec(command=["python", "t.py", word], run={"image": "local"}))

    assert (warning.path, warning.code) == ("command[2]", "path-outside")
    assert repr(path) in warning.message


@pytest.mark.parametrize(
    "word",
    [
        *("/usr/bin/env", "/bin/sh", "/opt/conda/bin/python3.11", "/usr/local/bin/uv", "/dev/stdin"),
        *(
            *("--data=${envvar:SWEEP_DATA}/mnist", "data/x"),
            *("./x", "../x", "https://example.org/a", "s/a/b/", "/"),
        ),
    ],
)
def test_paths_of_interpreters_of_macros_and_of_the_code_have_none(word: str) -> None:
    assert problems_of(a_spec(command=["python", "t.py", word], run={"image": "local"})) == ()


def test_the_digest_of_an_image_covers_its_paths() -> None:
    command = ["python", "/app/train.py", "${args}"]

    assert problems_of(a_spec(command=command, run={"image": f"registry.example.org/train@{DIGEST}"})) == ()
