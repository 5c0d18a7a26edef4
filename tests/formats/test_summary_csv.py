"""summary.csv in both directions (catalogue R7, R14 to R16)."""

import re
from collections.abc import Callable
from types import MappingProxyType

import pytest

from sweepledger.formats import summary_csv
from sweepledger.structs.record import Status, TrialResult
from sweepledger.structs.values import Value
from tests.builders import DATA, TREE, a_record

PROGRAM = "9" * 64


def an_outcome(index: int = 0, **changes: object) -> TrialResult:
    values = {
        "trial": f"t{index:011x}",
        "batch": "lr-b1-3f9a1c2e",
        "index": index,
        "assignment": MappingProxyType({"lr": 0.1, "width": 64}),
        "status": Status.OK,
        "reason": None,
        "attempts": 1,
        "record": a_record(index),
        "program": PROGRAM,
        "code": TREE,
        "data": DATA,
        **changes,
    }
    return TrialResult(**values)  # type: ignore[arg-type]


def written(*outcomes: TrialResult) -> list[str]:
    return summary_csv.write(outcomes, objective="test_accuracy").splitlines()


def test_a_summary_is_exactly_this() -> None:
    metrics = {"loss": 2.0, "test_accuracy": 0.1 + 0.2, "bad": None}
    absent: dict[str, object] = {"status": Status.MISSING, "attempts": 0, "record": None, "data": None}
    outcomes = [
        an_outcome(0, in_spec=True, node_class="gpu", record=a_record(0, metrics=metrics)),
        an_outcome(1, in_spec=False, assignment=MappingProxyType({"lr": 1.0, "tags": ["a", 1]}), **absent),
        an_outcome(2, status=Status.FAILED, reason="exit-1", attempts=2, record=a_record(2, metrics={})),
    ]

    text = summary_csv.write(outcomes, objective="test_accuracy")

    assert text == (
        "trial,batch,index,replicate,in_spec,status,reason,attempts,program,params.lr,params.width,params.tags,"
        "metrics.test_accuracy,metrics.bad,metrics.loss,seconds,node_class,seed,code,ran,data,started,finished\n"
        f"t00000000000,lr-b1-3f9a1c2e,0,0,true,ok,,1,{PROGRAM},0.1,64,,0.30000000000000004,,2,3.25,gpu,0,"
        f"{TREE},process,{DATA},2026-01-01T00:00:00Z,2026-01-01T00:00:03Z\n"
        f't00000000001,lr-b1-3f9a1c2e,1,0,false,missing,,0,{PROGRAM},1.0,,"[""a"",1]",,,,,,,'
        f"{TREE},,,,\n"
        f"t00000000002,lr-b1-3f9a1c2e,2,0,,failed,exit-1,2,{PROGRAM},0.1,64,,,,,3.25,,0,"
        f"{TREE},process,{DATA},2026-01-01T00:00:00Z,2026-01-01T00:00:03Z\n"
    )


