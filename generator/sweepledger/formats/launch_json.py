"""`launch.json`: what the launcher of a batch needs to run any of its rows."""

from collections.abc import Iterable
from typing import Any, assert_never

from generator.formats import json
from generator.formats.table import Column, ColumnType, Table
from generator.structs.batch import Batch
from generator.structs.command import Macro, parse_element
from generator.structs.settings import Settings
from generator.structs.stopping import Patience, Reach, StopRule, Thresholds
from generator.structs.sweep import Goal
from generator.structs.values import bytes_digest

LAUNCH_FILE = "launch.json"

LAUNCHER_PATH = "/sweep/launcher/launch.py"
"""Where the launcher lies in a pod."""

GRACE_SECONDS = 20
"""Between SIGTERM and SIGKILL of a trial; less than the 30 s the pod itself is given."""


def secret_folder(name: str) -> str:
    """Say where a secret that the settings name lies in a pod, as a file called like its key."""
    return f"/sweep/secrets/{name}"


def write(name: str, batch: Batch, settings: Settings, table: Table, *, banner: str) -> str:
    """Write launch.json of a batch that will be called `name`."""
    program, run, metric = batch.program, batch.run, batch.sweep.metric
    return json.dump(
        {
            "version": 1,
            "generated": banner,
            "batch": name,
            "program": program.digest,
            "code": program.code.tree,
            "data": None if program.data is None else program.data.digest,
            "columns": [{"name": column.name, "type": str(column.type)} for column in table.columns],
            "shards": [
                {
                    "file": shard.file,
                    "first": shard.first,
                    "count": shard.count,
                    "digest": bytes_digest(shard.text.encode()),
                }
                for shard in table.shards
            ],
            "command": [_element(text) for text in program.command],
            "interpreter": run.interpreter,
            "metric": {"name": metric.name, **metric.reported},
            "seed_base": run.seed_base,
            "timeout_seconds": run.timeout_seconds,
            "grace_seconds": GRACE_SECONDS,
            "hyperparams_file": run.hyperparams_file,
            "secrets": {
                settings.secrets[secret].variable: f"{secret_folder(secret)}/{settings.secrets[secret].key}"
                for secret in sorted(run.secrets)
            },
            # Only where there is one: most trials run to their end, and nobody goes on from them.
            **({"stop": stop_rules(batch.stop, metric.goal)} if batch.stop else {}),
            **({"keep_checkpoints": True} if batch.keeps_checkpoints else {}),
        }
    )


def stop_rules(rules: Iterable[StopRule], goal: Goal) -> list[dict[str, Any]]:
    """Write the rules by which the launcher ends a trial early."""
    return [_rule(rule, goal) for rule in rules]


def _rule(rule: StopRule, goal: Goal) -> dict[str, Any]:
    """Write a rule by which the launcher ends a trial early, as its `check_rule` wants it."""
    match rule:
        case Thresholds(name, points, of_last):
            value = "last" if of_last else "best"
            own: dict[str, Any] = {
                "rule": name,
                "value": value,
                "thresholds": [list(point) for point in points],
            }
        case Patience(reports, margin, first, last):
            until = {} if last is None else {"until": last}
            own = {"rule": "patience", "reports": reports, "margin": margin, "from": first, **until}
        case Reach(value, first):
            own = {"rule": "target", "reach": value, "from": first}
        case _:
            assert_never(rule)
    return {"goal": str(goal), **own}


def _element(text: str) -> str | list[Any]:
    parts = parse_element(text)
    if all(isinstance(part, str) for part in parts):
        return text
    return [_macro(part) if isinstance(part, Macro) else part for part in parts]


def _macro(macro: Macro) -> dict[str, str]:
    if macro.argument is None:
        return {"macro": macro.name}
    return {"macro": macro.name, "argument": macro.argument}


def columns(text: str | bytes) -> tuple[Column, ...]:
    """Read the table's columns back from launch.json. Raises ValueError on anything else."""
    try:
        return tuple(
            Column(column["name"], ColumnType(column["type"])) for column in json.load(text)["columns"]
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a launch.json of version 1: {error!r}") from error


def shard_files(text: str | bytes) -> tuple[str, ...]:
    """Name the table's files in the order of their rows."""
    try:
        return tuple(shard["file"] for shard in json.load(text)["shards"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a launch.json of version 1: {error!r}") from error
