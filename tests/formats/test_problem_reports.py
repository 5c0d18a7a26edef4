"""What `sweep check --report` writes for code hosts, before SARIF's own schema."""

import hashlib
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from sweepledger.formats.problem_reports import MAX_RESULTS, sarif
from sweepledger.problems import Problem, Severity
from tests import npm

ROOT = Path(__file__).parents[2]
KEPT = ROOT / ".tools/data/sarif-2.1.0.json"
NPM = "@microsoft/jest-sarif@1.0.0-beta.0"
WITHIN = "package/lib/schemas/sarif-2.1.0-rtm.5.json"
DIGEST = "2d99159ae54a3eea97f81781cff48780548657c35949f4b7f25e99a2ba4de4f8"


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Give the schema as it was published, from an npm package that carries it; fetched once."""
    if not KEPT.is_file():
        folder = tmp_path_factory.mktemp("npm")
        try:
            npm.run(folder, "pack", NPM)
        except npm.NpmError as error:
            pytest.skip(f"skipped: SARIF's schema: {error}")
        (archive,) = folder.iterdir()
        with tarfile.open(archive) as packed:
            member = packed.extractfile(WITHIN)
            assert member is not None
            content = member.read()
        KEPT.parent.mkdir(parents=True, exist_ok=True)
        ready = KEPT.with_suffix(f".{os.getpid()}")  # another worker may fetch it, too
        ready.write_bytes(content)
        ready.replace(KEPT)
    content = KEPT.read_bytes()
    assert hashlib.sha256(content).hexdigest() == DIGEST
    return json.loads(content)


def faults(document: Any, schema: Any) -> list[str]:
    checker = jsonschema.Draft4Validator(schema, format_checker=jsonschema.Draft4Validator.FORMAT_CHECKER)
    return [error.message for error in checker.iter_errors(json.loads(json.dumps(document)))]


ODD = {
    "nothing": (),
    "a line": (Problem("sweeps/a.yaml", 3, 5, "run", "must be less", "bad-value", "write 1"),),
    "a whole file": (Problem("overlays/active/a", 0, 0, "", "is missing", "drift"),),
    "no file": (Problem("", 0, 0, "", "is wrong", "drift"),),
    "a warning": (Problem("a", 1, 1, "", "is due", "pending", None, Severity.WARNING),),
    "an odd name": (
        Problem(b"sweeps/\xff \n%:#?.yaml".decode(errors="surrogateescape"), 1, 1, "", "x", "y"),
    ),
}


@pytest.mark.parametrize("problems", ODD.values(), ids=ODD)
def test_what_is_written_is_sarif(problems: tuple[Problem, ...], schema: Any) -> None:
    document = sarif(problems, version="1.0.0")

    assert faults(document, schema) == []
    assert len(document["runs"][0]["results"]) == len(problems)


def test_a_host_keeps_no_more_results_than_are_written() -> None:
    (run,) = sarif([Problem("a", 1, 1, "", "x", "c")] * (MAX_RESULTS + 1), version="1.0.0")["runs"]

    assert len(run["results"]) == MAX_RESULTS


@pytest.mark.parametrize(("file", "uris"), [("sweeps/a b.yaml", ["sweeps/a%20b.yaml"]), ("", [])])
def test_a_problem_has_a_location_if_it_has_a_file(file: str, uris: list[str]) -> None:
    (run,) = sarif([Problem(file, 3, 1, "name", "must be a name", "name-invalid")], version="1.0.0")["runs"]
    (result,) = run["results"]

    assert [one["physicalLocation"]["artifactLocation"]["uri"] for one in result["locations"]] == uris
