"""`sweep site --serve`: the branch is followed, and trials are shown while they run."""

import json
import signal
import subprocess
import sys
import urllib.request
from itertools import takewhile
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from sweepledger.engine.cluster.kubectl import Kubectl
from sweepledger.engine.local.events import PodStarted
from sweepledger.repo.state import create_state
from sweepledger.verbs.site import SiteServer
from tests.builders import present
from tests.operations.clusters import MOMENT, Cluster
from tests.repository import SPEC, Sandbox

PROGRAM = """import argparse, json, os, time
parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float)
parser.add_argument("--bias", type=float)
x = parser.parse_args().x
with open(os.environ.get("SWEEP_RESULT", os.devnull), "w") as file:
    for step in (1, 2, 3):
        print(f"step={step} score={x * step}", flush=True)
        print(json.dumps({"step": step, "score": x * step}), file=file, flush=True)
    print("<b>waiting</b>", flush=True)
    time.sleep(600)
"""
METRIC = "metric: {name: score, goal: maximize}"
SOURCES = {"printed": "source: stdout", "in a file": "format: jsonl"}


def server(sandbox: Sandbox, tmp_path: Path, revision: str = "HEAD") -> SiteServer:
    state = create_state(sandbox.workspace.repository)
    return SiteServer(sandbox.workspace, tmp_path / "out", revision, state=state)


def page(server: SiteServer, path: str) -> str:
    found = server.answer(path)
    assert found is not None, path
    return found.decode()


def running(server: SiteServer) -> Any:
    return json.loads(page(server, "/running.json"))


def test_the_site_is_built_again_when_the_branch_moves(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.merged()
    served = server(sandbox, tmp_path)
    assert "Ask for more" not in page(served, "/")
    assert 'href="/running.html"' in page(served, "/index.html")
    assert "running.html" not in (tmp_path / "out/index.html").read_text()
    assert not (tmp_path / "out/running.html").exists()

    sandbox.spec("other", "4, 5")
    commit = sandbox.commit("Ask for more")

    assert "Ask for more" in page(served, "/")
    assert "other" in page(served, "/sweeps/other/index.html")
    assert running(served)["commit"] == commit
    (tmp_path / "x").write_text("secret")
    for path in ("/site.json", "/../x", "/sweeps/none/index.html", "/sweeps/../site.json"):
        assert served.answer(path) is None, "only pages are served"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_curves_of_running_trials_are_shown(sandbox: Sandbox, tmp_path: Path, source: str) -> None:
    sandbox.name_person()
    sandbox.write("code/train.py", PROGRAM)
    spec = SPEC.format(name="peak", xs="1, 2, 3", parallelism=2)
    sandbox.write("sweeps/peak.yaml", spec.replace(METRIC, METRIC.replace("}", f", {source}}}")))
    sandbox.commit("Take long")
    served = server(sandbox, tmp_path)
    events = sandbox.run("peak")
    list(takewhile(lambda event: not isinstance(event, PodStarted), events))

    def has_printed_all(batch: Any) -> bool:
        ends = [trial["output"].endswith("<b>waiting</b>\n") for trial in batch["trials"]]
        return ends == [True, True] and all(trial["steps"] == [1, 2, 3] for trial in batch["trials"])

    give_up = monotonic() + 120
    while not has_printed_all(batch := running(served)["batches"][0]) and monotonic() < give_up:
        sleep(0.1)
    committed = sandbox.git("status", "--porcelain")
    events.close()

    assert batch["counts"] == {"running": 2, "pending": 1}
    assert sorted(trial["values"] for trial in batch["trials"]) == [[1, 2, 3], [2, 4, 6]]
    assert has_printed_all(batch)
    assert committed == ""
    assert running(served)["batches"][0]["counts"] == {"interrupted": 2, "pending": 1}


def test_the_command_serves_until_it_is_interrupted(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.merged()
    argv = [sys.executable, "-m", "sweepledger.cli", "site", "--serve", "--port", "0"]
    argv += ["--out", str(tmp_path / "out")]

    with subprocess.Popen(argv, cwd=sandbox.root, stderr=subprocess.PIPE, text=True) as process:
        said = present(process.stderr).readline()
        with urllib.request.urlopen(f"{said.split()[0]}running.json", timeout=120) as got:  # noqa: S310 - here
            data = json.load(got)
        process.send_signal(signal.SIGINT)

    assert said.startswith("http://127.0.0.1:")
    assert said.endswith(" shows HEAD until Ctrl-C\n")
    assert [batch["sweep"] for batch in data["batches"]] == ["peak"]
    assert process.returncode == 0


def test_states_are_those_of_the_pods(sandbox: Sandbox, cluster: Cluster, tmp_path: Path) -> None:
    batch = sandbox.merged()
    state = create_state(sandbox.workspace.repository)
    served = SiteServer(sandbox.workspace, tmp_path / "out", "HEAD", state=state, kubectl=Kubectl())
    cluster.job(batch, trials=3)
    pending = running(served)["batches"]
    cluster.attempt(batch, 1, "first")
    cluster.stands("first", "Running")
    started = running(served)["batches"]
    cluster.ended("first", 0)
    cluster.say("jobs", batch, {"completedIndexes": "0-2", "succeeded": 3, "startTime": MOMENT})
    ended = running(served)["batches"]

    assert [one["counts"] for one in (*pending, *started, *ended)] == [
        {"pending": 3},
        {"pending": 2, "running": 1},
        {"ended": 3},
    ]
    (shown,) = started[0]["trials"]
    assert (shown["state"], shown["steps"]) == ("running", [])
