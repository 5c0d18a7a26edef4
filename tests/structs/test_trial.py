import pytest
from msgspec.structs import replace

from sweepledger.formats import documents
from sweepledger.structs.program import Code, Data, Program
from sweepledger.structs.trial import Trial, trial_id

PROGRAM = Program(
    "local", ("python", "train.py"), Code("trainer", "a" * 40), Data("mnist", "sha256:" + "b" * 64)
)


def test_a_trial_is_known_by_its_values_not_by_their_order_or_kind_of_number() -> None:
    one = Trial({"a": 1, "b": 0.5}, "p")
    other = Trial({"b": 0.5, "a": 1.0}, "p")

    assert one.digest == other.digest
    assert one.id == other.id


@pytest.mark.parametrize(
    "other",
    [
        Trial({"a": 2}, "p"),
        Trial({"b": 1}, "p"),
        Trial({"a": "1"}, "p"),
        Trial({"a": 1}, "q"),
        Trial({"a": 1}, "p", 1),
    ],
    ids=["value", "name", "type", "program", "replicate"],
)
def test_every_part_of_a_trial_makes_another_trial(other: Trial) -> None:
    assert Trial({"a": 1}, "p").digest != other.digest


def test_an_id_is_a_t_and_eleven_digits_of_the_digest() -> None:
    trial = Trial({"a": 1}, "p")

    assert trial.id == "t" + trial.digest[:11]
    assert trial_id("0123456789abcdef") == "t0123456789a"


def test_the_identity_is_the_same_for_ever() -> None:
    assert Trial({"lr": 0.1, "n": 32}, "p").id == "t28a6d8979eb"


def test_a_program_reads_back_as_it_was_written() -> None:
    assert documents.read(Program, documents.write(PROGRAM)) == PROGRAM
    without = Program("local", ("x",), Code("trainer", "a"), None)
    assert documents.read(Program, documents.write(without)) == without


def test_every_part_of_a_program_makes_another_program() -> None:
    variants = [
        PROGRAM,
        Program("image@sha256:1", PROGRAM.command, PROGRAM.code, PROGRAM.data),
        Program("local", ("python",), PROGRAM.code, PROGRAM.data),
        Program("local", PROGRAM.command, Code("other", "a" * 40), PROGRAM.data),
        Program("local", PROGRAM.command, Code("trainer", "c" * 40), PROGRAM.data),
        Program("local", PROGRAM.command, PROGRAM.code, Data("mnist", "sha256:other")),
        Program("local", PROGRAM.command, PROGRAM.code, None),
        replace(PROGRAM, workdir="mnist"),
        replace(PROGRAM, data=Data("mnist", "sha256:" + "b" * 64, {"mnist": "../data"})),
    ]

    assert len({program.digest for program in variants}) == len(variants)


def test_a_locked_program_answers_while_code_and_data_move_on() -> None:
    today = Program("local", PROGRAM.command, Code("trainer", "new"), Data("mnist", "sha256:new"))

    assert PROGRAM.answers(today)


@pytest.mark.parametrize(
    "wanted",
    [
        Program("image@sha256:1", PROGRAM.command, PROGRAM.code, PROGRAM.data),
        Program("local", ("python",), PROGRAM.code, PROGRAM.data),
        Program("local", PROGRAM.command, Code("other", "a" * 40), PROGRAM.data),
        Program("local", PROGRAM.command, PROGRAM.code, Data("fashion", "sha256:" + "b" * 64)),
        replace(PROGRAM, workdir="mnist"),
        replace(PROGRAM, data=Data("mnist", "sha256:" + "b" * 64, {"mnist": "../data"})),
        Program("local", PROGRAM.command, PROGRAM.code, None),
    ],
    ids=["image", "command", "code path", "dataset", "workdir", "place of data", "no data"],
)
def test_a_locked_program_does_not_answer_another_question(wanted: Program) -> None:
    assert not PROGRAM.answers(wanted)


def test_a_program_without_data_answers_one_without_data() -> None:
    without = Program("local", ("x",), Code("trainer", "a"), None)

    assert without.answers(Program("local", ("x",), Code("trainer", "b"), None))
