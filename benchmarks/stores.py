"""CPU seconds of ten thousand trials with learning curves to the stores of other tools, in a fresh process each.

    python benchmarks/stores.py [--trials N] [--points N] [--kills N] [--only STORE] [--python PATH]

`--python` has the libraries of the stores: by default the virtual environment that `make test-full` prepares. MLflow
and Optuna's database are compared with the loop that their own documentation shows, which runs at the same time, so
that other load affects both; the bars are 1.2 times that loop, 15 s for Optuna's journal, and 3 s
for Parquet. Reading the results from git is not included. With `--kills`, each store is also written by processes that
are killed at seeded moments, and then has each trial once.
"""

import argparse
import json
import pickle
import random
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "generator"), str(ROOT)]

from benchmarks.frames import recorded  # noqa: E402
from benchmarks.meter import measured  # noqa: E402
from sweepledger.operations.reports.recorded_results import recorded_results  # noqa: E402
from sweepledger.verbs.sync import contents_of  # noqa: E402

LIBRARIES = ROOT / ".venv/stores/bin/python"
RATIO = 1.2
BARS = {"optuna-journal": 15.0, "parquet": 3.0}
READ = """\
import pickle, sys
sys.path.insert(0, {generator!r})
contents = pickle.load(open({pickled!r}, "rb"))
"""
SYNC = """\
from sweepledger.stores.registry import STORES
change = STORES[{store!r}].write(contents, {place!r})
assert change.added == {trials}, change
"""
OWN_MLFLOW = """\
import mlflow
from mlflow.entities import Metric, Param
client = mlflow.MlflowClient(tracking_uri={place!r})
experiment = client.create_experiment("own")
for trial in contents.trials:
    run = client.create_run(experiment, start_time=0, tags=trial.labels).info.run_id
    params = [Param(name, str(value)) for name, value in trial.parameters.items()]
    metrics = [Metric(name, value, 0, 0) for name, value in trial.metrics.items()]
    metrics += [Metric("curve", value, 0, step) for step, value in trial.curves["score"]]
    client.log_batch(run, metrics=metrics, params=params)
    client.set_terminated(run, "FINISHED", 1)
"""
OWN_OPTUNA = """\
import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution
study = optuna.create_study(study_name="own", storage={place!r}, direction="maximize")
for trial in contents.trials:
    distributions = {{
        name: CategoricalDistribution(("sgd", "adam", "lion")) if isinstance(value, str) else FloatDistribution(0, 1e6)
        for name, value in trial.parameters.items()
    }}
    study.add_trial(optuna.create_trial(
        params=dict(trial.parameters),
        distributions=distributions,
        value=trial.metrics["score"],
        user_attrs={{**trial.labels, **{{f"metrics.{{name}}": value for name, value in trial.metrics.items()}}}},
        intermediate_values=dict(trial.curves["score"]),
    ))
"""
COUNT = {
    "mlflow": """
import mlflow
client, token, ids = mlflow.MlflowClient(tracking_uri={place!r}), None, []
experiment = client.get_experiment_by_name("frames").experiment_id
while True:
    page = client.search_runs([experiment], max_results=1000, page_token=token)
    assert {{run.info.status for run in page}} <= {{"FINISHED", "KILLED", "FAILED"}}
    ids += [run.data.tags["sweepledger.trial"] for run in page]
    token = page.token
    if not token:
        break
""",
    "optuna": """
import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
place = {place!r}
storage = place if "://" in place else JournalStorage(JournalFileBackend(place))
study = optuna.load_study(study_name="frames", storage=storage)
ids = [trial.user_attrs["sweepledger.trial"] for trial in study.get_trials(deepcopy=False)]
""",
    "parquet": """
import pyarrow.parquet as parquet
ids = parquet.read_table({place!r} + "/frames/trials.parquet")["trial"].to_pylist()
""",
}
"""Lists the trials of a store by its own client."""
ONCE = """
assert sorted(ids) == sorted(trial.id for trial in contents.trials), (len(ids), len(set(ids)))
"""


def killed(python: str, code: str, *, kills: int, seconds: float, chance: random.Random) -> list[float]:
    """Start to write, and kill the process at moments of its whole time; return the moments."""
    moments = [seconds * chance.uniform(0.05, 0.9) for _ in range(kills)]
    for moment in moments:
        process = subprocess.Popen([python, "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(moment)
        process.kill()
        process.wait()
    return moments


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--points", type=int, default=50)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--python", default=str(LIBRARIES))
    parser.add_argument("--only", choices=("mlflow", "optuna", "optuna-journal", "parquet"))
    options = parser.parse_args()
    missed = 0
    with tempfile.TemporaryDirectory(prefix="stores-") as scratch:
        folder = Path(scratch)
        (folder / "s").mkdir()
        workspace = recorded(folder / "s", options.trials, options.points).workspace
        results = recorded_results(workspace.repository, workspace.repository.commit("HEAD") or "", "frames")
        assert results is not None
        pickled = folder / "contents"
        pickled.write_bytes(pickle.dumps(contents_of(results)))
        read = READ.format(generator=str(ROOT / "generator"), pickled=str(pickled))

        def cpu_seconds(code: str) -> float:
            return measured([options.python, "-c", code], folder).seconds

        idle = cpu_seconds(read)

        def measure(code: str, place: str, store: str = "") -> float:
            text = code.format(place=place, store=store, trials=options.trials)
            return cpu_seconds(read + text) - idle

        def interrupted(store: str, place: str, seconds: float) -> None:
            """Write to a new place with interruptions. Fails unless each trial is there once."""
            if not options.kills:
                return
            text = read + SYNC.partition("assert")[0].format(place=place, store=store)
            chance = random.Random(store)  # noqa: S311 - when it is killed
            moments = killed(options.python, text, kills=options.kills, seconds=seconds, chance=chance)
            cpu_seconds(text)
            cpu_seconds(read + COUNT[store].format(place=place) + ONCE)
            print(
                f"{store}, killed after {json.dumps([round(moment, 1) for moment in moments])} s: each once",
                flush=True,
            )

        def report(name: str, seconds: float, bar: float) -> bool:
            print(
                f"{name}: {seconds:.1f} CPU s, bar {bar:.1f}: {'met' if seconds <= bar else 'missed'}",
                flush=True,
            )
            return seconds > bar

        for store, own in (("mlflow", OWN_MLFLOW), ("optuna", OWN_OPTUNA)):
            if options.only not in {None, store}:
                continue
            began = time.monotonic()
            with ThreadPoolExecutor() as both:
                of_loop = both.submit(measure, own, f"sqlite:///{folder}/own-{store}.db")
                seconds = measure(SYNC, f"sqlite:///{folder}/{store}.db", store)
                elapsed = time.monotonic() - began
                loop = of_loop.result()
            print(f"{store}, its client's own loop: {loop:.1f} CPU s", flush=True)
            missed += report(f"{store}, sweep sync", seconds, RATIO * loop)
            interrupted(store, f"sqlite:///{folder}/killed-{store}.db", elapsed)
        for name, place in (("optuna-journal", "journal.log"), ("parquet", "parquet")):
            if options.only in {None, name}:
                began, store = time.monotonic(), name.removesuffix("-journal")
                seconds = measure(SYNC, str(folder / place), store)
                elapsed = time.monotonic() - began
                missed += report(name, seconds, BARS[name])
                interrupted(store, str(folder / f"killed-{place}"), elapsed)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
