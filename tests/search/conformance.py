"""What all samplers are held to, and spaces to hold them to it; needs nothing but the package under test."""

from itertools import islice

from sweepledger.distributions.beta import Beta
from sweepledger.distributions.choice import Choice
from sweepledger.distributions.constant import Constant
from sweepledger.distributions.int_uniform import IntUniform
from sweepledger.distributions.log_normal import LogNormal
from sweepledger.distributions.log_uniform import LogUniform
from sweepledger.distributions.normal import Normal
from sweepledger.distributions.quantized import Quantized
from sweepledger.distributions.uniform import Uniform
from sweepledger.search.candidates import draw_candidates
from sweepledger.structs.domain import Domain
from sweepledger.structs.methods import SAMPLERS, Sampler
from sweepledger.structs.search_block import RandomSearch
from sweepledger.structs.space import Parameter, SearchSpace
from sweepledger.structs.values import Value, digest

DOMAINS: dict[str, Domain] = {
    "choice": Choice(("adam", "sgd", None, (1, 2))),
    "weighted": Choice((1, 2.5, True), (0.2, 0.3, 0.5)),
    "int_uniform": IntUniform(1, 7),
    "uniform": Uniform(-1, 2),
    "log_uniform": LogUniform(1e-5, 0.1),
    "normal": Normal(1, 2),
    "truncated": Normal(0, 1, -0.5, 3),
    "at_least": Normal(0, 1, low=2),
    "at_most": Normal(0, 1, high=-2),
    "log_normal": LogNormal(0, 1),
    "q_uniform": Quantized(Uniform(0, 1), 0.1),
    "q_log_uniform": Quantized(LogUniform(1, 1000), 8),
    "q_normal": Quantized(Normal(0, 3), 0.5),
    "q_log_normal": Quantized(LogNormal(1, 1), 1),
}
"""One of each kind that arithmetic alone decides; the beta distribution is SciPy's."""

WITH_BETA: dict[str, Domain] = {**DOMAINS, "beta": Beta(2, 3), "q_beta": Quantized(Beta(2, 3), 0.05)}

PREFIX_STABLE = tuple(sampler for sampler in SAMPLERS.values() if not sampler.has_fixed_count)


def a_space(*zips: tuple[str, ...], **domains: Domain) -> SearchSpace:
    return SearchSpace(tuple(Parameter(name, domain) for name, domain in domains.items()), zips)


def draw_assignments(
    sampler: Sampler, space: SearchSpace, count: int, *, seed: int = 1, cap: int | None = None
) -> list[dict[str, Value]]:
    """Take the first candidates of a block, whose cap is as many if nothing else is said."""
    return list(islice(draw_candidates(RandomSearch(sampler, space, seed, cap or count)), count))


def digest_of_draws(sampler: Sampler) -> str:
    """Sum up all that a sampler's draws depend on: kinds, zips, constants, and the edges of chunks."""
    zipped: dict[str, Domain] = {
        "zipped": Choice((1, 2, 3)),
        "constant": Constant("x"),
        "partner": Choice(("a", "b", "c")),
    }
    return digest(
        draw_assignments(sampler, a_space(("zipped", "partner"), **DOMAINS, **zipped), 300, seed=2**53)
    )[:16]
