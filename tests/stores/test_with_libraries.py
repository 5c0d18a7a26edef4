"""Stores written and opened with their own libraries; killed and repeated, each trial is there once."""

import json
import random
import time
from pathlib import Path

import pytest

from tests.stores.contents import some_contents
from tests.stores.libraries import REASON, run, served, start_writing, write

pytestmark = pytest.mark.full_suite(REASON)

READ = {
    "mlflow": """
import json, sys, mlflow
client = mlflow.MlflowClient(tracking_uri=sys.argv[1])
runs = client.search_runs([client.get_experiment_by_name("peak").experiment_id], max_results=1000)
print(json.dumps([{
    "id": run.data.tags["sweepledger.trial"], "state": run.info.status, "parameters": run.data.params,
    "metrics": {name: value for name, value in run.data.metrics.items() if ".curve" not in name},
    "curve": [[point.step, point.value] for point in client.get_metric_history(run.info.run_id, "score.curve")],
    "beside": [[point.step, point.value] for point in client.get_metric_history(run.info.run_id, "loss.curve")],
} for run in runs]))
""",
    "optuna": """
import json, sys, optuna
study = optuna.load_study(study_name="peak", storage=sys.argv[1])
print(json.dumps([{
    "id": trial.user_attrs["sweepledger.trial"], "state": trial.state.name, "parameters": trial.params,
    "metrics": {"score": trial.user_attrs["metrics.score"], "loss": trial.user_attrs["metrics.loss"]},
    "curve": sorted(trial.intermediate_values.items()),
} for trial in study.trials]))
""",
    "tensorboard": """
import json, sys
from pathlib import Path
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
found = []
for path in sorted(Path(sys.argv[1], "peak").iterdir()):
    (file,) = path.iterdir()
    events = EventAccumulator(str(file)).Reload()
    tags = events.Tags()["scalars"]
    scalars = {tag: [[event.step, event.value] for event in events.Scalars(tag)] for tag in tags}
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData
    data = events.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    hparams = HParamsPluginData.FromString(data).session_start_info.hparams
    curve, beside = scalars.pop("score.curve"), scalars.pop("loss.curve")
    found.append({
        "id": path.name, "state": "", "curve": curve, "beside": beside,
        "metrics": {tag: points[0][1] for tag, points in scalars.items()},
        "parameters": {"kind": hparams["kind"].string_value, "width": hparams["width"].number_value},
    })
print(json.dumps(found))
""",
    "parquet": """
import json, sys
import pyarrow.parquet as parquet
trials = parquet.read_table(sys.argv[1] + "/peak/trials.parquet").to_pylist()
curves = parquet.read_table(sys.argv[1] + "/peak/curves.parquet").to_pylist()
print(json.dumps([{
    "id": row["trial"], "state": row["status"],
    "parameters": {"kind": row["params.kind"], "width": row["params.width"]},
    "metrics": {"score": row["metrics.score"], "loss": row["metrics.loss"]},
    **{
        key: [[one["step"], one["value"]] for one in curves if (one["trial"], one["metric"]) == (row["trial"], name)]
        for key, name in (("curve", "score"), ("beside", "loss"))
    },
} for row in trials]))
""",
    "wandb": """
import json, sys
from pathlib import Path
from wandb.proto.wandb_internal_pb2 import Record

def records(content):
    # The log of W&B: blocks of 32 KiB with parts of records, each after its checksum, length and kind.
    place, whole = 7, b""
    while place < len(content):
        left = 32768 - place % 32768
        if left < 7:
            place += left
            continue
        length, kind = int.from_bytes(content[place + 4 : place + 6], "little"), content[place + 6]
        whole += content[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):
            yield whole
            whole = b""

found = []
for path in sorted(Path(sys.argv[1]).glob("wandb/offline-run-*/*.wandb")):
    trial = {"id": "", "state": "", "parameters": {}, "metrics": {}, "curve": [], "beside": []}
    for data in records(path.read_bytes()):
        record = Record.FromString(data)
        if record.WhichOneof("record_type") == "run" and not trial["id"]:
            trial["id"] = record.run.run_id
            trial["parameters"] = {item.key: json.loads(item.value_json) for item in record.run.config.update}
        if record.WhichOneof("record_type") == "history":
            logged = record.history.item
            items = {(item.key or ".".join(item.nested_key)): json.loads(item.value_json) for item in logged}
            for key, name in (("curve", "curve/score"), ("beside", "curve/loss")):
                if name in items:
                    trial[key].append([record.history.step.num, items[name]])
        if record.WhichOneof("record_type") == "summary":
            for item in record.summary.update:
                key = item.key or ".".join(item.nested_key)
                if key in ("score", "loss"):
                    trial["metrics"][key] = json.loads(item.value_json)
    found.append(trial)
print(json.dumps(found))
""",
}
PLACES = {"mlflow": "sqlite:///store.db", "optuna": "sqlite:///store.db"}
KILLS = 4


