"""What needs SciPy names the extra, and what does not need it works without."""

import sys

import pytest

from sweepledger.distributions.beta import Beta
from sweepledger.distributions.uniform import Uniform
from sweepledger.errors import ToolError
from sweepledger.search.unit_cube import discrepancy
from sweepledger.structs.domain import Domain
from sweepledger.structs.methods import SAMPLERS, Sampler
from tests.search.conformance import a_space, draw_assignments


@pytest.fixture(autouse=True)
def without_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.split(".")[0] == "scipy"] or ["scipy"]:
        monkeypatch.setitem(sys.modules, module, None)
    for module in ("scipy", "scipy.stats", "scipy.stats.qmc", "scipy.special"):
        monkeypatch.setitem(sys.modules, module, None)


@pytest.mark.parametrize(
    "sampler", [sampler for sampler in SAMPLERS.values() if sampler is not SAMPLERS["sobol"]]
)
def test_other_samplers_and_the_discrepancy_do_not_need_it(sampler: Sampler) -> None:
    points = [[float(str(each["x"]))] for each in draw_assignments(sampler, a_space(x=Uniform(0, 1)), 8)]

    assert len(points) == 8
    assert discrepancy(points) is not None


@pytest.mark.parametrize(
    ("sampler", "domain", "what"),
    [
        (SAMPLERS["sobol"], Uniform(0, 1), "method: sobol"),
        (SAMPLERS["random"], Beta(2, 3), "distribution: beta"),
    ],
    ids=["sobol", "beta"],
)
def test_the_extra_is_named_when_it_is_needed(sampler: Sampler, domain: Domain, what: str) -> None:
    with pytest.raises(ToolError, match=f"{what} requires SciPy, which is not installed") as caught:
        draw_assignments(sampler, a_space(x=domain), 8)

    assert caught.value.hint == "`pip install 'sweepledger[sampling]'`"
