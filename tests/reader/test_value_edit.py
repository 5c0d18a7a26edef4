"""One value of a configuration file changes; comments, order and everything else stay."""

import json
from typing import Any

import pytest

from sweepledger.reader.value_edit import key_paths, read_values, replace_value

YAML = "# tuned by hand\ntrain:\n  lr: 0.1   # the old one\n  layers: [1, 2]\nname: run\n"
JSON = '{\n  "lr": 1.0,\n  "train": {"lr": 1e-1, "name": "a \\"lr\\": 3"},\n  "other": {"lr": 2}\n}\n'
TOML = (
    "# tuned by hand\nlr = 1.0 # top\n\n[train]\nlr = 1e-1 # inner\nname = 'lr = 3'\nlayers = [1, 2]\n\n"
    '[other]\n"lr" = 2\nnote = """\nlr = 0.5\n"""\n'
)


@pytest.mark.parametrize(
    ("text", "suffix", "path", "value", "old", "new"),
    [
        (YAML, ".yaml", ("train", "lr"), 0.03, "lr: 0.1   #", "lr: 0.03   #"),
        (YAML, ".yaml", ("name",), "1e3", "name: run", 'name: "1e3"'),
        (JSON, ".json", ("train", "lr"), 0.03, '"lr": 1e-1', '"lr": 0.03'),
        (JSON, ".json", ("other", "lr"), None, '"lr": 2}', '"lr": null}'),
        (JSON, ".json", ("train", "name"), 'say "ü"', '"a \\"lr\\": 3"', '"say \\"ü\\""'),
        (TOML, ".toml", ("train", "lr"), 0.03, "lr = 1e-1 #", "lr = 0.03 #"),
        (TOML, ".toml", ("train", "name"), "b", "'lr = 3'", '"b"'),
        (TOML, ".toml", ("train", "layers"), [3], "[1, 2]", "[3]"),
        (TOML, ".toml", ("other", "lr"), True, '"lr" = 2', '"lr" = true'),
    ],
    ids=lambda value: str(value)[:12] if isinstance(value, str | tuple) else None,
)
def test_only_the_value_changes(
    text: str, suffix: str, path: tuple[str, ...], value: Any, old: str, new: str
) -> None:
    assert text.count(old) == 1

    assert replace_value(text, suffix, path, value) == text.replace(old, new)


@pytest.mark.parametrize(("text", "suffix"), [(YAML, ".yaml"), (JSON, ".json"), (TOML, ".toml")], ids=str)
def test_an_equal_value_leaves_the_file_as_it_is(text: str, suffix: str) -> None:
    data = read_values(text, suffix)

    assert replace_value(text, suffix, ("train", "lr"), data["train"]["lr"]) == text


def test_what_cannot_be_set_safely_is_refused() -> None:
    with pytest.raises(ValueError, match=r"note cannot be set without changing something else"):
        replace_value(TOML, ".toml", ("other", "note"), "x")
    with pytest.raises(ValueError, match="TOML has no null"):
        replace_value(TOML, ".toml", ("lr",), None)
    with pytest.raises(ValueError, match=r"must end in \.yaml, \.yml, \.json, \.toml, got '\.ini'"):
        read_values("[a]\nb=1\n", ".ini")
    with pytest.raises(ValueError, match="must contain a mapping"):
        read_values("[1]", ".json")


def test_a_parameter_means_the_nearest_key_of_its_name() -> None:
    data = json.loads('{"a.b": 1, "a": {"b": 2, "c": 3}, "x": {"a": {"c": 4}}, "y": {"z": 5}}')

    assert key_paths(data, "a.b") == (("a.b",),)
    assert key_paths(data, "a.c") == (("a", "c"),)
    assert key_paths(data, "z") == (("y", "z"),)
    assert key_paths(data, "c") == (("a", "c"), ("x", "a", "c"))
    assert key_paths(data, "a") == ()
