"""CPU seconds and memory at ten and a hundred thousand trials, beside the plain method. Median of five.

python benchmarks/scaling.py [--full] [--runs N] [ROW …]

The plain method is what people do without a generator: a YAML dump of the product, then one Job file a set
through `cat | sed`. It is measured with 10,000 sets; with --full also with 100,000, which takes minutes.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.meter import Used, measured  # noqa: E402

SPEC = """\
name: {name}
description: How does the generator carry {name}?
{search}
metric: {{name: loss}}
command: [python, train.py, "${{args}}"]
run:
  code: {{path: code}}
  resources: {{cpu: 1, memory: 1Gi}}
  parallelism: 100
  timeout: 10m
"""

DRAWN = """\
method: {method}
seed: 1
run_cap: {cap}
parameters:
  rate: {{distribution: log_uniform_values, min: 0.00001, max: 1}}
  momentum: {{min: 0.0, max: 1.0}}
  width: {{min: 16, max: 4096}}
  noise: {{distribution: normal, mu: 0, sigma: 1}}
  optimizer: {{values: [sgd, adam, lion]}}
"""

CONSTRAINED = """\
method: random
seed: 1
run_cap: 10000
parameters:
  a: {min: 0.0, max: 1.0}
  b: {min: 0.0, max: 1.0}
  c: {min: 1, max: 1000}
  d: {values: [red, green, blue]}
  e: {value: 1}
constraints: ["a + b < 0.44721"]   # a tenth of the square
"""

PLAIN = """\
import itertools, yaml
sets = [
    {"hyperparam_set": dict(zip(("a", "b", "c", "d", "e"), values))}
    for values in itertools.product(*(range(size) for size in SIZES))
]
with open("hyperparams.yml", "w") as file:
    yaml.dump(sets, file)
"""

TEMPLATE = """\
apiVersion: batch/v1
kind: Job
metadata: {name: trial-$NUMBER}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: trial, image: python, args: [--set=$NUMBER], env: [{name: JOB_ID, value: "$NUMBER"}]}
"""

FILES = """\
mkdir -p jobs
number=1
while [ "$number" -le {count} ]; do
  cat template.yaml | sed "s/\\$NUMBER/$number/g" > "jobs/job-$number.yaml"
  number=$((number + 1))
