"""CPU seconds of `sweep check` in a repository that has been used for years, with one sweep changed.

python benchmarks/check.py, or `python benchmarks/check.py many` for 10,000 sweeps, or `attributes` for a change of
`.gitattributes`, which makes the check look at the attributes of every file
"""

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.meter import measured  # noqa: E402
from sweepledger.operations.generation.next_batch import generate_batches as generate  # noqa: E402
from sweepledger.operations.repository.workspace import Workspace  # noqa: E402
from sweepledger.structs.values import bytes_digest  # noqa: E402
from tests.repository import SPEC, Sandbox  # noqa: E402

RUNS = 3
PLAN_BAR = 3.0
MANY = 1000
ATTRIBUTES = "* text=auto eol=lf\noverlays/** -diff linguist-generated\nresults/** linguist-generated\n"
BUDGETS = "version: 1\nbudgets: {everybody: {gpu_hours: 100000}}\n"


@dataclass(frozen=True)
class Size:
    """What a repository holds."""

    sweeps: int
    archived: int
    """Batches of each sweep, beside one active."""
    bar: float
    """Of `check`."""
    generate_bar: float = 2.0
    trials: int = 4
    """Of the sweep that the change asks for; from some on budgets are kept, too."""
    has_attributes: bool = False
    """Whether the change edits `.gitattributes`, too."""


SIZES = {
    "used": Size(sweeps=200, archived=10, bar=0.9),
    "large": Size(sweeps=200, archived=10, bar=5.0, generate_bar=5.0, trials=10_000),
    "many": Size(sweeps=10_000, archived=0, bar=6.0),
    "attributes": Size(sweeps=200, archived=10, bar=2.0, has_attributes=True),
}


def build(sandbox: Sandbox, size: Size) -> None:
    """Multiply one generated batch under other names; what stands at the base is believed to be generated."""
    sandbox.git("config", "maintenance.auto", "false")  # it would run beside the `git gc` of below
    sandbox.git("config", "gc.auto", "0")
    name = sandbox.merged("model")
    folder = sandbox.root / "overlays/active" / name
    files = {path.name: path.read_text() for path in folder.iterdir()}
    spec_digest = bytes_digest((sandbox.root / "sweeps/model.yaml").read_bytes())
    for number in range(size.sweeps):
        sweep = f"sweep-{number:05d}"
        spec = SPEC.format(name=sweep, xs="1, 2, 3", parallelism=2)
        sandbox.write(f"sweeps/{sweep}.yaml", spec)
        for batch in range(1, size.archived + 2):
            place = "active" if batch > size.archived else "archive"
            made = f"{sweep}-b{batch}-{number * 100 + batch:08x}"
            for file, text in files.items():
                own = text if file == "launch.py" else text.replace(name, made).replace("model", sweep)
                if file == "batch.json":
                    own = own.replace(spec_digest, bytes_digest(spec.encode()))
                    own = own.replace("number: 1\n", f"number: {batch}\n")
                sandbox.write(f"overlays/{place}/{made}/{file}", own)
            if place == "archive":
                sandbox.write(f"results/{sweep}/records/{made}.jsonl", f"{made}\n")
        for file in ("summary.csv", "README.md") if size.archived else ():
            sandbox.write(f"results/{sweep}/{file}", sweep)
    if size.has_attributes:
        sandbox.write(".gitattributes", ATTRIBUTES)
    sandbox.commit("Years of work")
    sandbox.push()


def main() -> int:
    """Build, change one sweep, measure."""
    name = sys.argv[1] if len(sys.argv) > 1 else "used"
    size = SIZES[name]
    with tempfile.TemporaryDirectory() as scratch:
        sandbox = Sandbox.create(Path(scratch))
        build(sandbox, size)
        if size.trials > MANY:
            sandbox.write("sweepledger.yaml", BUDGETS)
            sandbox.commit("Give a team a budget")
            sandbox.push()
        spec = sandbox.spec("model", xs="1, 2, 3, 4")
        if size.trials > MANY:
            spec.write_text(spec.read_text().replace("values: [1, 2, 3, 4]", f"min: 1, max: {size.trials}"))
        if size.has_attributes:
            sandbox.write(".gitattributes", f"{ATTRIBUTES}*.png binary\n")
        generate(Workspace.find(sandbox.root), ["model"])
        sandbox.commit("Ask for one more")
        subprocess.run(["git", "gc", "-q"], cwd=sandbox.root, check=True)
        print(f"{size.sweeps} active, {size.sweeps * size.archived} archived   (least of {RUNS}, CPU s)")
        late = False
        bars = {"check": size.bar, "generate --check model": size.generate_bar, "plan model": PLAN_BAR}
        if size.sweeps > MANY:
            bars["generate"] = size.generate_bar
        for words, bar in bars.items():
            argv = [sys.executable, "-m", "sweepledger.cli", *words.split()]
            seconds = min(measured(argv, sandbox.root).seconds for _ in range(RUNS))
            late |= seconds > bar
            print(f"sweep {words:30} {seconds:7.2f}   bar {bar}")
    return int(late)


if __name__ == "__main__":
    sys.exit(main())
