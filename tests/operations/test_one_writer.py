"""The collector's Lease: one at a time, and none that takes a rewritten branch for what it was."""

import json
import shlex
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from sweepledger.engine.cluster.collector_state import LAST_COMMIT, LEASE_SECONDS, Lease
from sweepledger.engine.cluster.kubectl import Kubectl
from sweepledger.errors import RepositoryError
from sweepledger.operations.collection.collector import collect_from_cluster, collector_lease
from sweepledger.operations.collection.record_store import on_volume
from sweepledger.repo.git import Repository, remote_contains
from tests.builders import present
from tests.cluster.apiserver import Server, kubectl
from tests.repository import Sandbox

NAMESPACE = "sweeps-collector"
SERVER = '''"""Keeps one Lease as an API server does: a version that is not the newest is refused."""
import json, pathlib, sys
path = pathlib.Path(sys.argv[1])
if not path.exists():
    sys.exit('Error from server (NotFound): leases.coordination.k8s.io "sweep-collector" not found')
held = json.loads(path.read_text())
if "replace" in sys.argv:
    update = json.load(sys.stdin)
    if update["metadata"]["resourceVersion"] != held["metadata"]["resourceVersion"]:
        sys.exit("Error from server (Conflict): the object has been modified")
    held = update
    held["metadata"]["resourceVersion"] = str(int(held["metadata"]["resourceVersion"]) + 1)
    path.write_text(json.dumps(held))
print(json.dumps(held))
'''


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Lease in a file, and a kubectl that knows of nothing else."""
    program, path = tmp_path / "server.py", tmp_path / "lease.json"
    program.write_text(SERVER)
    metadata = {"name": "sweep-collector", "namespace": NAMESPACE, "resourceVersion": "1"}
    path.write_text(
        json.dumps({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata})
    )
    monkeypatch.setenv("KUBECTL", shlex.join([sys.executable, str(program), str(path)]))
    return path


def lease(holder: str = "one") -> Lease:
    return Lease(Kubectl(), NAMESPACE, holder)


def read(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def remembered(path: Path) -> str | None:
    notes = read(path)["metadata"].get("annotations") or {}
    message: str | None = notes.get(LAST_COMMIT)
    return message


def test_it_is_taken_given_back_and_remembers_a_commit(kept: Path) -> None:
    first = lease()

    assert first.acquire() is None
    assert read(kept)["spec"]["holderIdentity"] == "one"
    first.release("a" * 40)

    assert read(kept)["spec"] == {}
    second = lease("two")
    assert second.acquire(pause=lambda _: pytest.fail("waited")) is None
    assert second.last_commit == "a" * 40


def test_one_that_was_killed_is_waited_for_as_long_as_it_holds_the_lease(kept: Path) -> None:
    now = [1_800_000_000.0]
    assert lease().acquire(clock=lambda: now[0]) is None

    def pause(seconds: float) -> None:
        now[0] += seconds

    second = lease("two")

    assert second.acquire(clock=lambda: now[0], pause=pause) is None
    assert now[0] - 1_800_000_000 == LEASE_SECONDS
    assert read(kept)["spec"]["holderIdentity"] == "two"


def test_who_took_it_meanwhile_keeps_it(kept: Path) -> None:
    first, second = lease(), lease("two")
    first.acquire(clock=lambda: 1_800_000_000.0)
    second.acquire(clock=lambda: 1_800_000_000.0 + LEASE_SECONDS)

    first.release("a" * 40)

    assert read(kept)["spec"]["holderIdentity"] == "two"
    assert remembered(kept) is None


def test_without_it_the_work_goes_on_and_it_is_said(sandbox: Sandbox, kept: Path) -> None:
    kept.unlink()

    with collector_lease(Kubectl(), "sweeps", sandbox.target()) as remarks:
        pass

    assert remarks == ("without its Lease, as the Lease sweeps-collector/sweep-collector does not exist",)


def test_a_branch_that_was_cut_is_refused(sandbox: Sandbox, kept: Path) -> None:
    def once() -> str | None:
        with collector_lease(Kubectl(), "sweeps", sandbox.target()):
            pass
        return remembered(kept)

    assert once() == sandbox.head()
    last = sandbox.commit("Move on", {"a": "1"})
    sandbox.push()
    assert once() == last
    sandbox.git("reset", "-q", "--hard", "HEAD~1")
    sandbox.git("push", "-q", "--force", "origin", "main")

    with pytest.raises(RepositoryError, match="does not follow") as caught:
        once()

    assert caught.value.exit_code == 3
    assert f"{LAST_COMMIT}-" in (caught.value.hint or "")
    assert remembered(kept) == last, "it is refused until somebody says otherwise"
    assert read(kept)["spec"] == {}
    changed = read(kept)
    changed["metadata"]["annotations"] = {}
    kept.write_text(json.dumps(changed))
    assert once() == sandbox.head()


def test_a_failure_gives_it_back(sandbox: Sandbox, kept: Path) -> None:
    with pytest.raises(ZeroDivisionError), collector_lease(Kubectl(), "sweeps", sandbox.target()):
        raise ZeroDivisionError

    assert read(kept)["spec"] == {}


def test_a_shallow_clone_fetches_what_it_lacks(sandbox: Sandbox, tmp_path: Path) -> None:
    before = sandbox.head()
    for number in range(120):  # more than the first step back
        sandbox.git("commit", "-q", "--allow-empty", "-m", f"{number}")
    sandbox.push()
    sandbox.git("clone", "-q", "--depth=1", f"file://{sandbox.remote}", str(tmp_path / "shallow"))
    shallow = Repository(tmp_path / "shallow")
    tip = sandbox.head()

    assert remote_contains(shallow, "origin", "main", tip, before)
    assert not remote_contains(shallow, "origin", "main", tip, "1" * 40)


def test_a_real_server_keeps_it_so(
    apiserver: Server, sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"lease-{uuid.uuid4().hex[:8]}"
    place = f"{name}-collector"
    for space in (name, place):
        apiserver.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}})
    metadata = {"name": "sweep-collector", "namespace": place}
    apiserver.apply({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata})
    monkeypatch.setenv("KUBECONFIG", str(apiserver.kubeconfig))
    monkeypatch.setenv("KUBECTL", shlex.quote(kubectl()))

    for _ in range(2):
        collection = collect_from_cluster(sandbox.target(), on_volume(tmp_path), Kubectl(), name)
        assert collection.remarks == ()

    held = Kubectl().get("leases.coordination.k8s.io", "sweep-collector", place)
    assert present(held)["metadata"]["annotations"][LAST_COMMIT] == sandbox.head()
    assert not present(held).get("spec")
