"""Each rule by a pair of files: a manifest that it refuses, with the codes, and a valid twin.

The twins are no trials, so that other rules refuse both: what counts is what is said of one alone.
"""

from pathlib import Path

import pytest
import yaml

from sweepledger.contract import kubernetes_schemas
from tests.render.judging import check_batch
from tests.sweeps import SETTINGS

HERE = Path(__file__).parent / "manifests"
ROWS = sorted(path.stem for path in (HERE / "invalid").glob("*.yaml"))
ROW = pytest.mark.parametrize("row", ROWS)


def said(folder: str, row: str) -> set[tuple[str, str]]:
    """Return rules and codes of a file's objects, as of a batch."""
    documents = tuple(yaml.safe_load_all((HERE / folder / f"{row}.yaml").read_text()))
    problems = check_batch("lr-b1-00000000", SETTINGS, documents)
    return {(problem.message.partition(", got ")[0], problem.code) for problem in problems}


@ROW
def test_what_a_rule_refuses_is_found_by_its_code(row: str) -> None:
    expected = (HERE / "invalid" / f"{row}.txt").read_text().split()

    assert sorted({code for _, code in said("invalid", row) - said("valid", row)}) == expected


@ROW
def test_its_valid_twin_has_the_form_of_its_kind(row: str) -> None:
    assert kubernetes_schemas.MALFORMED not in {code for _, code in said("valid", row)}


def test_every_file_has_its_twin_and_its_codes() -> None:
    assert sorted(path.stem for path in (HERE / "valid").glob("*.yaml")) == ROWS
    assert sorted(path.stem for path in (HERE / "invalid").glob("*.txt")) == ROWS
