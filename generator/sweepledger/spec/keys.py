"""A spec as its author writes it: its keys, each with type, bounds, default, description and example.

`sweepledger.model.keys` describes how a class declares keys. Classes that the Sweep takes over unchanged, such as the
metric and the run, are in the modules of their subjects.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated, Any

from msgspec import Meta, Struct

from sweepledger import distributions
from sweepledger.model.keys import EMPTY, GROUP
from sweepledger.stopping import TYPES
from sweepledger.structs import methods
from sweepledger.structs.early_stopping import DEFAULT_ETA, StopPolicy
from sweepledger.structs.metric import Goal, GoalKey, Impute, ImputeKey, Metric, MetricName
from sweepledger.structs.names import PARAMETER_NAME, SWEEP_NAME
from sweepledger.structs.program import DEFAULT_COMMAND
from sweepledger.structs.search_block import Resource, Rounds, StartMapping
from sweepledger.structs.space import MAX_TRIALS
from sweepledger.structs.sweep import NAME_OR_MAPPING, SweepKeys
from sweepledger.structs.values import LARGEST_EXACT_INTEGER

MOST_NAMES = 100
"""Parameters, constraints, derived values, names of a group."""
FEW, SOME = Meta(min_length=1, max_length=MOST_NAMES), Meta(min_length=1, max_length=MAX_TRIALS)

SCALARS = ["string", "number", "boolean", "null"]
Scalar = Annotated[
    Any,
    Meta(
        description="A number, text, true, false or null.",
        extra_json_schema={"type": SCALARS},
        examples=[64, "relu", True, None],
    ),
]
LISTS = {"type": [*SCALARS, "array"], "items": {"$ref": "#/$defs/scalar"}}
ParameterValue = Annotated[
    Any,
    Meta(
        description="A number, text, true, false, null, or a list of those.",
        extra_json_schema=LISTS,
        examples=[0.1, "adam", [64, 64]],
    ),
]
AnyValue = Annotated[Any, Meta(extra_json_schema={"$ref": "#/$defs/value"})]
ParameterName = Annotated[str, Meta(pattern=f"^{PARAMETER_NAME.pattern}$")]
Points = Annotated[tuple[float, ...], Meta(min_length=3, max_length=3)]
Positive = Annotated[float, Meta(gt=0)]
BetaShape = Annotated[float, Meta(ge=0.001, le=100_000)]
"""Between these bounds, SciPy's quantiles are correct to ten digits; outside, nearly all draws are equal."""
Step = Annotated[int, Meta(ge=1, le=LARGEST_EXACT_INTEGER)]
Formula = Annotated[str, Meta(max_length=1000)]
Share = Annotated[float, Meta(ge=0, le=1)]
PARAMETERS = Meta(extra_json_schema={"$ref": "#/$defs/parameters"})
PARAMETERS_EXAMPLE = {"learning_rate": {"values": [0.01, 0.1]}, "epochs": {"value": 2}}
GROUP_EXAMPLE = {"lr": {"values": [0.01, 0.1]}, "name": {"value": "sgd"}}


Wanted = Annotated[
    Any,
    Meta(
        description="The value that the other parameter must have, or a list of such values; write a value that is a "
        "list as a list in the list.",
        extra_json_schema={"type": [*SCALARS, "array"], "items": {"$ref": "#/$defs/value"}},
        examples=["sgd", ["adam", "adamw"], [[64, 64]]],
    ),
]
WHEN_EXAMPLES = [{"optimizer": "sgd"}, {"optimizer": ["adam", "adamw"]}]


def one_of(text: str, words: Mapping[str, str], *examples: str) -> Meta:
    """Return the annotation of a key whose value is one of these words, each with its text."""
    listed = "\n".join(f"- `{word}`: {meaning}" for word, meaning in words.items())
    return Meta(
        description=f"{text}\n\n{listed}.", extra_json_schema={"enum": [*words]}, examples=[*examples]
    )


Distribution = Annotated[
    str,
    Meta(
        description="How values are drawn; W&B's names and meanings. Default with `min` and `max`: `int_uniform` if "
        "both are written as integers, else `uniform`.\n\n"
        + "\n".join(f"- {module.TEXT}" for module in distributions.MODULES)
        + f"\n- {', '.join(f'`{name}`' for name in distributions.ROUNDED)}: the same, rounded to multiples of q.",
        extra_json_schema={"enum": [*distributions.FORMS]},
    ),
]


