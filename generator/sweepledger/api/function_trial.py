"""One trial of a sweep whose command is a function. sweepledger.sweep() wrote this file, and writes it again."""

import json
import os
from builtins import dict as evaluate
from pathlib import Path

METRIC = "score"


def _main() -> None:  # its variables are none that the function could take for its own
    values = json.loads(Path(os.environ["SWEEP_TRIAL"]).read_bytes())
    result = evaluate(**values)
    metrics = result if isinstance(result, dict) else {METRIC: result}
    line = json.dumps({metric: float(value) for metric, value in metrics.items()})
    with Path(os.environ["SWEEP_RESULT"]).open("a", encoding="utf-8") as file:
        file.write(line + "\n")


if __name__ == "__main__":
    _main()
