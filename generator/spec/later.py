"""Names that people know from other tools or from the plan of this language, and that no spec can use yet."""

from generator.reader import Path

TOP_KEYS = frozenset(
    {
        "blocks",
        "budget",
        "cancel",
        "constraints",
        "derived",
        "early_terminate",
        "program",
        "replicates",
        "run_cap",
        "seed",
        "when",
        "zip",
    }
)
METRIC_KEYS = frozenset({"reduce", "target"})
PARAMETER_KEYS = frozenset(
    {"distribution", "max", "min", "mu", "parameters", "probabilities", "q", "sigma", "step"}
)
RUN_KEYS = frozenset({"artifacts", "environment", "pool", "secrets"})
METHODS = frozenset({"bayes", "halton", "latin-hypercube", "list", "random", "sobol"})


def later_keys(schema: str, path: Path) -> frozenset[str]:
    """List the keys that a mapping at this path will have one day."""
    match (schema, *path):
        case ("sweep",):
            return TOP_KEYS
        case ("sweep", "metric"):
            return METRIC_KEYS
        case ("sweep", "parameters", _):
            return PARAMETER_KEYS
        case ("sweep", "run"):
            return RUN_KEYS
        case _:
            return frozenset()


def later_values(path: Path) -> frozenset[str]:
    """List the values that this path may have one day."""
    return METHODS if path == ("method",) else frozenset()
