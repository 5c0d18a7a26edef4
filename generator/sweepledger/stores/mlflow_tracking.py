"""MLflow: an experiment for each sweep, a run for each trial.

A run is RUNNING until it is complete, so an interrupted run is recognised, deleted and written again.
"""

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from typing import Any

from sweepledger.errors import ToolError
from sweepledger.stores.contents import (
    TRIAL_KEY,
    VERSION_KEY,
    FinishedTrial,
    StoreChange,
    StoreKind,
    SweepContents,
    library,
    plain_text,
    seconds,
)
from sweepledger.structs.record import Status

MOST_METRICS = 800
MOST_PARAMETERS = 100
"""In one request, which may have a thousand of both and a hundred parameters."""
LONGEST_PARAMETER = 6000
"""Characters that MLflow stores of a parameter."""
PAGE = 1000
STATES = {Status.OK: "FINISHED", Status.PRUNED: "KILLED", Status.DIVERGED: "FAILED"}
QUIET = "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"
"""Without it, the client of a server prints two lines for each run where the command's JSON goes."""
CURVE = ".curve"
"""Follows a metric's name for the points of its curve: the result may be another than the last point."""


def write(contents: SweepContents, place: str) -> StoreChange:
    """Write a run for each trial that the experiment lacks; `place` is a tracking URI. Raises ToolError."""
    os.environ.setdefault(QUIET, "true")
    library("mlflow", extra="mlflow")
    with _client(place) as client:
        experiment = _experiment(client, contents)
        known = _complete_runs(client, experiment)
        missing = [trial for trial in contents.trials if trial.id not in known]
        cut = [trial.id for trial in missing if _add_run(client, experiment, trial)]
        client.set_experiment_tag(experiment, VERSION_KEY, contents.version)
    remark = f"{len(cut)} trials have a parameter of more than {LONGEST_PARAMETER} characters, which is cut"
    return StoreChange(len(missing), len(contents.trials) - len(missing), (remark,) if cut else ())


def version(sweep: str, place: str) -> str | None:
    """Return the version of a sweep's results on the server; None if some may be missing. Raises ToolError."""
    with _client(place) as client:
        known = client.get_experiment_by_name(sweep)
    return None if known is None or known.lifecycle_stage == "deleted" else known.tags.get(VERSION_KEY)


@contextmanager
def _client(place: str) -> Iterator[Any]:
    """Yield a client; its errors become ToolError."""
    tracking: Any = library("mlflow.tracking", extra="mlflow")
    exceptions: Any = library("mlflow.exceptions", extra="mlflow")
    try:
        yield tracking.MlflowClient(tracking_uri=place)
    except exceptions.MlflowException as error:
        raise ToolError(f"MLflow at {place}: {error}", hint="check the URI and try again") from error


def _experiment(client: Any, contents: SweepContents) -> str:
    known = client.get_experiment_by_name(contents.sweep)
    if known is None:
        tags = {"mlflow.note.content": contents.description} if contents.description else {}
        return str(client.create_experiment(contents.sweep, tags=tags))
    if known.lifecycle_stage == "deleted":
        client.restore_experiment(known.experiment_id)
    return str(known.experiment_id)


def _complete_runs(client: Any, experiment: str) -> set[str]:
    """Return the trials with a complete run; delete incomplete and duplicate runs."""
    known: set[str] = set()
    token = None
    while True:
        page = client.search_runs(
            [experiment], max_results=PAGE, page_token=token, order_by=["start_time ASC"]
        )
        for run in page:
            trial = run.data.tags.get(TRIAL_KEY)
            if trial is None:
                continue
            if run.info.status == "RUNNING" or trial in known:
                client.delete_run(run.info.run_id)
            else:
                known.add(trial)
        token = page.token
        if not token:
            return known


def _add_run(client: Any, experiment: str, trial: FinishedTrial) -> bool:
    """Write the run of a trial; return whether a parameter was shortened."""
    entities: Any = library("mlflow.entities", extra="mlflow")
    run = client.create_run(
        experiment,
        start_time=int(seconds(trial.started) * 1000),
        tags={**trial.labels, "mlflow.runName": trial.id},
    ).info.run_id
    texts = {name: plain_text(value) for name, value in trial.parameters.items()}
    parameters = [entities.Param(name, text[:LONGEST_PARAMETER]) for name, text in texts.items()]
    ended = int(seconds(trial.finished) * 1000)
    metrics = [entities.Metric(name, value, ended, 0) for name, value in trial.metrics.items()]
    metrics += [
        entities.Metric(f"{name}{CURVE}", math.nan if point is None else point, ended, step)
        for name, points in trial.curves.items()
        for step, point in points
    ]
    # One request for nearly every trial: metrics and parameters have limits of their own.
    requests = max(ceil(len(metrics) / MOST_METRICS), ceil(len(parameters) / MOST_PARAMETERS))
    for number in range(requests):
        client.log_batch(
            run,
            metrics=metrics[number * MOST_METRICS : (number + 1) * MOST_METRICS],
            params=parameters[number * MOST_PARAMETERS : (number + 1) * MOST_PARAMETERS],
        )
    client.set_terminated(run, STATES[trial.status], ended)
    return any(len(text) > LONGEST_PARAMETER for text in texts.values())


STORE = StoreKind("mlflow", "sqlite:///mlflow.db", write, version)