done
"""


@dataclass(frozen=True)
class Row:
    """One measured work, and what it may take."""

    name: str
    seconds: float | None
    mebibytes: float | None
    work: Callable[[Path], Used]
    plain: str | None = None
    """The row of the plain method to which this one is compared."""


def sweep(folder: Path, *arguments: str) -> Used:
    """Run the command `sweep` in a folder."""
    return measured([sys.executable, "-m", "sweepledger.cli", *arguments], folder)


def git(folder: Path, *arguments: str) -> None:
    """Run git in a folder, as nobody."""
    identity = ["-c", "user.name=Bench", "-c", "user.email=bench@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def grid(*sizes: int) -> str:
    """Write the parameters of a grid: numbers of one and the other kind, texts, one constant."""
    kinds: list[Callable[[int], str]] = [
        lambda at: str(at + 1),
        lambda at: f"0.{at + 1:03d}1",
        lambda at: f"kind-{at}",
        lambda at: str(2 ** (at % 50) + at),
        lambda _: "0.9",
    ]
    lines = (
        f"  {name}: {{values: [{', '.join(kind(at) for at in range(size))}]}}"
        for name, size, kind in zip("abcde", sizes, kinds, strict=True)
    )
    return "\n".join(["method: grid", "parameters:", *lines])


def repository(folder: Path, search: str, *, name: str = "big") -> Path:
    """Make a real repository with a little code and one spec, committed."""
    (folder / "code").mkdir(parents=True)
    (folder / "code/train.py").write_text("print('loss=1')\n")
    (folder / "sweepledger.yaml").write_text("version: 1\n")
    (folder / ".gitignore").write_text(".sweepledger/\n")
    (folder / "sweeps").mkdir()
    (folder / f"sweeps/{name}.yaml").write_text(SPEC.format(name=name, search=search))
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "--all")
    git(folder, "commit", "-q", "-m", "Start")
    return folder


def generated(search: str) -> Callable[[Path], Used]:
    """Measure the way from a spec to its first batch."""
    return lambda folder: sweep(repository(folder / "work", search), "generate", "big")


def checked(search: str) -> Callable[[Path], Used]:
    """Measure the check of a sweep whose batch is committed and complete."""

    def work(folder: Path) -> Used:
        made = committed(folder, search)
        return sweep(made, "generate", "big", "--check")

    return work


def extended(before: str, after: str) -> Callable[[Path], Used]:
    """Measure the second batch after a value was added, and see that nothing else was written."""

    def work(folder: Path) -> Used:
        made = committed(folder, before)
        (made / "sweeps/big.yaml").write_text(SPEC.format(name="big", search=after))
        used = sweep(made, "generate", "big")
        changed = subprocess.run(
            ["git", "status", "--porcelain"], cwd=made, check=True, capture_output=True, text=True
        ).stdout.splitlines()
        assert [line[:2] for line in changed] == [" M", "??"], changed
        assert "overlays/active/big-b2-" in changed[1], changed
        return used

    return work


def committed(folder: Path, search: str) -> Path:
    """Make a repository in which the first batch stands."""
    made = repository(folder / "work", search)
    sweep(made, "generate", "big")
    git(made, "add", "--all")
    git(made, "commit", "-q", "-m", "Generate")
    return made


def plain_yaml(*sizes: int) -> Callable[[Path], Used]:
    """Measure the dump of a product by PyYAML."""

    def work(folder: Path) -> Used:
        (folder / "dump.py").write_text(PLAIN.replace("SIZES", repr(sizes)))
        return measured([sys.executable, "dump.py"], folder)

    return work


def plain_files(count: int) -> Callable[[Path], Used]:
    """Measure a shell loop that makes a Job file a set; its processes count as one program."""

    def work(folder: Path) -> Used:
        (folder / "template.yaml").write_text(TEMPLATE)
        (folder / "files.sh").write_text(FILES.format(count=count))
        return replace(measured(["sh", "files.sh"], folder), mebibytes=0)

    return work


TEN, HUNDRED = (20, 10, 10, 5, 1), (50, 20, 10, 10, 1)
PLAIN_ROWS = (
    Row("plain: yaml.dump, 10,000", None, None, plain_yaml(*TEN)),
    Row("plain: cat | sed, 10,000 files", None, None, plain_files(10_000)),
)
FULL_ROWS = (
    Row("plain: yaml.dump, 100,000", None, None, plain_yaml(*HUNDRED)),
    Row("plain: cat | sed, 100,000 files", None, None, plain_files(100_000)),
)
ROWS = (
    Row("grid 10,000: generate", 1.0, 120, generated(grid(*TEN)), "10,000"),
    Row("grid 100,000: generate", 4.0, 250, generated(grid(*HUNDRED)), "100,000"),
    Row("grid 100,000: generate --check", 4.0, None, checked(grid(*HUNDRED))),
    Row(
        "grid 10,000 + one value: the delta",
        1.5,
        None,
        extended(grid(*TEN), grid(TEN[0] + 1, *TEN[1:])),
        "10,000",
    ),
    Row("random 100,000: generate", 5.0, None, generated(DRAWN.format(method="random", cap=100_000))),
    Row("sobol 100,000: generate", 5.0, None, generated(DRAWN.format(method="sobol", cap=100_000))),
    Row("constraints keep 10 %: 10,000", 3.0, None, generated(CONSTRAINED)),
)


def median_of(row: Row, runs: int) -> Used:
    """Do a row's work some times, each in a folder of its own."""
    usages: list[Used] = []
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            usages.append(row.work(Path(folder)))
    return replace(
        usages[0],
        seconds=statistics.median(used.seconds for used in usages),
        mebibytes=statistics.median(used.mebibytes for used in usages),
    )


def shown(row: Row, used: Used, plain: dict[str, float]) -> Iterator[str]:
    """Lay a row out."""
    yield f"{row.name:36} {used.seconds:8.2f} {row.seconds or '':>6}"
    yield f"{used.seconds / row.seconds:6.2f}" if row.seconds else " " * 6
    yield f"{used.mebibytes:7.0f} {row.mebibytes or '':>6}" if used.mebibytes else " " * 14
    if row.plain in plain:
        yield f"{plain[row.plain] / used.seconds:9.1f} x"


def main() -> int:
    """Measure all rows, or those whose names hold one of the words."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="measure only rows whose names hold one of these")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--full", action="store_true", help="also 100,000 files by cat | sed")
    chosen = parser.parse_args()
    rows = [*PLAIN_ROWS, *(FULL_ROWS if chosen.full else ()), *ROWS]
    rows = [row for row in rows if not chosen.words or any(word in row.name for word in chosen.words)]
    plain: dict[str, float] = {}
    late = False
    print(f"{'work':36} {'CPU s':>8} {'bar':>6}  ratio     MiB    bar   plain / ours")
    for row in rows:
        # The plain rows are long and compared by factors, so they are measured once.
        used = median_of(row, 1 if row.name.startswith("plain") else chosen.runs)
        if row.name.startswith("plain"):
            size = row.name.split()[-1] if "yaml" in row.name else row.name.split()[-2]
            plain[size] = plain.get(size, 0) + used.seconds
        late |= used.seconds > (row.seconds or used.seconds)
        late |= used.mebibytes > (row.mebibytes or used.mebibytes)
        print(" ".join(shown(row, used, plain)), flush=True)
    return int(late)


if __name__ == "__main__":
    sys.exit(main())
