"""The Sweep of a valid spec."""

import pytest

from sweepledger.model.keys import decode, keys_of
from sweepledger.structs.metric import Goal, Metric, MetricSource
from sweepledger.structs.run_config import RunConfig
from sweepledger.structs.sweep import Sweep, SweepKeys
from sweepledger.structs.values import bytes_digest
from tests.sweeps import with_every_key
from tests.written_specs import SETTINGS, a_spec, good, parse_sweep, parsed, spec_bytes

BLOCKS = {"": SweepKeys, "metric": Metric, "run": RunConfig}


def test_defaults_are_those_of_the_values() -> None:
    sweep = good()

    assert sweep.metric == Metric("accuracy", Goal.MINIMIZE, MetricSource.RESULT)
    assert sweep.run == RunConfig()
    assert sweep.description == ""
    assert sweep.design.method == "grid"
    assert sweep.path == "sweeps/lr.yaml"


@pytest.mark.parametrize(
    ("block", "name"),
    [(block, name) for block, kind in BLOCKS.items() for name in keys_of(kind)],
)
def test_a_key_with_its_example_is_in_the_sweep_or_lacks_another(block: str, name: str) -> None:
    key = keys_of(BLOCKS[block])[name]
    example = with_every_key(key.annotation)
    others = {"name": "accuracy", "goal": "minimize"} if block == "metric" else {}

    sweep = parsed(a_spec(**{block: {**others, name: example}} if block else {name: example}))

    if isinstance(sweep, Sweep):
        values = getattr(sweep, block) if block else sweep
        assert getattr(values, key.attribute) == decode(key.annotation, example)
    else:
        path = f"{block}.{name}" if block else name
        assert all(problem.path.startswith(path) for problem in sweep)
        assert not {problem.code for problem in sweep} & {"unknown-key", "wrong-type", "wrong-form"}


def test_the_digest_is_of_the_text_whatever_the_line_ends() -> None:
    text = spec_bytes(a_spec())

    unix = parse_sweep(text, "sweeps/lr.yaml", SETTINGS)
    windows = parse_sweep(b"\xef\xbb\xbf" + text.replace(b"\n", b"\r\n"), "sweeps/lr.yaml", SETTINGS)

    assert isinstance(unix, Sweep)
    assert unix == windows
    assert unix.digest == bytes_digest(text)


def test_whole_floats_are_integers_where_integers_are_asked_for() -> None:
    run = good(
        run={"parallelism": 4.0, "retries": 1.0, "seed_base": 2.0, "resources": {"gpu": 1.0, "cpu": 2.0}}
    ).run

    assert repr((run.parallelism, run.retries, run.seed_base, run.resources.gpu)) == "(4, 1, 2, 1)"
    assert run.resources.cpu == "2"
