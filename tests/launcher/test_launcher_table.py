"""Reading launch.json and the table: what is absent, what is typed how, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.launcher.folders import PROGRAM, TRIALS, TrialFolder, launch, sha256

KINDS = ("number", "boolean", "string", "json")


def parse(cell: str, kind: str) -> Any:
    trial, values = launch.parse_line(f"{TRIALS[0]},{cell}", [("x", kind)])
    assert trial == TRIALS[0]
    return values


@pytest.mark.parametrize(
    ("cell", "kind", "value"),
    [
        ("1", "number", 1),
        ("-7", "number", -7),
        ("0.1", "number", 0.1),
        ("1e-05", "number", 1e-05),
        ("-2.5e-300", "number", -2.5e-300),
        ("9007199254740993", "number", 9007199254740993),
        ("1" * 400, "number", int("1" * 400)),
        ("true", "boolean", True),
        ("false", "boolean", False),
        ('""', "string", ""),
        ('"a"', "string", "a"),
        ('"a,b ""c"""', "string", 'a,b "c"'),
        ('""""', "string", '"'),
        ('"größe 数"', "string", "größe 数"),
        ('"null"', "json", None),
        ('"[1, 2.0, ""x"", true]"', "json", [1, 2.0, "x", True]),
        ('"""a\\nb"""', "json", "a\nb"),
        ('"{""a"": {}}"', "json", {"a": {}}),
    ],
)
def test_a_cell_gives_exactly_its_value(cell: str, kind: str, value: object) -> None:
    result = parse(cell, kind)["x"]

    assert (result, type(result)) == (value, type(value))
    assert repr(result) == repr(value)


def test_an_empty_cell_is_an_absent_parameter() -> None:
    columns = [("a", "number"), ("b", "string"), ("c", "boolean"), ("d", "json")]

    assert launch.parse_line("t1,,,,", columns) == ("t1", {})
    assert launch.parse_line('t1,,"",,', columns) == ("t1", {"b": ""})
    assert launch.parse_line('t1,3,,,"4"', columns) == ("t1", {"a": 3, "d": 4})
    assert launch.parse_line("t" * 63, []) == ("t" * 63, {})


