"""Which of the single faults the server refuses by itself, and which only we catch: held by judged.json.

`--update-golden` writes the verdicts anew, after a newer server; the diff is what changed its mind.
"""

import json
import re
from pathlib import Path

import pytest

from generator.formats import yaml
from tests.cluster.apiserver import Server
from tests.cluster.templates import pods

ROOT = Path(__file__).parents[2]
MANIFESTS = ROOT / "tests/policy/manifests"
FAULTS = sorted((MANIFESTS / "invalid").glob("fault-*.yaml"))
JUDGED = Path(__file__).parent / "judged.json"

NAMESPACE = re.compile(r"^ +namespace: *([a-z0-9-]+)", re.MULTILINE)
ACCEPTED = "only we"


@pytest.fixture(scope="module")
def strict(apiserver: Server) -> Server:
    """Every namespace that the files name, under Pod Security "restricted"."""
    texts = [path.read_text() for path in MANIFESTS.rglob("*.yaml")]
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    for name in sorted({found for text in texts for found in NAMESPACE.findall(text)}):
        metadata = {"name": name, "labels": labels}
        apiserver.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        for account in ("default", "sweep-trial"):
            named = {"name": account, "namespace": name}
            apiserver.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": named})
    return apiserver


def verdict(server: Server, path: Path) -> str:
    """Say who refuses a file: the server at once, the server when it sees the pod, or only we."""
    text = path.read_text().replace("ONE_MEBIBYTE", "x" * 1024 * 1024)
    arguments = ("create", "--dry-run=server", "--validate=strict", "-f", "-")
    if server.kubectl(*arguments, given=text, check=False).returncode:
        return "the server"
    made = [pod for manifest in yaml.load_all(text.encode()) for pod in pods(manifest)]
    return "the server, at the pod" if any(server.refuses(pod) for pod in made) else ACCEPTED


def test_what_the_server_catches_and_what_only_we_catch_is_listed(
    strict: Server, request: pytest.FixtureRequest
) -> None:
    found = {path.stem: verdict(strict, path) for path in FAULTS}
    if request.config.getoption("--update-golden"):
        JUDGED.write_text(json.dumps(found, indent=1) + "\n")

    assert len(found) == 28
    assert found == json.loads(JUDGED.read_text())


def test_every_fault_that_the_server_lets_pass_has_a_message_of_ours() -> None:
    judged = json.loads(JUDGED.read_text())
    passed = [name for name, who in judged.items() if who == ACCEPTED]

    assert passed
    assert all((MANIFESTS / "invalid" / f"{name}.txt").read_text().strip() for name in passed)


def test_the_server_refuses_none_of_the_valid_twins(strict: Server) -> None:
    twins = sorted((MANIFESTS / "valid").glob("fault-*.yaml"))

    assert {path.stem: verdict(strict, path) for path in twins} == {path.stem: ACCEPTED for path in twins}