def place_of(store: str) -> str:
    return PLACES.get(store, "place")


def read(store: str, home: Path) -> list[dict[str, object]]:
    trials = json.loads(run(READ[store], place_of(store), home=home).splitlines()[-1])
    return sorted(trials, key=lambda trial: str(trial["id"]))


@pytest.mark.parametrize("store", list(READ))
def test_a_store_has_each_trial_once_with_its_values_results_and_curve(store: str, tmp_path: Path) -> None:
    contents = some_contents(6)

    counts = [
        write(store, results, place_of(store), tmp_path) for results in (some_contents(2), contents, contents)
    ]

    replaced = store == "parquet"
    assert counts == [[2, 0], [6, 0] if replaced else [4, 2], [0, 6]]
    trials = read(store, tmp_path)
    assert [trial["id"] for trial in trials] == [trial.id for trial in contents.trials]
    second = trials[1]
    assert second["metrics"] == {"score": 1.0, "loss": 0.5}
    assert isinstance(second["parameters"], dict)
    assert (second["parameters"]["kind"], float(second["parameters"]["width"])) == ("b", 64.0)
    assert isinstance(second["curve"], list)
    assert [step for step, _ in second["curve"]] == [0, 5, 10]
    assert second["curve"][2][1] == 1.0
    # Optuna has intermediate values of the objective alone.
    assert second.get("beside", [[5, 0.75], [10, 0.5]]) == [[5, 0.75], [10, 0.5]]


@pytest.mark.parametrize("store", list(PLACES))
def test_a_server_says_which_results_it_has(store: str, tmp_path: Path) -> None:
    contents = some_contents(2)
    code = """
import sys
from sweepledger.stores.registry import stores
print(stores()[sys.argv[1]].version("peak", sys.argv[2]))
"""

    before = run(code, store, place_of(store), home=tmp_path).splitlines()[-1]
    write(store, contents, place_of(store), tmp_path)

    assert before == "None"
    assert run(code, store, place_of(store), home=tmp_path).splitlines()[-1] == contents.version


def test_a_server_of_mlflow_gets_each_trial_once_and_its_client_prints_nothing(tmp_path: Path) -> None:
    contents = some_contents(3)

    with served("mlflow", tmp_path) as address:
        outputs = [start_writing("mlflow", contents, address, tmp_path).communicate()[0] for _ in range(2)]

    assert outputs == ["3 0\n", "0 3\n"]
    assert [trial["id"] for trial in read("mlflow", tmp_path)] == [trial.id for trial in contents.trials]


@pytest.mark.parametrize("store", [store for store in READ if store != "parquet"])
def test_killed_anywhere_and_repeated_each_trial_is_there_once(store: str, tmp_path: Path) -> None:
    contents, chance = some_contents(40), random.Random(7)  # noqa: S311 - when it is killed
    started = time.monotonic()
    start_writing(store, some_contents(1), place_of(store), tmp_path).communicate()
    first = time.monotonic() - started

    for _ in range(KILLS):
        process = start_writing(store, contents, place_of(store), tmp_path)
        time.sleep(first * chance.uniform(0.5, 1.3))
        process.kill()
        process.communicate()
    write(store, contents, place_of(store), tmp_path)

    assert [trial["id"] for trial in read(store, tmp_path)] == [trial.id for trial in contents.trials]


def test_a_model_card_is_read_by_the_hub_s_own_library(tmp_path: Path) -> None:
    write("model-card", some_contents(), "card", tmp_path)

    code = """
from huggingface_hub import ModelCard
(first, *_) = ModelCard.load("card/README.md").data.eval_results
print(first.metric_type, first.metric_value)
"""
    assert run(code, home=tmp_path) == "score 1.0"
