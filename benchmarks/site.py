"""CPU seconds of `sweep site`, the sizes of its pages, and how fast Chromium draws and brushes them.

python benchmarks/site.py [--sweeps N] [--trials N]     build, and build again after one sweep changed
python benchmarks/site.py browser [TRIALS …]            first chart, and a brush until all charts are drawn

Records are made up; locks, tables and results are those that the program writes. The second needs Chromium and
Playwright (`make .venv/stamps/browser`).
"""

import argparse
import math
import random
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.meter import measured  # noqa: E402
from sweepledger.operations.generation.next_batch import generate_batches as generate  # noqa: E402
from sweepledger.operations.repository.batch_records import expected_trials, lock_digest  # noqa: E402
from sweepledger.operations.repository.workspace import Workspace  # noqa: E402
from sweepledger.repo.batches import StoredBatch  # noqa: E402
from sweepledger.results.outcomes import BatchRecords  # noqa: E402
from sweepledger.results.summary import summarise  # noqa: E402
from sweepledger.results.tree import number_files  # noqa: E402
from sweepledger.structs.record import ExpectedTrial, Record, Status  # noqa: E402
from sweepledger.structs.values import bytes_digest  # noqa: E402
from tests.browser import browser  # noqa: E402

SPEC = """\
name: {name}
description: Which learning rate and width suit {name}?
method: random
seed: {seed}
run_cap: {trials}
metric: {{name: accuracy, goal: maximize}}
parameters:
  rate: {{distribution: log_uniform_values, min: 0.00001, max: 1}}
  momentum: {{min: 0.0, max: 1.0}}
  width: {{values: [64, 128, 256, 512]}}
  optimizer: {{values: [sgd, adam, lion]}}
command: [python, code/train.py, "${{args}}"]
run:
  code: {{path: code}}
  resources: {{cpu: 1, memory: 256Mi}}
  parallelism: 10
  timeout: 10m
"""
STEPS = 20
BARS = {"build": 30.0, "rebuild": 3.0, "page": 2**20, "chart": 2.0, 1000: 0.1, 10_000: 0.3}
SETTINGS = "version: 1\nlimits: {max_trials: 20000}\n"


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=B", "-c", "user.email=b@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def make(folder: Path, sweeps: int, trials: int) -> None:
    """Make a repository in which so many sweeps are recorded, each with a commit for its batch and its results."""
    subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], check=True)
    (folder / "code").mkdir()
    (folder / "code/train.py").write_text("print()\n")
    (folder / "sweeps").mkdir()
    git(folder, "add", "--all")
    git(folder, "commit", "-q", "-m", "Start")
    for number in range(sweeps):
        name = f"sweep-{number:03d}"
        spec = folder / f"sweeps/{name}.yaml"
        spec.write_text(SPEC.format(name=name, seed=number, trials=trials))
        (made,) = generate(Workspace.find(folder), [name])
        assert made.batch is not None
        git(folder, "add", "--all")
        git(folder, "commit", "-q", "-m", f"generate({name}): {trials} trials")
        record(folder, made.batch.name, spec)
        git(folder, "add", "--all")
        git(folder, "commit", "-q", "-m", f"results({name})")
    git(folder, "gc", "-q")


def record(folder: Path, name: str, spec: Path) -> None:
    """Archive a batch with records of all its trials."""
    archive = folder / "overlays/archive"
    archive.mkdir(parents=True, exist_ok=True)
    (folder / "overlays/active" / name).rename(archive / name)
    from sweepledger.repo import batches  # noqa: PLC0415

    (stored,) = [one for one in batches.in_work_tree(folder) if one.name == name]
    chance = random.Random(name)  # noqa: S311 - made-up results, the same on every run
    records = tuple(result(stored, trial, chance) for trial in expected_trials(stored))
    summary = summarise(
        [BatchRecords(stored.lock, expected_trials(stored), records, lock_digest=lock_digest(stored))],
        description="",
        spec_digest=bytes_digest(spec.read_bytes()),
    )
    assert summary.winner is not None, "the records do not belong to the batch"
    for path, content in number_files(summary):
        target = folder / "results" / stored.sweep / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def result(batch: StoredBatch, trial: ExpectedTrial, chance: random.Random) -> Record:
    """Make a record with a curve; one trial in fifty failed."""
    rate, momentum = float(trial.assignment["rate"]), float(trial.assignment["momentum"])  # type: ignore[arg-type]
    top = 0.97 - 0.02 * abs(math.log10(rate) + 2.5) - 0.05 * (momentum - 0.9) ** 2 + chance.gauss(0, 0.004)
    steps = range(1, STEPS + 1)
    curve = tuple((step, round(top * (1 - 0.8**step) + chance.gauss(0, 0.003), 5)) for step in steps)
    base = Record(
        trial=trial.trial,
        row=trial.row,
        batch=batch.name,
        index=trial.index,
        uid=f"pod-{trial.index}",
        attempt=1,
        disruptions=0,
        status=Status.OK,
        reason=None,
        metrics={"accuracy": curve[-1][1], "loss": round(1 - top, 5)},
        seconds=round(chance.lognormvariate(3, 0.4), 3),
        started="2026-01-01T00:00:00Z",
        finished=f"2026-01-01T{trial.index // 3600 % 24:02d}:{trial.index // 60 % 60:02d}:{trial.index % 60:02d}Z",
        ran="process",
        code=batch.lock.program.code.tree,
        data=None,
        seed=0,
        node="n",
        environment=None,
        details={"device": "cpu", "versions": {"python": "3.11.7", "torch": "2.9.0"}},
        curves={"accuracy": curve},
    )
    if chance.random() > 0.02:  # noqa: PLR2004 - see above
        return base
    return replace(base, status=Status.FAILED, reason="exit-1", metrics={}, curves={"accuracy": curve[:5]})


