import json
from typing import Any

import pytest

from sweepledger.formats import documents
from sweepledger.formats.batch_json import read
from sweepledger.problems import TextError
from tests.render.building import rendered
from tests.sweeps import a_batch

MADE = rendered(a_batch())
TEXT = MADE.tree["batch.json"].decode()


def lock_with(path: str, value: Any) -> str:
    """Return the text of a valid lock with another value at a path; without the key for `...`."""
    data = json.loads(TEXT)
    *folders, key = path.split(".")
    table = data
    for folder in folders:
        table = table[folder]
    table.pop(key, None)
    if value is not ...:
        table[key] = value
    return json.dumps(data)


def test_a_lock_reads_back_as_it_was_written() -> None:
    assert read(TEXT) == MADE.lock
    assert documents.write(read(TEXT)) == TEXT


@pytest.mark.parametrize(
    ("path", "value", "rule"),
    [
        ("version", 2, "version: Invalid enum value 2"),
        ("name", 3, "name: Expected `str`, got `int`"),
        ("number", -1, "number: Expected `int` >= 0"),
        ("shape", "pod", "shape: Invalid enum value 'pod'"),
        ("metric.patterns", [3], "metric.patterns[0]: Expected `str`, got `int`"),
        ("program.environment", {"path": "a"}, "program.environment: Object missing required field `digest`"),
        ("program.code.selection", {"paths": ["a"]}, "program.code: selected files belong in '.'"),
        ("run.infrastructure", {"retries": -1}, "run.infrastructure.retries: Expected `int` >= 0"),
        ("files", {"job.yaml": "sha256:1"}, "files[...]: Expected `str` matching regex"),
        ("cluster", "../other", "cluster: Expected `str` matching regex"),
        ("columns", {"x": "colour"}, "columns: must be types of columns, but got 'colour'"),
        ("spec.digest", ..., "spec: Object missing required field `digest`"),
    ],
)
def test_a_lock_with_a_wrong_value_is_refused_by_its_key(path: str, value: Any, rule: str) -> None:
    with pytest.raises(TextError) as refused:
        read(lock_with(path, value))

    assert rule in str(refused.value)


@pytest.mark.parametrize("text", ["", "[", "name: peak", "[]", '{"version": 1}', "[" * 10_000, b"\xff"])
def test_what_is_no_lock_is_refused(text: str | bytes) -> None:
    with pytest.raises(TextError, match="not a lock file"):
        read(text)
