"""Which of the invalid manifests the server refuses, why, and which only we catch: held by judged.json.

`--update-golden` writes the verdicts anew, after a newer server; the diff is what changed its mind.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from yaml import safe_load_all

from sweepledger.formats import yaml
from sweepledger.problems import TextError
from tests.cluster import building
from tests.cluster.apiserver import Server
from tests.cluster.judging import judged, write_list
from tests.cluster.templates import pods
from tests.manifests import manifest

ROOT = Path(__file__).parents[2]
MANIFESTS = ROOT / "tests/policy/manifests"
ROWS = sorted(path.stem for path in (MANIFESTS / "invalid").glob("*.yaml"))
JUDGED = Path(__file__).parent / "judged.json"
POLICY = ROOT / "docs/policy.md"

NAMESPACE = re.compile(r"^ +namespace: *([a-z0-9-]+)", re.MULTILINE)
OF_THE_TEXT = frozenset({"alias", "tag", "duplicate-key", "ambiguous-scalar"})
"""Codes of what a client has resolved before any server sees it."""

AT_ONCE, AT_THE_POD, ONLY_WE = "the server", "the server, at the pod", "only we"
NOT_ASKED = "not for a server"


@pytest.fixture(scope="module")
def verdicts(apiserver: Server, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Mapping[str, str]]:
    """Who refuses each invalid manifest and each valid one, and why."""
    folder = tmp_path_factory.mktemp("judged")
    texts = [path.read_text() for path in MANIFESTS.rglob("*.yaml")]
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    for name in sorted({item for text in texts for item in NAMESPACE.findall(text)}):
        metadata = {"name": name, "labels": labels}
        apiserver.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        apiserver.apply(*(manifest("ServiceAccount", each, name) for each in ("default", "sweep-trial")))
    return {side: _verdicts(apiserver, folder, side) for side in ("valid", "invalid")}


def _verdicts(server: Server, folder: Path, side: str) -> dict[str, str]:
    """Ask for all files of a side, then for the pods of those that were accepted."""
    whole, parts = folder / side, folder / f"{side}-pods"
    whole.mkdir()
    parts.mkdir()
    for row in ROWS:
        (whole / f"{row}.yaml").write_bytes((MANIFESTS / side / f"{row}.yaml").read_bytes())
    at_once = judged(server, whole)
    for row in (row for row in ROWS if at_once.why(row) is None):
        documents = _read_all((whole / f"{row}.yaml").read_bytes())
        made = [document for document in documents if isinstance(document, dict)]
        write_list(parts, row, [pod for each in made for pod in pods(each)])
    at_pod = judged(server, parts)
    return {row: _verdict(at_once.why(row), at_pod.why(row)) for row in ROWS}


def _read_all(text: bytes) -> Iterable[Any]:
    """Return the documents of a file; with aliases and tags resolved, which our own reader refuses."""
    try:
        return yaml.load_all(text)
    except TextError:
        return safe_load_all(text)


def _verdict(at_once: str | None, at_pod: str | None) -> str:
    if at_once is not None:
        return f"{AT_ONCE}: {at_once}"
    return ONLY_WE if at_pod is None else f"{AT_THE_POD}: {at_pod}"


def by_row(verdicts: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Give the verdict of each invalid manifest; none where its valid twin is refused, too."""
    results = {}
    for row in ROWS:
        message, twin = verdicts["invalid"][row], verdicts["valid"][row]
        lines = (MANIFESTS / "invalid" / f"{row}.txt").read_text().splitlines()
        codes = {line.rpartition(": ")[2] for line in lines}
        if message == ONLY_WE and codes <= OF_THE_TEXT:
            message = f"{NOT_ASKED}: its client reads the text"
        elif twin != ONLY_WE:
            message = f"{NOT_ASKED}: {twin.partition(': ')[2]}"
        results[row] = message
    return results


@pytest.mark.skipif(
    building.RELEASES["1.36"] != building.KUBERNETES, reason="the list is that of Kubernetes 1.36"
)
def test_what_the_server_catches_and_why_is_listed(
    verdicts: Mapping[str, Mapping[str, str]], request: pytest.FixtureRequest
) -> None:
    results = by_row(verdicts)
    if request.config.getoption("--update-golden"):
        JUDGED.write_text(json.dumps(results, indent=1) + "\n")

    assert results == json.loads(JUDGED.read_text())


def test_the_server_refuses_none_of_the_valid_twins(verdicts: Mapping[str, Mapping[str, str]]) -> None:
    not_asked = {row for row, message in by_row(verdicts).items() if message.startswith(NOT_ASKED)}

    assert {
        row: message
        for row, message in verdicts["valid"].items()
        if message != ONLY_WE and row not in not_asked
    } == {}


def test_what_only_we_catch_is_what_the_documentation_lists() -> None:
    held = json.loads(JUDGED.read_text())

    assert sorted(held) == ROWS
    assert table(row for row, output in held.items() if output == ONLY_WE) in POLICY.read_text()


def table(rows: Iterable[str]) -> str:
    groups: dict[str, list[str]] = defaultdict(list)
    for row in sorted(rows):
        family, _, rest = row.partition("-")
        groups[family].append(rest)
    return "\n".join(f"| {family} | {', '.join(rest)} |" for family, rest in sorted(groups.items()))