class ParameterKeys(Struct, frozen=True, kw_only=True):
    """The keys of a hyperparameter."""

    value: Annotated[Any, Meta(extra_json_schema=LISTS, examples=[2, "adam", [64, 64]])] = None
    """The value for all trials: a number, text, true, false, null, or a list of those."""
    values: Annotated[tuple[AnyValue, ...], SOME, Meta(examples=[[0.01, 0.04, 0.1], ["adam", "sgd"]])] = ()
    """The values to try, all different: numbers, text, true, false, null, or lists of those."""
    probabilities: Annotated[tuple[Share, ...], SOME, Meta(examples=[[0.7, 0.2, 0.1]])] = ()
    """Probability of each of the `values`, in their order; they sum to 1. For sampling methods. Default: equal
    probabilities."""
    min: Annotated[float, Meta(examples=[0.0001, 1])] | None = None
    """The lower bound, included. With `log_uniform`, `q_log_uniform` and `inv_log_uniform` it is a natural-log
    exponent, as in W&B: -7 means exp(-7)."""
    max: Annotated[float, Meta(examples=[0.1, 16])] | None = None
    """The upper bound, included. With `log_uniform`, `q_log_uniform` and `inv_log_uniform` it is a natural-log
    exponent, as in W&B: 0 means 1."""
    step: Annotated[Positive, Meta(examples=[0.1, 2])] | None = None
    """Makes the range a list: from `min` to `max` by exactly this decimal step, both included."""
    count: Annotated[int, Meta(ge=2, le=MAX_TRIALS, examples=[5])] | None = None
    """Makes the range a list of this number of points, both bounds included: evenly spaced, or by equal ratios with a
    log distribution."""
    distribution: Annotated[Distribution, Meta(examples=["log_uniform_values"])] | None = None
    mu: Annotated[float, Meta(examples=[0.5])] = 0
    """Mean of a normal distribution; of the logarithm for `log_normal`."""
    sigma: Annotated[Positive, Meta(examples=[0.1])] = 1
    """Standard deviation of a normal distribution; of the logarithm for `log_normal`."""
    a: Annotated[BetaShape, Meta(examples=[2])] = 1
    """First shape parameter of the beta distribution."""
    b: Annotated[BetaShape, Meta(examples=[5])] = 1
    """Second shape parameter of the beta distribution."""
    q: Annotated[Positive, Meta(examples=[0.05, 8])] = 1
    """The `q_…` distributions round to multiples of this number."""
    linspace: Annotated[Points, Meta(examples=[[0, 1, 5]])] = ()
    """[from, to, count]: this number of values by equal differences, both ends included, as in NumPy."""
    geomspace: Annotated[Points, Meta(examples=[[0.0001, 0.1, 4]])] = ()
    """[from, to, count]: this number of values by equal ratios, both ends included, as in NumPy."""
    parameters: Annotated[Any, PARAMETERS, Meta(examples=[GROUP_EXAMPLE])] = None
    """A group of parameters. Their names begin with the group's and a dot: `optimizer.lr`."""
    when: Annotated[Mapping[ParameterName, Wanted], FEW, Meta(examples=WHEN_EXAMPLES)] = EMPTY
    """The parameter exists only if every parameter named here, in full, has this value, or one of these. On a
    group, it applies to all parameters in it."""


ParameterMapping = Annotated[
    ParameterKeys,
    Meta(
        description="One hyperparameter: a single `value`, the `values` to try, a range from `min` to `max`, a "
        "`distribution`, a list by `linspace` or `geomspace`, or a group of nested `parameters`.",
        examples=[
            {"values": [0.01, 0.1]},
            {"value": 2},
            {"min": 0.0001, "max": 0.1, "distribution": "log_uniform_values"},
            {"min": 0.1, "max": 0.5, "step": 0.1},
            {"min": 1, "max": 8},
            {"distribution": "normal", "mu": 0, "sigma": 0.1},
            {"values": [0.9, 0.95], "when": {"optimizer": "sgd"}},
        ],
    ),
]
Parameters = Annotated[
    Mapping[ParameterName, ParameterKeys],
    FEW,
    Meta(
        examples=[PARAMETERS_EXAMPLE],
        description="The hyperparameters by name, in the order in which a grid varies them: the last one fastest.",
    ),
]