@pytest.mark.parametrize(
    ("kind", "cells"),
    [
        (
            "number",
            ["01", "+1", "1.", ".5", "1e", "1_000", " 1", "nan", "NaN", "Infinity", "1e999", "-1e999"],
        ),
        ("number", ["0x1f", "٣", "true", '"1"', "9" * 5000 + "x"]),
        ("boolean", ["True", "1", '"true"']),
        ("string", ["a"]),
        ("json", ["1", "null", '""', '"{"', '"{""a"": 1, ""a"": 2}"']),
        ("colour", ["1", '"1"']),
    ],
)
def test_a_cell_that_is_not_of_its_columns_type_is_refused_by_name(kind: str, cells: list[str]) -> None:
    for cell in cells:
        with pytest.raises(ValueError, match=r"x must be a cell of type|line 1 column|same name twice"):
            parse(cell, kind)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        *((line, "a row must have 3 cells") for line in ("t1", "t1,1", "t1,1,2,3", "")),
        *((f"{trial},1,2", "must begin with its trial's id") for trial in ("", '"t1"', "-t", "t" * 64)),
        *((f"t1,{cell}2", "a quote stands in") for cell in ('"a"b,', 'a"b",', '"a,', '"a" ,')),
    ],
)
def test_a_malformed_row_is_refused(line: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        launch.parse_line(line, [("a", "number"), ("b", "number")])


def test_a_hostile_cell_takes_no_quadratic_time() -> None:
    with pytest.raises(ValueError, match="wrong place"):
        launch.parse_line('t1,"' + '""' * 200_000, [("a", "string")])


def two_shards(folder: Path) -> dict[str, Any]:
    texts = {"a.csv": "trial,x\nt0,10\nt1,11\n", "b.csv": "trial,x\nt2,12\n"}
    shards = []
    for first, (name, text) in zip((0, 2), texts.items(), strict=True):
        (folder / name).write_text(text, encoding="utf-8")
        count = text.count("\n") - 1
        digest = f"sha256:{sha256(text.encode())}"
        shards.append({"file": name, "first": first, "count": count, "digest": digest})
    return {"program": PROGRAM, "columns": [{"name": "x", "type": "number"}], "shards": shards}


@pytest.mark.parametrize("index", [1, 2])
def test_the_row_is_found_in_the_file_that_holds_it(index: int, tmp_path: Path) -> None:
    row = launch.read_row(two_shards(tmp_path), str(tmp_path), index)

    digest = sha256(f"{PROGRAM}\ntrial,x\nt{index},{10 + index}\n".encode())
    assert row == (index, f"t{index}", digest, {"x": 10 + index}, 0)


def in_one_file(folder: Path, text: str, *columns: str) -> dict[str, Any]:
    """Write a table of one row in one file, and return what launch.json says of it."""
    content = text.encode(errors="surrogateescape")
    (folder / "a.csv").write_bytes(content)
    shard = {"file": "a.csv", "first": 0, "count": 1, "digest": f"sha256:{sha256(content)}"}
    return {
        "program": PROGRAM,
        "columns": [{"name": name, "type": "number"} for name in columns],
        "shards": [shard],
    }


@pytest.mark.parametrize("cell", ["-1", "1.5", "", "true"])
def test_a_replicate_that_is_no_number_from_0_is_refused(cell: str, tmp_path: Path) -> None:
    instructions = in_one_file(tmp_path, f"trial,replicate,x\nt0,{cell},10\n", "replicate", "x")

    with pytest.raises(launch.Refused, match="replicate must be"):
        launch.read_row(instructions, str(tmp_path), 0)


def test_an_index_beyond_the_table_is_refused_and_no_other_file_of_the_table_is_opened(
    tmp_path: Path,
) -> None:
    instructions = two_shards(tmp_path)
    (tmp_path / "a.csv").unlink()

    assert launch.read_row(instructions, str(tmp_path), 2).trial == "t2"
    with pytest.raises(launch.Refused, match=r"index 3 is beyond the table, which has 3 rows"):
        launch.read_row(instructions, str(tmp_path), 3)


@pytest.mark.parametrize(
    "text",
    [
        *("trial,y\nt0,1\n", "t0,1\n", "trial,x\nt0,1", "trial,x\nt0,1\n\n", "trial,x\n"),
        *("trial,x\nt0,1\nt1,1\n", "trial,x\r\nt0,1\r\n", ""),
    ],
)
def test_a_table_of_another_form_is_refused_although_its_digest_fits(text: str, tmp_path: Path) -> None:
    with pytest.raises(launch.Refused, match=r"a.csv: it must have the header 'trial,x', 1 rows and a final"):
        launch.read_row(in_one_file(tmp_path, text, "x"), str(tmp_path), 0)


def test_a_table_that_is_no_utf_8_is_refused(tmp_path: Path) -> None:
    with pytest.raises(launch.Refused, match=r"a\.csv: 'utf-8' codec"):
        launch.read_row(in_one_file(tmp_path, "trial\n\udcff\n"), str(tmp_path), 0)


def cell_of(value: Any) -> tuple[str, str]:
    match value:
        case bool():
            return "boolean", "true" if value else "false"
        case int() | float():
            return "number", repr(value)
        case str() if value.isprintable():
            return "string", '"' + value.replace('"', '""') + '"'
        case _:
            return "json", '"' + json.dumps(value).replace('"', '""') + '"'


TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
NAMES = st.from_regex(r"\A[A-Za-z][A-Za-z0-9_.-]{0,20}\Z")
ASSIGNMENTS = st.dictionaries(NAMES, SCALARS | st.lists(SCALARS, max_size=4), max_size=5)


@given(assignment=ASSIGNMENTS, absent=st.sets(NAMES, max_size=2))
@settings(max_examples=60, deadline=None)
def test_any_typed_assignment_comes_back_exactly(assignment: dict[str, Any], absent: set[str]) -> None:
    columns = [(name, cell_of(value)[0]) for name, value in assignment.items()]
    columns += [(name, "json") for name in sorted(absent - assignment.keys())]
    cells = [cell_of(value)[1] for value in assignment.values()]
    line = ",".join(["t1", *cells, *[""] * (len(columns) - len(cells))])

    trial, values = launch.parse_line(line, columns)

    assert "\n" not in line
    assert (trial, list(values)) == ("t1", list(assignment))
    assert repr(values) == repr(assignment)


@given(st.text(alphabet='t,"1ae-.[]', max_size=30), st.lists(st.sampled_from(KINDS), max_size=4))
@settings(max_examples=100, deadline=None)
def test_whatever_the_line_it_is_read_or_refused(line: str, kinds: list[str]) -> None:
    columns = [(f"p{number}", kind) for number, kind in enumerate(kinds)]
    try:
        trial, values = launch.parse_line(line, columns)
    except ValueError:
        return
    assert trial == line.partition(",")[0]
    assert values.keys() <= {name for name, _ in columns}


SHARD: dict[str, Any] = {"file": "a", "first": 0, "count": 1, "digest": ""}
LOSS: dict[str, Any] = {"name": "loss", "source": "result"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 3}, "launch.json must be of version [12], got 3"),
        ({"columns": ["x"]}, "launch.json: column must be an object, got 'x'"),
        ({"columns": [{"type": "number"}]}, "column: name must be str"),
        ({"shards": [{"file": "a", "first": 0, "count": 1}]}, "shard: digest must be str"),
        ({"shards": [SHARD | {"first": 0.0}]}, "shard: first must be int, got 0.0"),
        ({"shards": [SHARD | {"count": True}]}, "shard: count must be int"),
        ({"metric": {"source": "result"}}, "metric: name must be str"),
        ({"metric": LOSS | {"source": "file"}}, "metric: source must be one of result, stdout"),
        ({"metric": LOSS | {"format": "xml"}}, "must be one of json, jsonl, text"),
        ({"metric": LOSS | {"reduce": 1}}, "reduce must be one of last, min, max"),
        ({"environment": {"lock": 5}}, "launch.json: environment: lock must be str, got 5"),
        ({"secrets": {"TOKEN": 5}}, "launch.json: secrets: TOKEN must be str, got 5"),
        ({"data_at": {"mnist": 5}}, "launch.json: data_at: mnist must be str, got 5"),
        ({"keep": ["a/../../*"]}, "keep and workdir must be paths inside the code, got 'a/"),
        ({"workdir": "/etc"}, "keep and workdir must be paths inside the code, got '/etc'"),
    ],
)
def test_another_form_is_refused(change: dict[str, Any], message: str, trial_folder: TrialFolder) -> None:
    trial_folder.changes = change
    trial_folder.write()

    with pytest.raises(launch.Refused, match=message):
        launch.read_launch(str(trial_folder.root / "launch.json"))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"version": 1, "version": 1}', "\udcff"])
def test_a_launch_json_that_is_no_json_object_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "launch.json"
    path.write_text(text, encoding="utf-8", errors="surrogateescape")

    with pytest.raises(launch.Refused, match=r"launch\.json cannot be read: "):
        launch.read_launch(str(path))


def test_further_members_of_launch_json_do_not_matter(trial_folder: TrialFolder) -> None:
    trial_folder.changes = {"generated": "by a generator", "timeout_seconds": 0.5}
    trial_folder.write()

    result = launch.read_launch(str(trial_folder.root / "launch.json"))

    assert result == {**trial_folder.launch_json(), "metric": result["metric"]}
    assert result["metric"] == {
        "name": "test_accuracy",
        "source": "result",
        "format": "json",
        "reduce": "last",
    }
