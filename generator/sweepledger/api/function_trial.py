"""One trial of a sweep whose command is a function. sweepledger.sweep() wrote this file, and writes it again."""

import json
import os
from builtins import dict as evaluate
from pathlib import Path

METRIC = "score"

if __name__ == "__main__":
    values = json.loads(Path(os.environ["SWEEP_TRIAL"]).read_bytes())
    result = evaluate(**values)
    for metric, value in (result if isinstance(result, dict) else {METRIC: result}).items():
        print(f"{metric}={float(value)!r}")  # noqa: T201
