"""Hints for misspelt names: the nearest known name, or all known names."""

import difflib
from collections.abc import Iterable

MOST_LISTED = 12
"""Number of names that a hint lists at most."""

SYNONYMS = {
    "bayesian": "bayes",
    "choice": "categorical",
    "choices": "values",
    "gaussian": "normal",
    "high": "max",
    "lhs": "latin-hypercube",
    "loguniform": "log_uniform_values",
    "lognormal": "log_normal",
    "logspace": "geomspace",
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
"""Our names for names of other tools, whose log-uniform distributions take values, not exponents."""


def quoted_names(names: Iterable[str]) -> str:
    """Return the names sorted and quoted."""
    return ", ".join(repr(name) for name in sorted(names))


def did_you_mean(found: object, known: Iterable[str], *, lists_known: bool = True) -> str | None:
    """Return a hint with the nearest known name, or with all of them if they are few and `lists_known`."""
    names, text = sorted(known), found.lower() if isinstance(found, str) else ""
    begun = [name for name in names if text and name.startswith(text)]
    if (meant := SYNONYMS.get(text.replace("-", ""))) in names:
        return f"did you mean {meant!r}?"
    if close := difflib.get_close_matches(text, names, n=1) or (begun if len(begun) == 1 else []):
        return f"did you mean {close[0]!r}?"
    return f"known: {quoted_names(names)}" if lists_known and 0 < len(names) <= MOST_LISTED else None
