"""A sweep that Python defines: the spec that it writes, the program of a function, and trials that a loop evaluates."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sweepledger
from tests.repository import Sandbox, append_to


def slope(rate: float, width: int, kind: str = "plain") -> dict[str, float]:
    return {"score": rate * width, "letters": len(kind)}


@pytest.fixture
def laptop(sandbox: Sandbox) -> Sandbox:
    sandbox.use_as_laptop()
    return sandbox


def define(laptop: Sandbox, command: Any = slope, parameters: Any = None, **options: Any) -> Any:
    chosen = parameters or {"rate": [0.5, 2.0], "width": [1, 3], "kind": ["a, b"]}
    return sweepledger.sweep("slope", command, chosen, path=laptop.root, **options)


def test_a_function_runs_with_typed_values_and_its_results_are_recorded(
    laptop: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded = define(laptop).run(parallel=2)

    assert [(trial.params["rate"], trial.metrics) for trial in recorded.ranked[:1]] == [
        (2.0, {"score": 6.0, "letters": 4.0})
    ]
    assert "4 of 4 trials\n" in capsys.readouterr().out
    assert laptop.git("status", "--porcelain") == ""
    assert laptop.verify().sweeps[0].differences == ()


def test_a_definition_that_changes_runs_what_is_new_alone(laptop: Sandbox) -> None:
    define(laptop, parameters={"rate": [1.0], "width": [1, 2]}).run()
    append_to(laptop.root / "code/train.py", "# nothing that the function needs\n")

    again = define(laptop, parameters={"rate": [1.0], "width": [1, 2, 3]}).run()

    assert sorted((trial.params["width"], trial.batch.split("-")[1]) for trial in again.trials) == [
        (1, "b1"),
        (2, "b1"),
        (3, "b2"),
    ]


def test_a_loop_gets_each_trial_once_and_tells_its_result(laptop: Sandbox) -> None:
    definition = define(laptop, None, {"x": (0.0, 1.0)}, method="random", trials=3)

    asked = []
    for trial in definition.ask():
        asked.append(trial.values["x"])
        trial.tell(score=trial.values["x"])

    recorded = sweepledger.open(laptop.root).sweep("slope")
    assert sorted(asked) == sorted(trial.metrics["score"] for trial in recorded.trials)
    assert recorded.best is not None
    assert recorded.best.metrics == {"score": max(asked)}
    assert list(definition.ask()) == []


def test_a_trial_that_no_loop_answers_has_failed(laptop: Sandbox) -> None:
    definition = define(laptop, None, {"x": [1, 2]})

    for trial in definition.ask():
        trial.tell(score=1)
        break
    alone = laptop.sweep("try", "slope")

    states = sorted(trial.status for trial in sweepledger.open(laptop.root).sweep("slope").trials)
    assert states == ["failed", "ok"]
    assert "no loop asks for trials of slope" in alone.stdout + alone.stderr


values = (1, 2, 3)


def chatty(x: int) -> dict[str, float]:
    import atexit  # noqa: PLC0415

    atexit.register(print, "score=777")
    print("score=0.1")  # noqa: T201
    print("progress", end="")  # noqa: T201
    return {"score": x, "val score": -5.0}


def with_a_global(x: int) -> int:
    return x + len(values)


def test_what_a_function_prints_is_not_its_result(laptop: Sandbox) -> None:
    recorded = define(laptop, chatty, {"x": [1, 2]}).run()

    assert sorted(trial.metrics["score"] for trial in recorded.trials) == [1.0, 2.0]


def test_a_variable_of_the_notebook_is_not_mistaken_for_one_of_the_program(laptop: Sandbox) -> None:
    recorded = define(laptop, with_a_global, {"x": [1]}).run()

    assert [str(trial.error) for trial in recorded.trials] == ["NameError: name 'values' is not defined"]


def test_a_function_that_cannot_run_alone_is_refused(laptop: Sandbox) -> None:
    def inner(x: int) -> Any:
        return laptop

    for command in (lambda x: x, inner, laptop.git, partial(slope, 1), abs):
        with pytest.raises(sweepledger.GeneratorError, match="no function whose source can run alone"):
            define(laptop, command, {"x": [1]})


def test_a_second_loop_is_refused_and_the_first_goes_on(laptop: Sandbox) -> None:
    definition = define(laptop, None, {"x": [1, 2]})

    for trial in definition.ask():
        with pytest.raises(sweepledger.GeneratorError, match="another loop asks for trials of slope"):
            next(definition.ask())
        trial.tell(score=trial.values["x"])
        with pytest.raises(sweepledger.GeneratorError, match="this trial has a result"):
            trial.tell(score=99)

    recorded = sweepledger.open(laptop.root).sweep("slope")
    assert sorted(trial.metrics["score"] for trial in recorded.trials) == [1.0, 2.0]


def test_what_a_person_wrote_is_kept_and_what_a_spec_cannot_have_is_refused(laptop: Sandbox) -> None:
    program = laptop.root / "slope_trial.py"
    program.write_text("mine\n")
    with pytest.raises(sweepledger.GeneratorError, match=r"slope_trial\.py exists"):
        define(laptop)
    program.unlink()
    with pytest.raises(sweepledger.GeneratorError, match="parameter rate must have numbers"):
        define(laptop, parameters={"rate": [object()]})
    for refused in (b"ab", np.array(0.5)):
        with pytest.raises(sweepledger.GeneratorError, match="parameter rate must have numbers"):
            define(laptop, parameters={"rate": refused})
    with pytest.raises(sweepledger.GeneratorError, match="must have a name and values each"):
        sweepledger.sweep("empty", slope, {}, path=laptop.root)
    with pytest.raises(sweepledger.GeneratorError):
        define(laptop, trials=0)
    with pytest.raises(sweepledger.GeneratorError, match="goal must be one of"):
        define(laptop, goal="up")
    definition = define(laptop)
    former = definition.spec.read_bytes()
    with pytest.raises(sweepledger.GeneratorError):
        define(laptop, method="no-such-method")
    with pytest.raises(sweepledger.GeneratorError, match="not a valid sweep name"):
        sweepledger.sweep("../out", slope, {"rate": [1]}, path=laptop.root)
    with pytest.raises(sweepledger.GeneratorError):
        sweepledger.sweep("other", slope, {"rate": [1]}, method="no-such-method", path=laptop.root)

    assert not (laptop.root / "other_trial.py").exists()
    assert definition.spec.read_bytes() == former
    definition.spec.write_text(former.decode().partition("\n")[2])
    with pytest.raises(sweepledger.GeneratorError, match="was not written from Python"):
        define(laptop)


def test_a_module_of_the_repository_is_imported_and_all_of_its_code_runs(
    laptop: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop.write("model.py", "from helper import double\n\n\ndef train(x):\n    return double(x)\n")
    laptop.write("helper.py", "def double(x):\n    return 2 * x\n")
    monkeypatch.syspath_prepend(str(laptop.root))
    from model import train  # type: ignore[import-not-found]  # noqa: PLC0415

    recorded = sweepledger.sweep("doubled", train, {"x": [1, 2]}, path=laptop.root).run()

    assert recorded.best is not None
    assert recorded.best.metrics == {"score": 4.0}
    assert Path(laptop.root, "doubled_trial.py").read_text().count("from model import train as evaluate") == 1
