"""Each rule by a pair of files: a manifest that it rejects, with the codes, and a valid twin."""

from pathlib import Path

import pytest
import yaml

from sweepledger.policy import schema
from sweepledger.policy.batch_check import RULES
from sweepledger.policy.batch_rules.allowed_keys import compare_pods, template
from sweepledger.policy.objects import Finding, Object
from sweepledger.policy.rules import references
from tests.sweeps import SETTINGS

HERE = Path(__file__).parent / "manifests"
ROWS = sorted(path.stem for path in (HERE / "invalid").glob("*.yaml"))
ROW = pytest.mark.parametrize("row", ROWS)

FORM = template(SETTINGS, distributed=True)
PLACEHOLDERS = {"HALF_MEBIBYTE": "x" * 2**19, "ONE_MEBIBYTE": "x" * 2**20}
"""Written in place of long texts."""


def codes(folder: str, row: str) -> set[str]:
    """Return the codes of a file's objects: of schemas and keys, then of the rules, each of which relies on those."""
    text = (HERE / folder / f"{row}.yaml").read_text()
    for mark, letters in PLACEHOLDERS.items():
        text = text.replace(mark, letters)
    usable, codes = [], set()
    for obj in map(Object, yaml.safe_load_all(text)):

        def check(obj: Object) -> tuple[Finding, ...]:
            return tuple(schema.findings(obj.api, obj.kind, obj.data))

        malformed = check(obj)
        rest = schema.usable_part(obj, malformed, check) if malformed else obj
        codes |= {finding.code for finding in malformed}
        if rest is not None:
            codes |= {finding.code for rule in RULES for finding in rule(rest)}
            codes |= {finding.code for finding in compare_pods(rest, FORM)}
            usable.append(rest)
    together = {finding.code for _, finding in references.check_references(usable, known=())}
    return codes | together - {references.DANGLING}  # what the files refer to is not in them


@ROW
def test_what_a_rule_refuses_is_found_by_its_code(row: str) -> None:
    expected = (HERE / "invalid" / f"{row}.txt").read_text().split()

    assert sorted(codes("invalid", row)) == expected


@ROW
def test_its_valid_twin_is_not_refused(row: str) -> None:
    assert codes("valid", row) == set()


def test_every_file_has_its_twin_and_its_codes() -> None:
    assert sorted(path.stem for path in (HERE / "valid").glob("*.yaml")) == ROWS
    assert sorted(path.stem for path in (HERE / "invalid").glob("*.txt")) == ROWS
