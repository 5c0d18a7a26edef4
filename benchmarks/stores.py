"""CPU seconds of ten thousand trials with learning curves to the stores of other tools, in a fresh process each.

    python benchmarks/stores.py [--trials N] [--points N] [--python PATH]

`--python` has the libraries of the stores: by default the virtual environment that `make test-full` prepares. MLflow
and Optuna's database are compared with the loop that their own documentation shows; the bars are 1.2 times that loop,
15 s for Optuna's journal, and 3 s for Parquet. Reading the results from git is not included.
"""

import argparse
import pickle
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "generator"), str(ROOT)]

from benchmarks.frames import recorded  # noqa: E402
from sweepledger.commands.reports.recorded import recorded_results  # noqa: E402
from sweepledger.commands.reports.sync import contents_of  # noqa: E402

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
    metrics += [Metric("curve", value, 0, step) for step, value in trial.curve]
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
        intermediate_values=dict(trial.curve),
    ))
"""


def cpu_seconds(python: str, code: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([python, "-c", code], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--points", type=int, default=50)
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
        idle = cpu_seconds(options.python, read)

        def measure(code: str, place: str, store: str = "") -> float:
            text = code.format(place=place, store=store, trials=options.trials)
            return cpu_seconds(options.python, read + text) - idle

        def report(name: str, seconds: float, bar: float) -> bool:
            print(
                f"{name}: {seconds:.1f} CPU s, bar {bar:.1f}: {'met' if seconds <= bar else 'missed'}",
                flush=True,
            )
            return seconds > bar

        for store, own in (("mlflow", OWN_MLFLOW), ("optuna", OWN_OPTUNA)):
            if options.only not in {None, store}:
                continue
            loop = measure(own, f"sqlite:///{folder}/own-{store}.db")
            print(f"{store}, its client's own loop: {loop:.1f} CPU s", flush=True)
            seconds = measure(SYNC, f"sqlite:///{folder}/{store}.db", store)
            missed += report(f"{store}, sweep sync", seconds, RATIO * loop)
        for name, place in (("optuna-journal", "journal.log"), ("parquet", "parquet")):
            if options.only in {None, name}:
                seconds = measure(SYNC, str(folder / place), name.removesuffix("-journal"))
                missed += report(name, seconds, BARS[name])
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
