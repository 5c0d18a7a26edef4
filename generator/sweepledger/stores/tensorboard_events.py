"""TensorBoard: an event file for each trial, with its hyperparameters for the page HParams.

The bytes of a file depend on the trial alone, and it is written atomically: a file that exists is complete.
"""

import io
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sweepledger.storage import storage_errors, write_file
from sweepledger.stores.contents import (
    FinishedTrial,
    StoreChange,
    StoreKind,
    SweepContents,
    library,
    plain_text,
    seconds,
)
from sweepledger.structs.record import Status

EXTRA = "tensorboard"
FILE = "events.out.tfevents.{seconds:010d}.sweepledger"


def write(contents: SweepContents, place: str) -> StoreChange:
    """Write an event file for each trial that the folder lacks. Raises ToolError, StorageError."""
    writer: Any = _module("summary.writer.record_writer")
    added = 0
    for trial in contents.trials:
        path = Path(place) / contents.sweep / trial.id / FILE.format(seconds=int(seconds(trial.started)))
        if path.is_file():
            continue
        buffer = io.BytesIO()
        records = writer.RecordWriter(buffer)
        for event in _events(trial):
            records.write(event.SerializeToString(deterministic=True))
        with storage_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, buffer.getvalue())
        added += 1
    return StoreChange(added, len(contents.trials) - added)


def _events(trial: FinishedTrial) -> Iterator[Any]:
    proto: Any = _module("compat.proto.event_pb2")
    hparams: Any = _module("plugins.hparams.plugin_data_pb2")
    states: Any = _module("plugins.hparams.api_pb2").Status
    yield proto.Event(wall_time=seconds(trial.started), file_version="brain.Event:2")
    start = hparams.SessionStartInfo(group_name=trial.id, start_time_secs=seconds(trial.started))
    for name, value in trial.parameters.items():
        field = start.hparams[name]
        if isinstance(value, bool):
            field.bool_value = value
        elif isinstance(value, int | float):
            field.number_value = value
        else:
            field.string_value = plain_text(value)
    begun = hparams.HParamsPluginData(version=0, session_start_info=start)
    yield _plugin_event(proto, "session_start_info", begun, seconds(trial.started))
    for name, points in trial.curves.items():
        for step, value in points:
            yield _scalar(proto, f"{name}.curve", math.nan if value is None else value, step, trial)
    for name, value in trial.metrics.items():
        yield _scalar(proto, name, value, 0, trial)
    state = states.Value("STATUS_SUCCESS" if trial.status is Status.OK else "STATUS_FAILURE")
    end = hparams.SessionEndInfo(status=state, end_time_secs=seconds(trial.finished))
    ended = hparams.HParamsPluginData(version=0, session_end_info=end)
    yield _plugin_event(proto, "session_end_info", ended, seconds(trial.finished))


def _module(name: str) -> Any:
    return library(f"tensorboard.{name}", extra=EXTRA)


def _plugin_event(proto: Any, name: str, data: Any, time: float) -> Any:
    """Return an event for the page HParams; `tensorboard.plugins.hparams.summary` would need TensorFlow for it."""
    summaries: Any = _module("compat.proto.summary_pb2")
    plugin: Any = _module("plugins.hparams.metadata")
    value = summaries.Summary.Value(
        tag=f"_hparams_/{name}", metadata=plugin.create_summary_metadata(data), tensor=plugin.NULL_TENSOR
    )
    return proto.Event(wall_time=time, summary=summaries.Summary(value=[value]))


def _scalar(proto: Any, tag: str, value: float, step: int, trial: FinishedTrial) -> Any:
    summaries: Any = _module("compat.proto.summary_pb2")
    summary = summaries.Summary(value=[summaries.Summary.Value(tag=tag, simple_value=value)])
    return proto.Event(wall_time=seconds(trial.finished), step=step, summary=summary)


STORE = StoreKind("tensorboard", "runs", write)
