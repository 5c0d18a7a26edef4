"""launch.json: what a batch says of its trials, and the check of every member that is used."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, Mapping

from launch_files import VERSION, Refused
from launch_json import parse_object

if TYPE_CHECKING:
    pass

MOST_ROWS = 1000  # of one pod
REASON = r"[a-z0-9][a-z0-9-]{0,63}"
# A rule with such a name could pass for an ending that only the launcher or the collector can observe.
RESERVED_REASON = (
    r"bad-command|bad-hyperparameters|bad-sweep|cancelled|code-changed|corrupt|data-changed|disk-full"
    r"|disrupted|evicted|exit-[0-9]+"
    r"|foreign|killed|metric-missing|metric-not-finite|missing|no-record|node-lost|oom|preempted"
    r"|result-invalid|signal-[0-9]+|start-failed|timeout|too-large|too-many"
)
TEXT, AMOUNT = (str,), (int, float)
LAUNCH: Mapping[str, tuple[type, ...]] = {
    "batch": TEXT,
    "program": TEXT,
    "code": TEXT,
    "data": (str, type(None)),
    "columns": (list,),
    "shards": (list,),
    "command": (list,),
    "interpreter": TEXT,
    "metric": (dict,),
    "seed_base": (int,),
    "timeout_seconds": AMOUNT,
    "grace_seconds": AMOUNT,
    "max_disruptions": (int,),
}
OPTIONS: Mapping[str, tuple[type, ...]] = {
    "secrets": (dict,),
    "hyperparams_file": (bool,),
    "config": (dict,),
    "workdir": TEXT,
    "data_at": (dict,),
    "keep": (list,),
    "stop": (list,),
    "thresholds_file": TEXT,
    "keep_checkpoints": (bool,),
    "environment": (dict,),
    "pack": (dict,),
    "capture": (bool,),
}
COLUMN = {"name": TEXT, "type": TEXT}
CONFIG = {"format": TEXT, "text": TEXT}
SHARD = {"file": TEXT, "first": (int,), "count": (int,), "digest": TEXT}
METRIC = {"name": TEXT, "source": TEXT}
METRIC_OPTIONS = {"curve": TEXT, "path": TEXT, "patterns": (list,), "others": (list,)}
CHOICES = {
    "source": ("result", "stdout", "output"),
    "format": ("json", "jsonl", "text", "log", "csv", "regex", "tensorboard"),
    "reduce": ("last", "min", "max"),
}
FORMATS_OF_FILES = ("json", "csv", "tensorboard")  # which stdout is not
RULE = {"rule": TEXT, "goal": TEXT}
STEPS = {"from": (int,), "until": (int,)}  # outside of which a rule ends nothing
RULES: Mapping[str, Mapping[str, tuple[type, ...]]] = {
    "thresholds": {"thresholds": (list,), "value": TEXT},
    "reports": {"reports": (int,), "margin": AMOUNT},
    "reach": {"reach": AMOUNT},
}


def check(value: Any, members: Mapping[str, tuple[type, ...]], where: str) -> None:
    """Refuse an object of launch.json that lacks a member, or has one of a wrong type."""
    if type(value) is not dict:
        raise Refused(f"launch.json: {where} must be an object, got {value!r}")
    for name, types in members.items():
        if name not in value or type(value[name]) not in types:
            wanted = " or ".join(each.__name__ for each in types)
            raise Refused(f"launch.json: {where}: {name} must be {wanted}, got {value.get(name)!r}")


def check_options(value: Mapping[str, Any], options: Mapping[str, tuple[type, ...]], where: str) -> None:
    """Refuse an object that has an optional member of a wrong type."""
    check(value, {name: types for name, types in options.items() if name in value}, where)


def read_launch(path: str) -> dict[str, Any]:
    """Read launch.json and check every member that is used."""
    try:
        with open(path, "rb") as file:
            launch = parse_object(file.read())
    except (OSError, ValueError) as error:
        raise Refused(f"launch.json cannot be read: {error}") from error
    if launch.get("version") != VERSION:
        raise Refused(f"launch.json must be of version {VERSION}, got {launch.get('version')!r}")
    check(launch, LAUNCH, "launch")
    check(launch["metric"], METRIC, "metric")
    check_options(launch, OPTIONS, "launch")
    check_places(launch)
    for column in launch["columns"]:
        check(column, COLUMN, "column")
    for shard in launch["shards"]:
        check(shard, SHARD, "shard")
    for rule in launch.get("stop", []):
        check_rule(rule)
    if "environment" in launch:
        check_lock(launch["environment"])
    if "pack" in launch:
        check_pack(launch["pack"])
    if "config" in launch:
        check(launch["config"], CONFIG, "config")
    metric = complete_metric(launch["metric"])
    if launch.get("capture") and (metric["source"], metric["format"], "path" in metric) != (
        "result",
        "jsonl",
        False,
    ):
        raise Refused(
            "launch.json: capture: metric must have the source result, the format jsonl and no path"
        )
    live = {"thresholds_file": os.environ["SWEEP_THRESHOLDS"]} if os.environ.get("SWEEP_THRESHOLDS") else {}
    return {**launch, **live, "metric": metric}


def check_places(launch: Mapping[str, Any]) -> None:
    """Refuse paths of secrets and datasets that are no text, and paths of the trial outside its code."""
    for name in ("secrets", "data_at"):
        check(launch.get(name, {}), dict.fromkeys(launch.get(name, {}), TEXT), name)
    for place in [*launch.get("keep", []), launch.get("workdir", ".")]:
        if type(place) is not str or os.path.isabs(place) or ".." in place.split("/"):
            raise Refused(f"launch.json: keep and workdir must be paths inside the code, got {place!r:.200}")


def check_rule(rule: Any) -> None:
    """Refuse a rule of early stopping that is not one of the three kinds, or has unsorted thresholds."""
    check(rule, RULE, "stop")
    kinds = [kind for kind in RULES if kind in rule]
    if len(kinds) != 1:
        raise Refused(
            f"launch.json: stop: exactly one of {', '.join(RULES)} must be given, got {sorted(rule)}"
        )
    check(rule, RULES[kinds[0]], "stop")
    check_options(rule, STEPS, "stop")
    if not re.fullmatch(REASON, rule["rule"]) or re.fullmatch(RESERVED_REASON, rule["rule"]):
        raise Refused(
            f"launch.json: stop: rule must be a word of its own in small letters, got {rule['rule']!r:.100}"
        )
    if rule["goal"] not in ("maximize", "minimize") or rule.get("value", "best") not in ("best", "last"):
        raise Refused(
            f"launch.json: stop: goal must be maximize or minimize, and value best or last, got {rule!r:.200}"
        )
    for point in rule.get("thresholds", []):
        if type(point) is not list or len(point) != 2 or not {type(each) for each in point} <= {*AMOUNT}:
            raise Refused(f"launch.json: stop: a threshold must be a step and a number, got {point!r:.100}")
    steps = [step for step, _ in rule.get("thresholds", [])]
    if steps != sorted(set(steps)):
        raise Refused("launch.json: stop: the thresholds must be in the order of their steps")


def check_lock(environment: Mapping[str, Any]) -> None:
    """Refuse a lock file that could be outside the code."""
    check(environment, {"lock": TEXT}, "environment")
    lock = environment["lock"]
    if os.path.isabs(lock) or ".." in lock.split("/") or not lock:
        raise Refused(f"launch.json: environment: lock must be a path inside the code, got {lock!r:.200}")


def check_pack(pack: Mapping[str, Any]) -> None:
    """Refuse numbers of rows that no pod can run."""
    check(pack, {"at_once": (int,)}, "pack")
    check_options(pack, {"rows": (int,)}, "pack")
    for name in ("at_once", "rows"):
        if not 1 <= pack.get(name, 1) <= MOST_ROWS:
            raise Refused(f"launch.json: pack: {name} must be from 1 to {MOST_ROWS}, got {pack[name]}")


def complete_metric(metric: Mapping[str, Any]) -> dict[str, Any]:
    """Add the defaults of how the trial reports."""
    check_options(metric, METRIC_OPTIONS, "metric")
    usual = "json" if metric["source"] == "result" else "text"
    metric = {"format": usual, "reduce": "last", **metric}
    for name, choices in CHOICES.items():
        if metric[name] not in choices:
            raise Refused(
                f"launch.json: metric: {name} must be one of {', '.join(choices)}, got {metric[name]!r}"
            )
    is_printed, form = metric["source"] != "result", metric["format"]
    if is_printed and (form in FORMATS_OF_FILES or "path" in metric):
        raise Refused(
            f"launch.json: metric: {'path' if 'path' in metric else f'the format {form}'} needs a file, "
            f"and {metric['source']} is none: source must be result"
        )
    if form == "tensorboard" and "path" not in metric:
        raise Refused("launch.json: metric: the format tensorboard needs a path")
    if (form == "regex") != bool(metric.get("patterns")):
        raise Refused("launch.json: metric: patterns and the format regex need each other")
    for pattern in metric.get("patterns", []):
        from launch_patterns import check_pattern

        check_pattern(pattern)
    return metric
