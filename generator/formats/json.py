"""JSON as files hold it: sorted, indented by one, final newline, finite numbers only."""

import json
from typing import Any


def dump(data: Any) -> str:
    """Write data so that equal data are equal bytes. Raises ValueError for numbers that are not finite."""
    return json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def load(text: str | bytes) -> Any:
    """Read JSON that this program wrote. Raises ValueError if it is none."""
    return json.loads(text)