def test_a_summary_reads_back() -> None:
    missing = an_outcome(1, status=Status.MISSING, attempts=0, record=None)
    outcomes = [an_outcome(0, in_spec=True, node_class="gpu"), missing]

    table = summary_csv.read(summary_csv.write(outcomes, objective="test_accuracy"))

    assert table.parameters == ("lr", "width")
    assert table.metrics == ("test_accuracy", "loss")
    first, second = table.rows
    assert first.assignment == {"lr": 0.1, "width": 64}
    assert first.metrics == {"test_accuracy": 0.94, "loss": 0.2}
    assert (first.status, first.seconds, first.seed, first.data) == (Status.OK, 3.25, 0, DATA)
    assert (second.status, second.metrics, second.seconds, second.seed) == (Status.MISSING, {}, None, None)
    assert (second.ran, second.started, second.code) == (None, None, TREE)
    assert [row.in_spec for row in table.rows] == [True, None]
    assert [row.node_class for row in table.rows] == ["gpu", None]
    assert {row.program for row in table.rows} == {PROGRAM}


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (0.5, "0.5"), (-0.5, "-0.5"), (1.0, "1.0"), (1e-7, "1e-07"), (1e22, "1e+22"), (5e-324, "5e-324"),
        (True, "true"), (None, "null"), ("", '""'), ("adam", '"adam"'), ("true", '"true"'),
        ("1e-4", '"1e-4"'), ("-0.5", '"-0.5"'), ("=cmd|' /C calc'!A0", "\"'=cmd|' /C calc'!A0\""),
        ("+1", '"\'+1"'), ("-x", '"\'-x"'), ("@SUM(A1)", '"\'@SUM(A1)"'), ("'quoted", "\"''quoted\""),
        ('say "hi", you', '"say ""hi"", you"'), ("\t=1", '"""\\t=1"""'), ("a\r\nb", '"""a\\r\\nb"""'),
        ("a\u2028b", '"""a\\u2028b"""'), ("[1]", '"""[1]"""'), ([1, "a"], '"[1,""a""]"'), ([], '"[]"'),
        ("{1}", '"""{1}"""'),
    ],
)  # fmt: skip
def test_a_value_has_one_cell_that_reads_back(value: Value, cell: str) -> None:
    text = summary_csv.write([an_outcome(assignment=MappingProxyType({"p": value}))], objective="loss")

    assert summary_csv.value_cell(value) == cell
    row = summary_csv.read(text).rows[0]
    assert repr(row.assignment["p"]) == repr(value)
    assert text.count("\n") == len(text.splitlines()) == 2


def test_no_cell_of_a_hostile_metric_name_becomes_a_formula() -> None:
    lines = written(an_outcome(record=a_record(metrics={'=1,"x': 1.0})))

    assert '"metrics.=1,""x"' in lines[0]


def test_trials_that_invent_metric_names_do_not_blow_up_the_table() -> None:
    outcomes = [
        an_outcome(
            index,
            record=a_record(index, metrics={"shared": 1.0, **{f"m{index}-{n}": 1.0 for n in range(99)}}),
        )
        for index in range(4)
    ]

    names = summary_csv.read(summary_csv.write(outcomes, objective="test_accuracy")).metrics

    assert len(names) == summary_csv.MAX_METRIC_COLUMNS
    assert names[0] == "test_accuracy"
    assert "shared" in names
    assert list(names[1:]) == sorted(names[1:])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.rstrip("\n"), "the table must end with a line end"),
        (lambda _: "", "the table must end with a line end"),
        (lambda text: "<<<<<<< HEAD\n" + text, "line 1: not the columns of a summary"),
        (lambda text: text.replace("\n", "\r\n"), "line 1: not the columns of a summary"),
        (lambda text: text.replace("params.lr,", "params.lr,mine,"), "line 1: not the columns of a summary"),
        (lambda text: text.replace("params.width", "params.lr"), "line 1: not the columns of a summary"),
        (lambda text: text + "=======\n", "line 3: must have 21 cells, but got '======='"),
        (lambda text: text.replace(",ok,", ",fine,"), "line 2: status: 'fine' is not a valid Status"),
        (lambda text: text.replace(",ok,", "no,ok,"), "line 2: in_spec: must be true, false or empty"),
        (lambda text: text.replace(",0.94,", ",nan,"), "line 2: metrics.test_accuracy: must be a number, but"),
        (lambda text: text.replace(",64,", ",big,"), "line 2: params.width: must be a value, but got 'big'"),
        (lambda text: text.replace(TREE, ""), "line 2: code: must not be empty"),
        (lambda text: text.replace(",64,", ',6"4,'), "line 2: must have 21 cells"),
    ],
)  # fmt: skip
def test_a_summary_that_was_edited_is_refused_by_line(change: Callable[[str], str], message: str) -> None:
    text = summary_csv.write([an_outcome()], objective="test_accuracy")

    with pytest.raises(ValueError, match="^" + re.escape(message)):
        summary_csv.read(change(text))
