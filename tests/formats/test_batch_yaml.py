from typing import Any

import pytest

from sweepledger.formats import yaml
from sweepledger.formats.batch_yaml import LockError, read
from tests.render.building import rendered
from tests.sweeps import a_batch

TEXT = rendered(a_batch()).tree["batch.yaml"].decode()


def lock_with(path: str, value: Any) -> str:
    """Return the text of a valid lock with another value at a path."""
    data = yaml.load(TEXT)
    *folders, key = path.split(".")
    table = data
    for folder in folders:
        table = table[folder]
    table[key] = value
    return yaml.dump(data, banner="")


@pytest.mark.parametrize(
    ("path", "value", "rule"),
    [
        ("version", 2, "version must be 1"),
        ("name", 3, "name must be text"),
        ("number", -1, "number must be a whole number"),
        ("number", True, "number must be a whole number"),
        ("parent", 3, "parent must be text or null"),
        ("shape", "pod", "shape must be a shape"),
        ("metric.goal", "high", "metric.goal must be a goal"),
        ("metric.source", "air", "metric.source must be a source"),
        ("metric.format", "xml", "metric must be with a known format"),
        ("metric.reduce", "mode", "metric must be with a known reduce"),
        ("metric.path", 3, "metric must be with a valid path"),
        ("metric.patterns", "a", "metric must be with a valid path"),
        ("metric.patterns", [3], "metric must be with a valid path"),
        ("metric.capture", 1, "metric must be with a valid path"),
        ("program.command", "python", "program.command must be a list of texts"),
        ("program.environment", {"path": "a"}, "program must be with a path and a digest"),
        ("program.code.selection", {"paths": [3]}, "program.code must be with a valid selection"),
        ("program.code.selection", {"paths": ["a"]}, "program.code must be with a valid selection"),
        ("program.data", {"name": "mnist"}, "program.data must be a name, a digest and places"),
        ("program.data.at", "../data", "program.data must be a name, a digest and places"),
        ("program.data.at", {"mnist": 1}, "program.data must be a name, a digest and places"),
        ("program.workdir", 3, "program must be with a path and a digest of its environment, and a workdir"),
        ("seed_base", 1.5, "seed_base must be a whole number"),
        ("files", {"job.yaml": "sha256:1"}, "files must be names and digests"),
        ("pool", 3, "pool must be text"),
        ("cluster", "../other", "cluster must be the name of a cluster"),
        ("max_disruptions", -1, "max_disruptions must be a whole number"),
        ("other_metrics", {"loss": "low"}, "other_metrics must be names and goals"),
        ("round", 0, "round must be a whole number from 1"),
        ("ahead", 0, "ahead must be a whole number from 1"),
        ("parents", {"00": "t1"}, "parents must be rows and trials"),
        ("columns", {"x": "colour"}, "columns must be names and types"),
        ("blobs", {"job.yaml": "abc"}, "blobs must be names and ids of git"),
        ("store", "tape", "store must be a store of results"),
        ("infrastructure", {"retries": -1}, "infrastructure must be"),
        ("infrastructure", {"retries": 1, "exit_codes": ["79"]}, "infrastructure must be"),
        ("infrastructure", {"exit_codes": [79]}, "infrastructure must be"),
    ],
)
def test_a_lock_with_a_wrong_value_is_refused_by_its_key(path: str, value: Any, rule: str) -> None:
    with pytest.raises(LockError) as refused:
        read(lock_with(path, value))

    assert str(refused.value).startswith(rule)


@pytest.mark.parametrize("path", ["retries", "spec.digest", "metric.name", "program.code.tree"])
def test_a_lock_without_a_key_is_refused_with_its_name(path: str) -> None:
    data = yaml.load(TEXT)
    *folders, key = path.split(".")
    table = data
    for folder in folders:
        table = table[folder]
    del table[key]

    with pytest.raises(LockError) as refused:
        read(yaml.dump(data, banner=""))

    assert str(refused.value) == f"not a lock file of version 1: it lacks {path}"


@pytest.mark.parametrize(
    ("path", "value"),
    [("round", 1), ("ahead", 1), ("max_disruptions", 0), ("columns", {"x": "number"}), ("store", "volume")],
)
def test_the_smallest_values_are_read(path: str, value: Any) -> None:
    lock = read(lock_with(path, value))

    assert getattr(lock, path) == value
    assert lock.ahead == 1