DEFINITIONS: Mapping[str, Any] = MappingProxyType(
    {"scalar": Scalar, "value": ParameterValue, "parameter": ParameterMapping, "parameters": Parameters}
)
"""What several keys refer to, by its name in the JSON Schema."""


class OtherMetric(Struct, frozen=True, kw_only=True):
    """One metric, reported as `metric` says."""

    name: MetricName
    goal: GoalKey = Goal.MINIMIZE
    impute: ImputeKey = Impute.WORST


class EarlyTerminate(Struct, frozen=True, kw_only=True):
    """Stops trials with bad intermediate values."""

    type: Annotated[str, one_of("The rule.", {name: kind.text for name, kind in TYPES.items()}, "hyperband")]
    min_iter: Annotated[Step, Meta(examples=[3])] | None = None
    """The first step at which a trial may stop."""
    max_iter: Annotated[Step, Meta(examples=[27])] | None = None
    """The last step at which a trial may stop; for `hyperband` with `s` the step that is divided by eta, s times."""
    s: Annotated[Step, Meta(examples=[2])] | None = None
    """Number of steps at which `hyperband` compares, counted back from `max_iter`."""
    eta: Annotated[float, Meta(gt=1, examples=[3])] = DEFAULT_ETA
    """With `hyperband`, one trial of eta continues at each comparison, and the steps are eta times apart."""
    strict: Annotated[bool, Meta(examples=[True])] = False
    """With `hyperband`, whether the trial's value at the step counts, instead of its best value so far."""
    percentile: Annotated[float, Meta(gt=0, le=99, examples=[25])] = 50.0
    """Percentile of the other trials' best values at a step, counted from the worst: a trial below it stops."""
    min_trials: Annotated[int, Meta(ge=1, le=MAX_TRIALS, examples=[5])] = 3
    """Number of recorded learning curves below which `median` and `percentile` stop no trial."""
    patience: Annotated[Step, Meta(examples=[5])] | None = None
    """Number of reports without a better value after which `patience` stops a trial."""
    min_delta: Annotated[float, Meta(ge=0, examples=[0.001])] = 0.0
    """The smallest improvement that counts as better for `patience`."""

    @property
    def policy(self) -> StopPolicy:
        """The policy that the keys make."""
        kind = TYPES[self.type]
        keys = {key: value for key in kind.keys.split() if (value := getattr(self, key)) is not None}
        make: Callable[..., StopPolicy] = kind.policy
        return make(**keys)


SEARCH_KEYS = frozenset({"assignments", "constraints", "derived", "parameters", "zip"})
"""Keys of what is tried, which may be large: the draft reads them."""
Start = Annotated[
    StartMapping,
    NAME_OR_MAPPING,
    Meta(
        description="The name of a sweep or of foreign evidence; or, if it has another space, a mapping that says "
        "how its trials are read.",
        examples=["lr-coarse"],
    ),
]
Configuration = Annotated[
    Mapping[ParameterName, AnyValue],
    FEW,
    Meta(description="One configuration.", examples=[{"lr": 0.1, "width": 64}]),
]
ZipGroup = Annotated[tuple[str, ...], FEW, Meta(min_length=2, examples=[["width", "depth"]])]
EXPRESSIONS = (
    "Names are parameters, dots included; write a name with a hyphen in backticks. Numbers, 'text', true, false, null, "
    "[lists]; + - * / // % **, comparisons, in, and, or, not, `a if c else b`; abs ceil exp floor len log log10 log2 "
    "max min round sqrt."
)


RESOURCE_EXAMPLE = {"parameter": "epochs", "min": 1, "max": 27, "eta": 3}
EARLY_EXAMPLE = {"type": "hyperband", "min_iter": 3}
QUESTION = "How far do learning rate and batch size carry a small CNN on MNIST?"


