"""`launch.json`: everything that the launcher needs to run any row of a batch."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sweepledger.formats import documents, json
from sweepledger.formats.hyperparams_csv import Column, Table
from sweepledger.structs.batch import Batch
from sweepledger.structs.node_pool import Pool, grace_seconds
from sweepledger.structs.program import parse_element
from sweepledger.structs.settings import SecretReference
from sweepledger.structs.values import bytes_digest

LAUNCH_FILE = "launch.json"

LAUNCHER_PATH = "/sweep/launcher/launch.py"
"""Path of the launcher in a pod."""

PACK_PATH = "/sweep/launcher/pack.py"
"""Path of the program that runs several trials in a pod, with the launcher beside it."""

LAUNCHER_PATHS = (LAUNCHER_PATH, PACK_PATH)
"""What the container of a trial may start."""


def secret_folder(name: str) -> str:
    """Return the folder of a secret in a pod; it contains a file named after the secret's key."""
    return f"/sweep/secrets/{name}"


def write(
    name: str,
    batch: Batch,
    table: Table,
    pool: Pool | None,
    secrets: Mapping[str, SecretReference],
    *,
    has_sidecar: bool,
    banner: str,
) -> str:
    """Return the text of launch.json for a batch named `name`."""
    program, run, metric = batch.program, batch.run, batch.sweep.metric
    reported, others = metric.reported, [other.name for other in batch.sweep.metrics[1:]]
    data = program.data
    optional = {
        # The launcher reads it beside the metric.
        "capture": reported.pop("capture", False),
        "environment": program.environment and {"lock": program.environment.path},
        "workdir": program.workdir,
        "config": program.config and {"format": program.config.format, "text": program.config.text},
        # By their paths below `$SWEEP_DATA`, which is that of a single dataset.
        "data_at": data and {"" if len(data.names) == 1 else name: path for name, path in data.at.items()},
        "keep": _kept(run.keep, program.workdir),
        "stop": batch.stop,
        "keep_checkpoints": batch.keeps_checkpoints,
        "pack": run.pack and {"rows": run.pack.trials, "at_once": run.pack.at_once, "attempts": run.attempts},
    }
    return json.dump(
        {
            "version": 1,
            "generated": banner,
            "batch": name,
            "program": program.digest,
            "code": program.code.tree,
            "data": None if data is None else data.digest,
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
            "metric": {"name": metric.name, **reported, **({"others": others} if others else {})},
            "seed_base": run.seed_base,
            "timeout_seconds": run.timeout_seconds,
            "grace_seconds": grace_seconds(pool, has_sidecar=has_sidecar)[1],
            "max_disruptions": run.max_disruptions,
            "hyperparams_file": run.hyperparams_file,
            "secrets": {
                secrets[secret].variable: f"{secret_folder(secret)}/{secrets[secret].key}"
                for secret in sorted(run.secrets)
            },
            **{key: value for key, value in optional.items() if value},
        }
    )


def _kept(patterns: Iterable[str], workdir: str | None) -> list[str]:
    """Return patterns of files; a pattern may name a folder, whose whole content is then kept.

    Patterns in a spec are relative to the folder where trials start, the returned ones to the folder of the code.
    """
    start = "" if workdir is None else f"{workdir}/"
    plain = [f"{start}{pattern.removesuffix('/')}" for pattern in patterns]
    return [
        path
        for pattern in plain
        for path in (pattern, f"{pattern}/**")
        if path == pattern or not set("*?[") & set(pattern.rpartition("/")[2])
    ]


def _element(text: str) -> str | list[Any]:
    parts = parse_element(text)
    if all(isinstance(part, str) for part in parts):
        return text
    return [
        part
        if isinstance(part, str)
        else {"macro": part.name} | ({} if part.argument is None else {"argument": part.argument})
        for part in parts
    ]


@dataclass(frozen=True, slots=True)
class ShardFile:
    """A file with rows of the table."""

    file: str


@dataclass(frozen=True, slots=True)
class TableLayout:
    """How the table of a batch is stored."""

    columns: tuple[Column, ...]
    shards: tuple[ShardFile, ...]

    @property
    def files(self) -> tuple[str, ...]:
        """The files in the order of their rows."""
        return tuple(shard.file for shard in self.shards)


def read_table_layout(text: str | bytes) -> TableLayout:
    """Return the table's columns and files. Raises TextError for other text."""
    return documents.read(TableLayout, text, name="a launch.json")
