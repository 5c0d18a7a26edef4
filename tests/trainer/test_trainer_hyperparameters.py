import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.contract import BAD_HYPERPARAMETERS, BAD_SWEEP, TrialError
from trainer.hyperparameters import KNOBS, Hyperparameters, parse


def refusal(*arguments: str) -> TrialError:
    with pytest.raises(TrialError) as caught:
        parse(arguments)
    return caught.value


def test_both_forms_of_arguments_mean_the_same() -> None:
    joined = parse(["--learning_rate=0.4", "--batch_size=32"])

    apart = parse(["--learning_rate", "0.4", "--batch_size", "32"])

    assert joined == apart == Hyperparameters(learning_rate=0.4, batch_size=32)


def test_no_arguments_mean_the_defaults() -> None:
    assert parse([]) == Hyperparameters()


@pytest.mark.parametrize("name", KNOBS)
def test_a_default_written_as_text_is_read_as_itself(name: str) -> None:
    assert parse([f"--{name}={KNOBS[name].default}"]) == Hyperparameters()


@given(st.floats(min_value=0, exclude_min=True, allow_infinity=False))
def test_any_positive_float_arrives_exactly(value: float) -> None:
    assert parse([f"--learning_rate={value}"]).learning_rate == value


@given(st.integers(min_value=1, max_value=2**53))
def test_any_whole_number_arrives_exactly(value: int) -> None:
    assert parse([f"--epochs={value}"]).epochs == value


@pytest.mark.parametrize("text", ["64", "64.0", "6.4e1", "+64"])
def test_a_whole_number_may_be_written_in_any_way(text: str) -> None:
    size = parse([f"--batch_size={text}"]).batch_size

    assert size == 64
    assert isinstance(size, int)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--learning_rate=0", "--learning_rate: must be greater than 0 and finite, got '0'"),
        ("--learning_rate=-0.1", "--learning_rate: must be greater than 0 and finite, got '-0.1'"),
        ("--learning_rate=1e400", "--learning_rate: must be greater than 0 and finite, got '1e400'"),
        ("--batch_size=0", "--batch_size: must be at least 1 and finite, got '0'"),
        ("--epochs=1e400", "--epochs: must be at least 1 and finite, got '1e400'"),
        ("--momentum=1", "--momentum: must be at least 0 and less than 1, got '1'"),
        ("--label_smoothing=-0.1", "--label_smoothing: must be at least 0 and less than 1, got '-0.1'"),
        ("--warmup=1.0", "--warmup: must be at least 0 and less than 1, got '1.0'"),
        ("--weight_decay=-1", "--weight_decay: must be at least 0 and finite, got '-1'"),
        ("--width=0", "--width: must be from 1 to 512, got '0'"),
        ("--width=513", "--width: must be from 1 to 512, got '513'"),
    ],
)
def test_a_value_that_cannot_be_trained_names_place_rule_and_value(argument: str, message: str) -> None:
    error = refusal(argument)

    assert str(error) == message
    assert error.exit_code == BAD_HYPERPARAMETERS


@pytest.mark.parametrize(
    "text", ["fast", "", "nan", "inf", "None", "True", "1_0", " 1", "0x1", "٣", "9" * 41]
)
def test_what_is_no_number_makes_the_sweep_bad(text: str) -> None:
    error = refusal(f"--learning_rate={text}")

    assert str(error) == f"--learning_rate: must be a number, got {text[:40]!r}"
    assert error.exit_code == BAD_SWEEP


def test_a_fraction_is_no_count() -> None:
    error = refusal("--batch_size=6.5")

    assert str(error) == "--batch_size: must be a whole number, got '6.5'"
    assert error.exit_code == BAD_SWEEP


def test_a_misspelt_knob_is_refused_with_the_nearest_name() -> None:
    error = refusal("--learning-rate=0.1")

    assert str(error) == (
        "--learning-rate: is no hyperparameter of this trainer\n  hint: did you mean --learning_rate?"
    )
    assert error.exit_code == BAD_SWEEP


def test_an_unlike_knob_is_refused_with_all_names() -> None:
    assert str(refusal("--zzz=1")).endswith(f"hint: there are {', '.join(sorted(KNOBS))}")


def test_all_problems_are_told_at_once_and_a_bad_sweep_outweighs_bad_values() -> None:
    error = refusal("--lerning_rate=1", "--batch_size=0", "--epochs", "--epochs=2", "--momentum=x", "stray")

    assert [problem.place for problem in error.problems] == [
        "--lerning_rate",
        "--batch_size",
        "--epochs",
        "--epochs",
        "--momentum",
        "stray",
    ]
    assert error.exit_code == BAD_SWEEP


def test_a_knob_without_a_value_shows_one() -> None:
    assert str(refusal("--epochs")) == "--epochs: must have a value, such as --epochs=2"
    assert str(refusal("--epochs", "--width=8")) == "--epochs: must have a value, such as --epochs=2"


def test_a_knob_given_twice_is_refused() -> None:
    assert str(refusal("--epochs=1", "--epochs=1")) == "--epochs: must be given once, got it again"


def test_a_negative_number_after_a_space_is_a_value() -> None:
    assert refusal("--learning_rate", "-1").exit_code == BAD_HYPERPARAMETERS


def test_a_word_that_belongs_to_no_knob_is_told_as_it_was_typed() -> None:
    assert str(refusal("epochs=2")) == "epochs=2: must have the form --name=value"
