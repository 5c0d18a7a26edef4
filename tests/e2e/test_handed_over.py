"""A sweep is begun on a laptop, is interrupted there, and is finished by the cluster; no trial trains twice."""

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.cluster.children import until
from tests.e2e.controllers import Controller, until_in_sync
from tests.e2e.founding import Ground, signing_key
from tests.e2e.team import MINUTE, PERSON, Batch, Team

NAME = "handed"
LINES = "trainings"
PROGRAM = f'''"""A trial that leaves a line when it begins and when it ends. Of four, two end in a cluster only."""
import argparse, json, os, time
parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float)
args = parser.parse_args()
def leave(word):
    with open(os.path.join(os.environ["SWEEP_RESULTS"], "{LINES}"), "a") as file:
        file.write(word + " " + os.environ["SWEEP_TRIAL_ID"] + chr(10))
leave("began")
while args.x > 2 and not os.path.isdir("/code"):
    time.sleep(1)
with open(os.environ["SWEEP_RESULT"], "w") as file:
    json.dump({{"score": args.x}}, file)
leave("ended")
'''


@dataclass(frozen=True)
class Story:
    """A sweep of four trials: two are trained on the laptop, the others in the cluster."""

    laptop: Team
    begun: Batch
    """Began on the laptop, where half of it was finished."""
    rest: Batch
    """Requests the other half."""
    here: Path
    """The results on the laptop."""
    there: Path
    """The results on the volume of the cluster."""


@pytest.fixture(scope="module")
def story(team: Team, ground: Ground) -> Story:
    """Run it: begin, kill, hand over, push, wait for the cluster."""
    laptop = replace(team, root=team.root.parent / "laptop")
    _clone(team, laptop)
    laptop.write(f"code/{NAME}.py", PROGRAM)
    laptop.git("add", "--all")
    laptop.git("commit", "-q", "-m", "A trial that takes its time on a laptop")
    command = ("python3", f"code/{NAME}.py", "${args}")
    laptop.write_spec(NAME, parameters={"x": [1, 2, 3, 4]}, command=command, parallelism=4)
    here = laptop.root / ".sweepledger/results"
    with _running(laptop) as run:

        def is_halfway() -> bool:
            assert run.poll() is None, "it has ended"
            lines = _lines(here)
            return len(list(here.glob("*/*/*.json"))) == 2 and lines["began"].total() == 4

        until("two trials have records, and two train", is_halfway, seconds=5 * MINUTE)
        run.send_signal(signal.SIGKILL)
    begun = laptop.batch(NAME)
    laptop.sweep("run", NAME, "--hand-over")
    rest = laptop.batch(NAME)
    laptop.push()
    laptop.until_recorded(rest)
    return Story(laptop, begun, rest, here, ground.storage.results)


def _clone(team: Team, laptop: Team) -> None:
    """Clone the repository once more, with the credential of the same person."""
    url = team.git("remote", "get-url", "origin").strip()
    key = f"credential.{url.rpartition('/')[0]}/.helper"
    helper = team.git("config", "--get", key).strip()
    team.run(["git", "clone", "-q", "-c", f"{key}={helper}", url, str(laptop.root)])


@contextmanager
def _running(laptop: Team) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "sweepledger.cli", "run", NAME]
    log = laptop.root.with_name("laptop.log")
    with log.open("wb") as said:
        run = subprocess.Popen(command, cwd=laptop.root, env=laptop.environment(), stdout=said, stderr=said)
        try:
            yield run
        finally:
            run.kill()
            run.wait()
            laptop.transcript.append(f"$ {' '.join(command)}\n{log.read_text()}")


def _lines(results: Path) -> dict[str, Counter[str]]:
    """Count what trials have left below a folder of results: by word, then by trial."""
    found: dict[str, Counter[str]] = {"began": Counter(), "ended": Counter()}
    for path in results.glob(f"{NAME}-b*/*/{LINES}"):
        for word, _, trial in (line.partition(" ") for line in path.read_text().splitlines()):
            found[word][trial] += 1
    return found


def test_each_trial_trains_once_either_here_or_there(
    story: Story, controller: Controller
) -> None:
    rows = story.laptop.summary(NAME)
    here, there = _lines(story.here), _lines(story.there)

    assert [(row["status"], row["metrics.score"]) for row in rows] == [("ok", str(x)) for x in (1, 2, 3, 4)]
    assert here["ended"] + there["ended"] == Counter(row["trial"] for row in rows)
    assert there["began"] == there["ended"] == Counter(row["trial"] for row in rows[2:])
    assert not here["ended"] & there["began"]
    assert not story.laptop.jobs(story.begun), "the cluster was never asked for it"
    until_in_sync(controller, story.begun, story.rest)


def test_each_trial_has_one_record_which_says_where_it_ran_and_which_code(
    story: Story,
) -> None:
    laptop = story.laptop
    locked = laptop.git("rev-parse", "origin/main:code").strip()

    begun, rest = laptop.records(story.begun), laptop.records(story.rest)

    assert [record["ran"] for record in begun] == ["process"] * 2
    assert [record["ran"] for record in rest] == [laptop.image("trainer")] * 2
    assert {record["code"] for record in begun + rest} == {locked}
    assert sorted(record["trial"] for record in begun + rest) == sorted(
        row["trial"] for row in laptop.summary(NAME)
    )
    assert [len(laptop.results_commits(batch)) for batch in (story.begun, story.rest)] == [1, 1]


def test_everything_follows_from_the_records_and_their_signatures(
    story: Story, tmp_path: Path
) -> None:
    laptop = story.laptop
    signers = tmp_path / "signers"
    signers.write_text(f"sweepledger@localhost {signing_key(laptop).with_suffix('.pub').read_text()}")

    done = laptop.sweep("verify", NAME, "--signers", str(signers), "--format", "json", check=False)

    (verdict,) = json.loads(done.stdout)["data"]["sweeps"]
    authors = {
        one["commit"]: laptop.git("log", "-1", "--format=%an", one["commit"]).strip()
        for one in verdict["unsigned"]
    }
    assert (verdict["state"], verdict["differences"]) == ("unsigned", [])
    assert list(authors.values()) == [PERSON]
    assert verdict["signed"] == 1, "the collector's"
