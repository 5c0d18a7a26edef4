"""Properties of every sampler, and special properties of some."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import qmc  # type: ignore[import-untyped]

from sweepledger.distributions.choice import Choice
from sweepledger.distributions.constant import Constant
from sweepledger.distributions.uniform import Uniform
from sweepledger.search import halton, sobol
from sweepledger.search.candidates import draw_candidates
from sweepledger.structs.methods import SAMPLERS, Sampler
from sweepledger.structs.search_block import RandomSearch
from tests.pythons import require_python
from tests.search.conformance import PREFIX_STABLE, WITH_BETA, a_space, digest_of_draws, draw_assignments

ROOT = Path(__file__).parent.parent.parent
UNIT = Uniform(0, 1)
COUNT = 300

DIGESTS = {
    SAMPLERS["random"]: "d688dff211805776",
    SAMPLERS["sobol"]: "53c9b5faf006f836",
    SAMPLERS["halton"]: "109732f4c2a586b5",
    SAMPLERS["latin-hypercube"]: "d31df2bc893f0ecd",
}
"""Of draws that committed sweeps are made of: a change here breaks a promise."""

every_sampler = pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=str)


@every_sampler
def test_a_seed_determines_the_draws(sampler: Sampler) -> None:
    space = a_space(**WITH_BETA)

    first, again = (draw_assignments(sampler, space, COUNT, seed=1) for _ in range(2))
    other = draw_assignments(sampler, space, COUNT, seed=2)

    assert first == again
    assert first != other


@every_sampler
def test_an_added_parameter_does_not_change_the_others(sampler: Sampler) -> None:
    few = draw_assignments(sampler, a_space(x=UNIT, y=Choice((1, 2, 3))), COUNT)

    more = draw_assignments(sampler, a_space(x=UNIT, y=Choice((1, 2, 3)), z=UNIT, fixed=Constant(1)), COUNT)

    assert [{"x": candidate["x"], "y": candidate["y"]} for candidate in more] == few


@every_sampler
def test_parameters_are_drawn_independently(sampler: Sampler) -> None:
    assignments = draw_assignments(sampler, a_space(x=UNIT, y=UNIT, z=UNIT), 1024)

    columns = np.array([[float(str(value)) for value in candidate.values()] for candidate in assignments])
    correlations = np.corrcoef(columns.T)

    assert abs(correlations - np.eye(3)).max() < 0.1


@every_sampler
def test_zipped_parameters_move_together(sampler: Sampler) -> None:
    widths, depths = (64, 128, 256), (2, 4, 8)
    space = a_space(("width", "depth"), width=Choice(widths), x=UNIT, depth=Choice(depths))

    assignments = draw_assignments(sampler, space, COUNT)

    pairs = Counter((candidate["width"], candidate["depth"]) for candidate in assignments)
    assert set(pairs) == set(zip(widths, depths, strict=True))
    assert min(pairs.values()) > COUNT / 5


@pytest.mark.parametrize("sampler", PREFIX_STABLE)
def test_raising_the_count_keeps_the_first_candidates(sampler: Sampler) -> None:
    space = a_space(**WITH_BETA)

    few, many = draw_assignments(sampler, space, 20), draw_assignments(sampler, space, COUNT)

    assert many[:20] == few


@every_sampler
def test_a_space_of_constants_has_one_candidate(sampler: Sampler) -> None:
    block = RandomSearch(sampler, a_space(x=Constant(1)), seed=1, cap=10)

    assert list(draw_candidates(block)) == [{"x": 1}]


@pytest.mark.parametrize("seed", range(2))
def test_scrambled_sobol_points_are_still_a_net(seed: int) -> None:
    values = next(sobol.points(seed, ["x", "y"], 0))
    points = list(zip(*values, strict=True))

    for split in range(7):
        boxes = Counter((int(x * 2**split), int(y * 2 ** (6 - split))) for x, y in points)
        assert len(boxes) == len(points) == 64


@pytest.mark.parametrize("seed", range(2))
def test_scrambled_halton_points_still_fill_the_boxes_of_their_bases(seed: int) -> None:
    x, y, _ = next(halton.points(seed, ["x", "y", "z"], 0))

    boxes = Counter((int(left * 4), int(right * 9)) for left, right in list(zip(x, y, strict=True))[:36])

    assert len(boxes) == 36


def test_unscrambled_halton_points_are_scipys() -> None:
    plain = qmc.Halton(5, scramble=False).random(2000)

    for axis, base in zip(range(5), halton.primes(), strict=False):
        identity = [list(range(base))] * halton.digit_count(base)
        ours = halton.radical_inverse(np.arange(2000), identity)
        assert abs(ours - plain[:, axis]).max() < 1e-15


def test_unscrambled_sobol_points_are_scipys() -> None:
    plain = (qmc.Sobol(1, scramble=False).random(64)[:, 0] * 2**30).astype(np.int64)
    identity = [1 << (52 - number) for number in range(30)]

    assert (sobol.scramble_digits(plain, identity, 0) == plain << 23).all()


@every_sampler
def test_draws_never_change(sampler: Sampler) -> None:
    assert digest_of_draws(sampler) == DIGESTS[sampler]


PROGRAM = """
from sweepledger.structs.methods import SAMPLERS
from tests.search.conformance import digest_of_draws
print(*(digest_of_draws(sampler) for sampler in SAMPLERS.values() if sampler.name in {samplers!r}))
"""


ONLY_STATES_KEYS = """
import sys
from unittest.mock import MagicMock

class Struct:
    def __init_subclass__(cls, **options):
        names = [name for base in reversed(cls.__mro__) for name in base.__dict__.get("__annotations__", ())]
        cls.__init__ = lambda self, *values, **named: self.__dict__.update(zip(names, values), **named)

sys.modules["msgspec"] = MagicMock(Struct=Struct)
sys.modules["msgspec.structs"] = MagicMock()
"""
"""Replaces the package with which classes state their keys: no number depends on it."""


def digests_in(python: str, *samplers: Sampler, before: str = "", **environment: str) -> str:
    program = before + PROGRAM.format(samplers=[str(sampler) for sampler in samplers])
    process = subprocess.run(
        [python, "-B", "-c", program],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "generator"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return process.stdout.strip() or process.stderr


@pytest.mark.parametrize(
    ("hash_seed", "language"),
    [
        pytest.param("0", "C", marks=pytest.mark.full_suite("every hash seed and locale")),
        ("4294967295", "C.UTF-8"),
    ],
)
def test_draws_do_not_depend_on_hash_seed_and_locale(hash_seed: str, language: str) -> None:
    text = digests_in(sys.executable, *SAMPLERS.values(), PYTHONHASHSEED=hash_seed, LC_ALL=language)

    assert text == " ".join(DIGESTS.values())


@pytest.mark.sampled(1)
@pytest.mark.parametrize("version", ["3.14", "3.13", "3.12"])
def test_another_python_draws_the_same_random_points_without_libraries(version: str) -> None:
    found = digests_in(require_python(version), SAMPLERS["random"], before=ONLY_STATES_KEYS)

    assert found == DIGESTS[SAMPLERS["random"]]
