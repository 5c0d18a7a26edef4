"""What `generate` does with what expansion has to say."""

import pytest

from sweepledger.errors import SpecError
from tests.repository import SPEC, Sandbox, check_specs

CONSTRAINED = SPEC.replace("command:", 'constraints: ["{constraint}"]\ncommand:')


def spec(sandbox: Sandbox, name: str, constraint: str) -> None:
    text = CONSTRAINED.format(name=name, xs="1, 2, 3", parallelism=2, constraint=constraint)
    sandbox.write(f"sweeps/{name}.yaml", text)


def test_the_problems_of_all_sweeps_are_told_at_once_and_nothing_is_written(sandbox: Sandbox) -> None:
    for name in ("first", "second"):
        spec(sandbox, name, "x > 3")
    sandbox.spec("sound")

    with pytest.raises(SpecError) as caught:
        sandbox.generate()

    results = [(problem.file, problem.code) for problem in caught.value.problems]
    assert results == [(f"sweeps/{name}.yaml", "constraint-nothing") for name in ("first", "second")]
    assert sandbox.active() == []


def test_warnings_stop_nothing_and_reach_who_asked(sandbox: Sandbox) -> None:
    spec(sandbox, "peak", "x < 9")

    (made,) = sandbox.generate()

    assert made.trials == 3
    assert "constraint-everything" in {warning.code for warning in made.warnings}
    assert len(sandbox.active()) == 1
    assert set(made.warnings) == set(check_specs(sandbox.workspace)[1])


def cube(sandbox: Sandbox, cap: int, high: float = 1.0) -> None:
    parameters = {"x": {"min": 0.0, "max": high}}
    sandbox.write_spec("cube", method="latin-hypercube", seed=1, run_cap=cap, parameters=parameters)


def test_a_latin_hypercube_that_has_a_batch_cannot_grow_within_its_bounds(sandbox: Sandbox) -> None:
    cube(sandbox, 2)
    sandbox.publish_batches("Ask")
    cube(sandbox, 4)
    sandbox.commit("Ask for more")

    with pytest.raises(SpecError) as caught:
        sandbox.generate()

    (problem,) = caught.value.problems
    assert (problem.code, problem.path) == ("hypercube-count", "parameters")
    assert "must stay 2" in problem.message
    assert len(sandbox.active()) == 1
    cube(sandbox, 4, high=2.0)
    (made,) = sandbox.generate()
    assert (made.trials, made.known) == (4, 0), "with other bounds it is another one"
