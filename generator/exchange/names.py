"""Names on their way into a spec: mended where that is plain, else left to the rules of specs."""

import re

from generator.structs.names import SWEEP_NAME_LENGTH, is_sweep_name

METRIC_LENGTH = 63
PLACEHOLDER_METRIC = "objective"
"""For files that name no metric; a spec must."""


def sweep_name(text: str) -> str | None:
    """Make a sweep's name of any text; None if nothing of it can be one."""
    mended = re.sub(r"[^a-z0-9]+", "-", text.lower()).lstrip("-0123456789")[:SWEEP_NAME_LENGTH].strip("-")
    return mended if is_sweep_name(mended) else None


def metric_name(text: str) -> str:
    """Make a metric's name of any text: what no name may hold becomes `_`."""
    mended = re.sub(r"[^A-Za-z0-9_./@-]", "_", text)[:METRIC_LENGTH]
    return mended if mended[:1].isalpha() and mended.isascii() else PLACEHOLDER_METRIC
