"""What looks like a secret by its name: such a value belongs into the cluster, never into git."""

import re

SECRET_NAME = re.compile(
    r"(?:.*_)?(?:PASSWORD|PASSWD|SECRET|TOKEN|API_?KEY|ACCESS_KEY|PRIVATE_KEY|CREDENTIALS?)",
    re.ASCII | re.IGNORECASE,
)
OURS = "SWEEP_"
"""Hyperparameters may be called `token` or `secret`; their values stand in git by design."""


def looks_secret(name: str, value: str) -> bool:
    """Tell whether an environment variable seems to hold a secret; an empty value or a path holds none."""
    is_text = bool(value) and not value.startswith("/")
    return is_text and not name.startswith(OURS) and SECRET_NAME.fullmatch(name) is not None
