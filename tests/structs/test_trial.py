from msgspec.structs import replace

from sweepledger.structs.program import Code, Data, Program
from sweepledger.structs.trial import Trial

PROGRAM = Program(
    "local", ("python", "train.py"), Code("trainer", "a" * 40), Data("mnist", "sha256:" + "b" * 64)
)


def test_a_trial_is_known_by_its_values_not_by_their_order_or_kind_of_number() -> None:
    one = Trial({"a": 1, "b": 0.5}, "p")
    other = Trial({"b": 0.5, "a": 1.0}, "p")

    assert one.digest == other.digest
    assert one.id == other.id


def test_every_part_of_a_trial_makes_another_trial() -> None:
    trials = [
        Trial({"a": 1}, "p"),
        Trial({"a": 2}, "p"),
        Trial({"b": 1}, "p"),
        Trial({"a": "1"}, "p"),
        Trial({"a": 1}, "q"),
        Trial({"a": 1}, "p", 1),
    ]

    assert len({trial.digest for trial in trials}) == len(trials)


def test_the_identity_is_the_same_for_ever() -> None:
    assert Trial({"lr": 0.1, "n": 32}, "p").id == "t28a6d8979eb"


OTHERS = [
    replace(PROGRAM, image="image@sha256:1"),
    replace(PROGRAM, command=("python",)),
    replace(PROGRAM, code=Code("other", "a" * 40)),
    replace(PROGRAM, data=Data("fashion", "sha256:" + "b" * 64)),
    replace(PROGRAM, data=Data("mnist", "sha256:" + "b" * 64, {"mnist": "../data"})),
    replace(PROGRAM, data=None),
    replace(PROGRAM, workdir="mnist"),
]
MOVED = [
    replace(PROGRAM, code=Code("trainer", "c" * 40)),
    replace(PROGRAM, data=Data("mnist", "sha256:other")),
]


def test_a_program_differs_in_every_part_and_answers_the_same_question_while_code_and_data_move_on() -> None:
    programs = [PROGRAM, *OTHERS, *MOVED]

    assert len({program.digest for program in programs}) == len(programs)
    assert [PROGRAM.answers(wanted) for wanted in programs] == [True, *[False] * len(OTHERS), True, True]
