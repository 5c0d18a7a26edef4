import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sweepledger.stopping.patience import PatienceStop
from sweepledger.stopping.target import TargetStop
from sweepledger.stopping.thresholds import threshold_rules
from sweepledger.structs.batch import Batch
from sweepledger.structs.methods import METHODS
from sweepledger.structs.metric import Goal, Metric, MetricFormat
from sweepledger.structs.program import Data
from sweepledger.structs.search_block import AdaptiveSearch, Resource, Rounds
from sweepledger.structs.settings import Dataset, Settings
from tests.launcher.folders import launch as launcher
from tests.sweeps import (
    FULL_SETTINGS,
    SETTINGS,
    SPACE,
    a_batch,
    a_full_sweep,
    a_sweep,
    overlay_of,
    some_bases,
    with_keys,
)


def written(batch: Batch, settings: Settings) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(overlay_of(batch, some_bases(), settings).tree["launch.json"])
    return read


def test_secrets_are_named_by_variable_and_file_and_never_by_value() -> None:
    read = written(a_batch(sweep=a_full_sweep()), FULL_SETTINGS)

    assert read["secrets"] == {"HF_TOKEN": "/sweep/secrets/hub/token"}


def test_the_file_of_hyperparameters_is_written_on_request() -> None:
    wanted = a_sweep(run=replace(a_sweep().run, hyperparams_file=True))

    assert written(a_batch(sweep=wanted), SETTINGS)["hyperparams_file"] is True


@pytest.mark.parametrize(
    ("run", "data", "members"),
    [
        ({}, {}, {}),
        ({"keep": ("*.pt", "out/**")}, {}, {"keep": ["*.pt", "out/**"]}),
        ({"keep": ("out", "logs/")}, {}, {"keep": ["out", "out/**", "logs", "logs/**"]}),
        ({"workdir": "a/b", "keep": ("out/",)}, {}, {"workdir": "a/b", "keep": ["a/b/out", "a/b/out/**"]}),
        ({}, {"mnist": "../data"}, {"data_at": {"": "../data"}}),
    ],
)
def test_only_what_a_spec_says_of_its_working_directory_stands_in_it(
    run: dict[str, Any], data: dict[str, str], members: dict[str, Any], tmp_path: Path
) -> None:
    sweep = a_sweep(run=replace(a_sweep().run, data_places=data, **run))
    batch = a_batch(sweep=sweep, workdir=sweep.run.workdir, data=Data("mnist", "sha256:" + "d" * 64, data))

    read = written(batch, SETTINGS)

    assert {name: read[name] for name in ("workdir", "keep", "data_at") if name in read} == members
    file = tmp_path / "launch.json"
    file.write_text(json.dumps(read))
    launcher.read_launch(str(file))


def test_each_of_several_datasets_is_linked_by_its_name() -> None:
    data = Data("labels+mnist+words", "sha256:" + "d" * 64, {"labels": "../labels", "words": "text"})

    named = {name: Dataset(name, name, "version:1") for name in data.name.split("+")}
    settings = with_keys(SETTINGS, datasets=named)

    assert written(a_batch(data=data), settings)["data_at"] == {"labels": "../labels", "words": "text"}
    assert data.as_written() == {"labels": "../labels", "mnist": None, "words": "text"}


def test_only_a_batch_that_ends_trials_early_says_so_and_the_launcher_takes_every_rule() -> None:
    metric = Metric("accuracy", Goal.MAXIMIZE, target=0.99)
    rules = (
        *threshold_rules("median", [(1, 0.5), (3, 0.75)], metric),
        *threshold_rules("hyperband", [(3, -0.5)], metric, of_last=True),
        *PatienceStop(3, 0.01, 5, 9).rules(metric, ()),
        *PatienceStop(3).rules(metric, ()),
        *TargetStop(2).rules(metric, ()),
    )

    read = written(replace(a_batch(), stop=tuple({"goal": "maximize", **rule} for rule in rules)), SETTINGS)

    assert len(read["stop"]) == len(rules)
    for rule in read["stop"]:
        launcher.check_rule(rule)
        launcher.Rule(rule).is_broken(1, 0.5)
    assert {"stop", "keep_checkpoints"}.isdisjoint(written(a_batch(), SETTINGS))


def test_where_later_trials_go_on_from_its_own_a_batch_keeps_checkpoints() -> None:
    resource = Resource("epochs", 1, 9)
    search = AdaptiveSearch(METHODS["halving"], SPACE, 7, Rounds(9), resource=resource)
    batch = replace(a_batch(), sweep=a_sweep(design=search))

    assert written(batch, SETTINGS)["keep_checkpoints"] is True


@pytest.mark.parametrize(
    "metric",
    [
        Metric("loss", Goal.MINIMIZE, format=MetricFormat.CSV, path="logs/*.csv"),
        Metric("loss", Goal.MINIMIZE, format=MetricFormat.REGEX, patterns=("loss=(?P<value>.)",)),
        Metric("loss", Goal.MINIMIZE, format=MetricFormat.TENSORBOARD, path="runs"),
        Metric("loss", Goal.MINIMIZE, format=MetricFormat.JSONL, capture=True),
    ],
    ids=["csv", "regex", "tensorboard", "capture"],
)
def test_the_launcher_accepts_every_way_to_read_metrics(metric: Metric, tmp_path: Path) -> None:
    file = tmp_path / "launch.json"
    file.write_text(json.dumps(written(a_batch(sweep=a_sweep(metric=metric)), SETTINGS)))

    read = launcher.read_launch(str(file))

    reported = {key: value for key, value in metric.reported.items() if key != "capture"}
    assert read["metric"] == {"name": "loss", "reduce": "last", **reported}
    assert read.get("capture", False) is metric.capture
