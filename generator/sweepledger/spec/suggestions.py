"""What a person may have meant."""

import difflib
from collections.abc import Iterable

FEW = 12
"""As many names as a person reads through."""

MEANT = {
    "bayesian": "bayes",
    "choice": "categorical",
    "choices": "values",
    "gaussian": "normal",
    "high": "max",
    "lhs": "latin-hypercube",
    "loguniform": "log_uniform_values",
    "lognormal": "log_normal",
    "low": "min",
    "lower": "min",
    "mean": "mu",
    "quniform": "q_uniform",
    "qloguniform": "q_log_uniform_values",
    "randint": "int_uniform",
    "std": "sigma",
    "stddev": "sigma",
    "tpe": "bayes",
    "upper": "max",
}
"""What other tools call the same thing: their log-uniform distributions take values, not exponents."""


def quoted(names: Iterable[str]) -> str:
    """List names sorted and quoted."""
    return ", ".join(repr(name) for name in sorted(names))


def did_you_mean(found: object, known: Iterable[str]) -> str | None:
    """Suggest the nearest known name, else all of them when they are few."""
    names = sorted(known)
    if isinstance(found, str) and (meant := MEANT.get(found.lower().replace("-", ""))) in names:
        return f"did you mean {meant!r}?"
    if isinstance(found, str) and (close := difflib.get_close_matches(found.lower(), names, n=1)):
        return f"did you mean {close[0]!r}?"
    return f"known: {quoted(names)}" if 0 < len(names) <= FEW else None
