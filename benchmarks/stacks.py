"""Sixteen small networks, trained as one stack and one by one: CPU and wall seconds of both, in one run.

python benchmarks/stacks.py [--networks 16] [--width 16] [--train_images 4000]

Both are measured twice: whole commands, which also start Python and load torch and the data, and the training alone.
Single trainings run one after the other; only `--single` of them are run, and their mean counts for all.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.meter import measured  # noqa: E402


def run(arguments: list[str], **variables: str) -> tuple[float, float]:
    """Run the trainer; return its CPU and wall seconds."""
    fixed = {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    used = measured([sys.executable, "-m", "trainer", *arguments], ROOT, variables={**fixed, **variables})
    return used.seconds, used.wall


def read(path: Path) -> dict[str, Any]:
    """Return a result."""
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def training_cpu(result: dict[str, Any]) -> float:
    """Return the CPU seconds after the first step."""
    return float(result["cpu_seconds"]["all"] - result["cpu_seconds"]["first_step"])


def main() -> None:
    """Measure both, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", type=int, default=16)
    parser.add_argument("--single", type=int, default=2)
    for name, default in (("width", 16), ("train_images", 4000), ("batch_size", 64), ("epochs", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--network", default="small")
    options = parser.parse_args()
    common = [
        "mnist",
        *(
            f"--{name}={getattr(options, name)}"
            for name in ("network", "width", "train_images", "batch_size", "epochs", "precision")
        ),
    ]
    own = [[f"--learning_rate={0.02 * 1.1**number}"] for number in range(options.networks)]
    with tempfile.TemporaryDirectory(prefix="sweep-stacks-") as folder:
        results = [Path(folder) / f"{number}.json" for number in range(options.networks)]
        trials = [
            {"trial": f"t{number}", "command": [*common, *rate], "result": str(result)}
            for number, (rate, result) in enumerate(zip(own, results, strict=True))
        ]
        stack = Path(folder) / "stack.json"
        stack.write_text(json.dumps({"trials": trials}), encoding="utf-8")
        stacked = run([*common, *own[0]], SWEEP_STACK=str(stack))
        stacked_training = training_cpu(read(results[0]))
        alone_result = Path(folder) / "alone.json"
        alone, alone_training, differences = [], [], []
        for number in range(options.single):
            place = number * (options.networks - 1) // max(1, options.single - 1)
            alone.append(run([*common, *own[place]], SWEEP_RESULT=str(alone_result)))
            result, in_stack = read(alone_result), read(results[place])
            alone_training.append(training_cpu(result))
            differences.append(abs(result["metrics"]["test_accuracy"] - in_stack["metrics"]["test_accuracy"]))
    scale = options.networks / options.single
    rows = [
        ("CPU s, whole commands", stacked[0], scale * sum(cpu for cpu, _ in alone)),
        ("CPU s after the first step", stacked_training, scale * sum(alone_training)),
        ("wall s, whole commands", stacked[1], scale * sum(wall for _, wall in alone)),
    ]
    print(f"{options.networks} networks {' '.join(common[1:])}; load {os.getloadavg()[0]:.1f}")
    print(f"{'':<28}{'stack':>9}{'alone':>9}{'ratio':>7}")
    for name, one, many in rows:
        print(f"{name:<28}{one:>9.1f}{many:>9.1f}{many / one:>7.2f}")
    print(f"largest difference of test_accuracy: {max(differences):.4f}")


if __name__ == "__main__":
    main()