def build_times(sweeps: int, trials: int) -> int:
    """Measure a build, a build after one sweep changed, and the largest page without its data."""
    late = False
    with tempfile.TemporaryDirectory() as place:
        folder, out = Path(place) / "repository", Path(place) / "site"
        make(folder, sweeps, trials)
        argv = [sys.executable, "-m", "sweepledger.cli", "site", "--out", str(out)]
        seconds = measured(argv, folder).seconds
        late |= report(f"build, {sweeps} sweeps of {trials} trials", seconds, BARS["build"])
        (folder / "sweeps/sweep-000.yaml").write_text(
            SPEC.format(name="sweep-000", seed=7, trials=trials + 1)
        )
        git(folder, "commit", "-q", "--all", "-m", "Ask for one more")
        late |= report("build again after one sweep changed", measured(argv, folder).seconds, BARS["rebuild"])
        page = max(len(without_data(path.read_text())) for path in out.rglob("*.html"))
        print(f"largest page without its data {page / 1024:8.0f} KiB, bar {BARS['page'] / 1024:.0f} KiB")
        whole = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
        print(f"whole site                    {whole / 2**20:8.1f} MiB")
    return int(late or page > BARS["page"])


def without_data(text: str) -> str:
    return re.sub(r'<script type="application/json" id="data">.*?</script>', "", text, flags=re.DOTALL)


def report(what: str, seconds: float, bar: float) -> bool:
    print(f"{what:44} {seconds:7.3f} s, bar {bar:g} s")
    return seconds > bar


FIRST_CHART = "performance.getEntriesByName('chart')[0]?.startTime ?? null"
BRUSH = """async () => {
  const plot = document.querySelector('[data-chart=parallel] .plot');
  plot.scrollIntoView({block: 'center'});
  await new Promise((done) => setTimeout(done, 1500));
  const box = plot.getBoundingClientRect();
  const at = (type, x, y) => plot.dispatchEvent(new PointerEvent(type, {bubbles: true, button: 0, pointerId: 1,
    clientX: box.left + x, clientY: box.top + y}));
  plot.setPointerCapture = () => {};
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  at('pointerdown', 60, 40);
  const times = [];
  for (let y = 60; y <= 260; y += 20) {
    const start = performance.now();
    at('pointermove', 60, y);
    await frame();
    await frame();
    times.push(performance.now() - start);
  }
  at('pointerup', 60, 260);
  times.sort((a, b) => a - b);
  return [times[times.length >> 1], times.at(-1), document.getElementById('selected').textContent];
}"""


def browser_times(counts: list[int]) -> int:
    """Measure the first chart and a brush that grows over an axis, from pointer to the end of drawing."""
    late = False
    with tempfile.TemporaryDirectory() as place, browser() as chromium:
        for trials in counts:
            folder, out = Path(place) / f"repository-{trials}", Path(place) / f"site-{trials}"
            make(folder, 1, trials)
            argv = [sys.executable, "-m", "sweepledger.cli", "site", "--out", str(out)]
            measured(argv, folder)
            page = chromium.new_page(viewport={"width": 1280, "height": 900})
            page.goto((out / "sweeps/sweep-000/index.html").as_uri())
            while (first := page.evaluate(FIRST_CHART)) is None:
                time.sleep(0.05)
            late |= report(f"{trials} trials: first chart", first / 1000, BARS["chart"])
            middle, longest, selected = page.evaluate(BRUSH)
            late |= report(f"{trials} trials: brush, median", middle / 1000, BARS.get(trials, 0.3))
            print(f"{'':44} {longest / 1000:7.3f} s at most; {selected}")
            page.close()
    return int(late)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", choices=["build", "browser"], default="build")
    parser.add_argument("counts", nargs="*", type=int, default=[1000, 10_000])
    parser.add_argument("--sweeps", type=int, default=200)
    parser.add_argument("--trials", type=int, default=100)
    chosen = parser.parse_args()
    if chosen.what == "browser":
        return browser_times(chosen.counts)
    return build_times(chosen.sweeps, chosen.trials)


if __name__ == "__main__":
    sys.exit(main())
