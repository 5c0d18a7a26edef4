import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.contract import BAD_HYPERPARAMETERS, BAD_SWEEP, TrialError
from trainer.hyperparameters import (
    NETWORKS,
    WORKLOADS,
    Configuration,
    Eidf,
    Resnet9,
    RunOptions,
    Small,
    format_value,
    hyperparameters_of,
    parse,
)

ALL = [(workload, network) for workload, able in WORKLOADS.items() for network in able]


def small(*arguments: str) -> Small:
    network = parse("mnist", arguments).network
    assert isinstance(network, Small)
    return network


def refusal(*arguments: str, workload: str = "mnist") -> TrialError:
    with pytest.raises(TrialError) as caught:
        parse(workload, arguments)
    return caught.value


@pytest.mark.parametrize(
    ("workload", "network"), [("mnist", Small()), ("cifar10", Resnet9()), ("fashion-mnist", Resnet9())]
)
def test_no_arguments_mean_the_first_network(workload: str, network: Small | Resnet9) -> None:
    assert parse(workload, []) == Configuration(workload, network, RunOptions())


@pytest.mark.parametrize("text", ["off", "false", "true", "True"])
def test_a_switch_is_on_or_off_however_it_is_written(text: str) -> None:
    is_on = text.lower() in {"on", "true"}

    assert parse("cifar10", [f"--batch_norm={text}"]).network == Resnet9(batch_norm=is_on)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--batch_norm=maybe"], "--batch_norm: must be on or off, got 'maybe'"),
        (["--network=eidf"], "--network: must be resnet9, got 'eidf'"),
        (["--batch_size=6.5"], "--batch_size: must be a whole number, got '6.5'"),
        (["--epochs"], "--epochs: must have a value, such as --epochs=24"),
        (["--epochs=1", "--epochs=1"], "--epochs: must be given only once"),
        (["epochs=2"], "epochs=2: must have the form --name=value"),
        (
            ["--batch-norm=on"],
            "--batch-norm: is not a hyperparameter of this trainer\n  hint: did you mean --batch_norm?",
        ),
    ],
)
def test_an_argument_that_cannot_be_read_makes_the_sweep_bad(arguments: list[str], message: str) -> None:
    error = refusal(*arguments, workload="cifar10")

    assert str(error) == message
    assert error.exit_code == BAD_SWEEP


def test_hyperparameters_of_another_network_are_unknown() -> None:
    assert "is not a hyperparameter" in str(refusal("--gamma=0.5"))
    assert parse("mnist", ["--gamma=0.5", "--network=eidf"]).network == Eidf(gamma=0.5)


@pytest.mark.parametrize(("workload", "network"), ALL)
def test_every_default_written_as_text_is_read_as_itself(workload: str, network: str) -> None:
    known = list(hyperparameters_of(workload, network).values())
    defaults = [f"--{each.name}={format_value(each.default)}" for each in known if each.name != "network"]

    configuration = parse(workload, [f"--network={network}", *defaults])

    assert configuration == Configuration(workload, NETWORKS[network](), RunOptions())
    assert all(each.unit and each.meaning for each in known)


@given(st.floats(min_value=0, exclude_min=True, allow_infinity=False))
def test_any_positive_float_arrives_exactly(value: float) -> None:
    assert small(f"--learning_rate={value}").learning_rate == value


@given(st.integers(min_value=1, max_value=2**53))
def test_any_whole_number_arrives_exactly(value: int) -> None:
    assert small(f"--epochs={value}").epochs == value


@pytest.mark.parametrize("text", ["64.0", "6.4e1", "+64"])
def test_a_whole_number_may_be_written_in_any_way(text: str) -> None:
    size = small(f"--batch_size={text}").batch_size

    assert size == 64
    assert isinstance(size, int)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--learning_rate=0", "--learning_rate: must be greater than 0 and finite, got '0'"),
        ("--learning_rate=1e400", "--learning_rate: must be greater than 0 and finite, got '1e400'"),
        ("--batch_size=0", "--batch_size: must be at least 1 and finite, got '0'"),
        ("--epochs=1e400", "--epochs: must be at least 1 and finite, got '1e400'"),
        ("--momentum=1", "--momentum: must be at least 0 and less than 1, got '1'"),
        ("--weight_decay=-1", "--weight_decay: must be at least 0 and finite, got '-1'"),
        ("--width=513", "--width: must be from 1 to 512, got '513'"),
    ],
)
def test_a_value_that_cannot_be_trained_names_location_rule_and_value(argument: str, message: str) -> None:
    error = refusal(argument)

    assert str(error) == message
    assert error.exit_code == BAD_HYPERPARAMETERS


@pytest.mark.parametrize("text", ["fast", "nan", "1_0", " 1", "٣", "9" * 41])
def test_text_that_is_not_a_number_makes_the_sweep_bad(text: str) -> None:
    error = refusal(f"--learning_rate={text}")

    assert str(error) == f"--learning_rate: must be a number, got {text[:40]!r}"
    assert error.exit_code == BAD_SWEEP


def test_all_problems_are_reported_at_once_and_a_bad_sweep_outweighs_bad_values() -> None:
    error = refusal("--lerning_rate=1", "--batch_size=0", "--epochs", "--epochs=2", "--momentum=x", "stray")

    assert [problem.location for problem in error.problems] == [
        *("--lerning_rate", "--batch_size", "--epochs", "--epochs", "--momentum", "stray")
    ]
    assert error.exit_code == BAD_SWEEP
