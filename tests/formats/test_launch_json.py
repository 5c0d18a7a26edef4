import json
from dataclasses import replace
from typing import Any

from generator.formats import launch, table
from generator.formats.table import Row, Table
from generator.structs.batch import Batch
from generator.structs.settings import Settings
from tests.sweeps import FULL_SETTINGS, SETTINGS, a_batch, a_full_sweep, a_sweep


def written(batch: Batch, settings: Settings) -> dict[str, Any]:
    rows = [Row(trial.id, trial.assignment, trial.replicate) for trial in batch.trials]
    columns = table.columns(batch.columns, rows)
    made = Table(columns, table.shards(rows, columns))
    read: dict[str, Any] = json.loads(launch.write("lr-b1-00000000", batch, settings, made, banner="here"))
    return read


def test_secrets_are_named_by_variable_and_file_and_never_by_value() -> None:
    read = written(a_batch(sweep=a_full_sweep()), FULL_SETTINGS)

    assert read["secrets"] == {"HF_TOKEN": "/sweep/secrets/hub/token"}


def test_a_sweep_that_asks_for_nothing_gets_no_secrets_and_no_file() -> None:
    read = written(a_batch(), SETTINGS)

    assert read["secrets"] == {}
    assert read["hyperparams_file"] is False


def test_the_file_of_hyperparameters_is_written_on_request() -> None:
    wanted = a_sweep(run=replace(a_sweep().run, hyperparams_file=True))

    assert written(a_batch(sweep=wanted), SETTINGS)["hyperparams_file"] is True


def test_the_limits_of_a_trial_stand_in_it() -> None:
    read = written(a_batch(), SETTINGS)

    assert (read["timeout_seconds"], read["grace_seconds"]) == (600, 20)
    assert [shard["count"] for shard in read["shards"]] == [2]