class Spec(Struct, frozen=True, kw_only=True):
    """A sweep: what to try, what to measure and how to run it. One file `sweeps/<name>.yaml` per sweep."""

    name: Annotated[str, Meta(pattern=f"^{SWEEP_NAME.pattern}$", examples=["mnist-grid"])]
    """Name of the sweep, equal to the file's name without `.yaml`: lower-case letters, digits and inner hyphens,
    beginning with a letter."""
    description: Annotated[str, Meta(max_length=1000, examples=[QUESTION])] = ""
    """The question that this sweep answers."""
    method: Annotated[str, one_of("How trials are chosen.", methods.TEXTS, "grid", "random")]
    metric: Annotated[Metric, Meta(examples=[{"name": "test_accuracy", "goal": "maximize"}])]
    """The metric of a trial, and whether to minimize or maximize it."""
    other_metrics: Annotated[
        tuple[Annotated[OtherMetric, Meta(examples=[{"name": "seconds", "goal": "minimize"}])], ...],
        Meta(min_length=1, max_length=7),
    ] = ()
    """Further metrics of a search with `tpe`, `bayes` or `nsga2`, which then looks for the Pareto front. They are
    reported as `metric` says."""
    parameters: Annotated[Any, PARAMETERS, Meta(examples=[PARAMETERS_EXAMPLE])] = None
    """The hyperparameters by name, in the order in which a grid varies them: the last one fastest."""
    zip: Annotated[tuple[ZipGroup, ...], FEW] = ()
    """Groups of parameters that move together: the first values of all, then the second values, and so on."""
    constraints: Annotated[
        tuple[Formula, ...],
        FEW,
        Meta(
            description="Conditions that every configuration must satisfy. A constraint that names a parameter which "
            f"a trial does not have is satisfied. {EXPRESSIONS}",
            examples=[["width * depth <= 4096", "optimizer != 'sgd' or lr >= 0.01"]],
        ),
    ] = ()
    derived: Annotated[
        Mapping[ParameterName, Formula],
        FEW,
        Meta(
            description="Values computed from others, by name, in the language of `constraints`; trials receive them "
            "like parameters. A derived value may use other derived values.",
            examples=[{"lr": "base_lr * batch_size / 256"}],
        ),
    ] = EMPTY
    seed: Annotated[int, Meta(ge=0, le=LARGEST_EXACT_INTEGER, examples=[0, 42])] | None = None
    """Seed of all random draws: the same seed always gives the same trials. Required for sampling methods and adaptive
    searches."""
    run_cap: Annotated[int, Meta(ge=1, le=MAX_TRIALS, examples=[64])] | None = None
    """Largest number of configurations, before replicates; of an adaptive search, in all rounds together.
    Required for sampling methods."""
    assignments: Annotated[
        tuple[Configuration, ...],
        SOME,
        Meta(
            extra_json_schema={"type": ["string", "array"]},
            examples=[[{"lr": 0.1, "width": 64}, {"lr": 0.01, "width": 128}], "best-of-last-week.csv"],
        ),
    ] = ()
    """For `method: list`: the configurations, each a mapping from names to values, or a CSV file next to the spec with
    a header of names. `parameters` (constants only) apply if a configuration does not contain them."""
    rounds: Annotated[Rounds, Meta(examples=[{"size": 8, "max": 12}])] | None = None
    start: Annotated[tuple[Start, ...], Meta(min_length=1, max_length=16)] = ()
    """Other sweeps, or foreign evidence (sweep import trials), whose results in this space are used from the
    first round on."""
    resource: Annotated[Resource, Meta(examples=[RESOURCE_EXAMPLE])] | None = None
    early_terminate: Annotated[EarlyTerminate, Meta(examples=[EARLY_EXAMPLE])] | None = None
    program: Annotated[str, Meta(examples=["train.py"])] | None = None
    """The script, relative to the folder of the code. ${program} is its path including this folder; without a
    `command`, it runs as `${env} ${interpreter} ${program} ${args}`."""
    command: Annotated[
        tuple[str, ...],
        Meta(
            min_length=1,
            max_length=256,
            extra_json_schema={"default": [*DEFAULT_COMMAND]},
            examples=[["python", "-m", "trainer", "mnist", "${args}"]],
        ),
    ] = DEFAULT_COMMAND
    """The program and its arguments, one per list item, run without a shell in the parent folder of the code:
    `trainer/train.py`. Macros such as ${args} stand for the trial's values. Optional if `program` is given."""
    of_sweep: Annotated[SweepKeys, GROUP]
