"""The starter spec works as it is."""

import pytest

from sweepledger.distributions.choice import Choice
from sweepledger.distributions.constant import Constant
from sweepledger.distributions.int_uniform import IntUniform
from sweepledger.distributions.log_uniform import LogUniform
from sweepledger.distributions.uniform import Uniform
from sweepledger.operations.scaffold.starter import MNIST, PLAIN, Starter, starter_spec
from sweepledger.structs.methods import METHODS
from sweepledger.structs.metric import Goal
from sweepledger.structs.settings import Dataset, Settings
from sweepledger.structs.space import Parameter
from sweepledger.structs.sweep import Sweep
from tests.sweeps import with_keys
from tests.written_specs import parse_sweep

SETTINGS = with_keys(Settings(), datasets={"mnist": Dataset("mnist", "mnist", "sha256:" + "0" * 64)})


@pytest.mark.parametrize("name", ["lr", "a" * 36])
def test_the_starter_is_a_valid_grid_over_the_trainer(name: str) -> None:
    sweep = parse_sweep(starter_spec(name, example=MNIST).encode(), f"sweeps/{name}.yaml", SETTINGS)

    assert isinstance(sweep, Sweep)
    assert sweep.name == name
    assert sweep.metric.goal is Goal.MAXIMIZE
    assert sweep.command == ("python", "-m", "trainer", "mnist", "${args}")
    assert sweep.design.space.parameters == (
        Parameter("learning_rate", Choice((0.01, 0.04, 0.1, 0.4))),
        Parameter("batch_size", Choice((32, 64, 128, 512))),
        Parameter("epochs", Constant(2)),
    )


def test_the_plain_starter_is_valid_in_a_repository_without_settings() -> None:
    sweep = parse_sweep(starter_spec("lr", example=PLAIN).encode(), "sweeps/lr.yaml", Settings())

    assert isinstance(sweep, Sweep)
    assert sweep.run.code_path == "code"


def test_a_range_makes_the_starter_a_search_whose_method_is_chosen() -> None:
    starter = Starter(
        ("python", "train.py"), ("rate=1e-5..0.1", "depth=1..4000", "shift=-1.5..2", "kind=a,b")
    )

    sweep = parse_sweep(starter.spec("lr", code=".").encode(), "sweeps/lr.yaml", Settings())

    assert isinstance(sweep, Sweep)
    assert sweep.search is not None
    assert sweep.search.method is METHODS["bayes"]
    assert sweep.search.space.parameters == (
        Parameter("rate", LogUniform(1e-5, 0.1)),
        Parameter("depth", IntUniform(1, 4000)),
        Parameter("shift", Uniform(-1.5, 2)),
        Parameter("kind", Choice(("a", "b"))),
    )


@pytest.mark.parametrize(
    ("parameters", "method", "why"),
    [
        (tuple(f"x{number}=0..1" for number in range(12)), "bayes", "a Gaussian process learns most"),
        (tuple(f"x{number}=0..1" for number in range(13)), "tpe", "13 parameters are more than the 12"),
        (("x=0..1", f"word={','.join(f'w{number}' for number in range(23))}"), "bayes", "a Gaussian process"),
        (
            ("x=0..1", f"word={','.join(f'w{number}' for number in range(24))}"),
            "tpe",
            "25 numbers and values",
        ),
    ],
)
def test_the_method_suits_the_parameters(parameters: tuple[str, ...], method: str, why: str) -> None:
    text = Starter(("python", "train.py"), parameters).spec("lr", code=".")

    assert f"\nmethod: {method}   # a search, whose rounds learn from results; {why}" in text


def test_a_range_begins_with_its_lower_bound() -> None:
    with pytest.raises(ValueError, match="lower number first"):
        Starter(("python", "train.py"), ("rate=1..1",)).spec("lr", code=".")


@pytest.mark.parametrize("value", ["../data", "1..", "..2"])
def test_two_dots_make_a_range_only_between_numbers(value: str) -> None:
    text = Starter(("python", "train.py"), (f"data={value}",)).spec("lr", code=".")

    assert value in text.partition("values: [")[2].partition("]")[0]
    assert "method: grid" in text


@pytest.mark.parametrize(
    ("parameter", "form"),
    [
        ("k=(1,2),(3,4)", "write lists as [[1, 2], [3, 4]], or each text in quotes in the spec"),
        ("k=Normal(0,1),none", 'write each text in quotes: ["Normal(0, 1)", "none"]'),
        ("k=f(a", 'write each text in quotes: ["f(a"]'),
    ],
)
def test_values_that_commas_divide_are_refused_with_the_form_to_write(parameter: str, form: str) -> None:
    with pytest.raises(ValueError, match="must have no values with commas") as caught:
        Starter(("python", "train.py"), (parameter,)).spec("lr", code=".")

    assert form in str(caught.value)


@pytest.mark.parametrize(
    ("command", "parameters", "comment"),
    [
        ("python p.py", ("x=0.0,0.2",), '"${args}" becomes --x=0.0'),
        ("python p.py", ("x=0.50,1", "flag=true"), '"${args}" becomes --x=0.5 --flag=True'),
        ("python p.py", ("x=0..1.0", "n=1..4"), '"${args}" becomes, for example, --x=0.0 --n=1'),
        ("python p.py", ("note=a b,c",), """"${args}" becomes '--note=a b'"""),
        ("python p.py ${args_no_hyphens}", ("x=1",), '"${args_no_hyphens}" becomes x=1'),
        ("python p.py --x=${envvar:SWEEP_PARAM_X}", ("x=1",), "no shell\n"),
    ],
)
def test_the_comment_on_the_command_is_true(command: str, parameters: tuple[str, ...], comment: str) -> None:
    text = Starter(tuple(command.split()), parameters).spec("lr", code=".")

    assert isinstance(parse_sweep(text.encode(), "sweeps/lr.yaml", Settings()), Sweep)
    assert comment in text


@pytest.mark.parametrize("word", ["1", "1e-3", "null", "no", "2026-01-02", "[a]"])
def test_every_word_of_the_command_is_text(word: str) -> None:
    text = Starter(("python", "p.py", "--epochs", word), ("x=1,2",)).spec("lr", code=".")

    sweep = parse_sweep(text.encode(), "sweeps/lr.yaml", Settings())

    assert isinstance(sweep, Sweep)
    assert sweep.command == ("python", "p.py", "--epochs", word, "${args}")
