"""The sidecar of a pod with several trials, with the real program of packs: what it saves and restores of each."""

import hashlib
import json
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from sweepledger.bucket import layout, transfer
from sweepledger.bucket.layout import ObjectKind
from sweepledger.bucket.pack_sidecar import PackSidecar
from sweepledger.bucket.trial_sidecar import SidecarOptions, Stop
from sweepledger.formats import pack_digest
from tests.bucket.pods import BATCH, Pod
from tests.launcher.folders import REPORT, Run, ended, shell
from tests.launcher.test_packs import kill_tree

ROWS = 4
MakePack = Callable[..., "PackedPod"]


@dataclass
class PackedPod(Pod):
    """A pod that runs four rows, two at the same time."""

    failures: int = 0

    def environment(self) -> dict[str, str]:
        return super().environment() | {"SWEEP_STORE_PACK": str(ROWS), "SWEEP_STORE_TRIALS": str(ROWS)}

    def begin(self) -> subprocess.Popen[bytes]:
        folder = self.folder
        folder.rows = [f"t0000000000{number},{number}" for number in range(ROWS)]
        folder.changes = {"pack": {"at_once": 2, "rows": ROWS, "attempts": 2}} | self.changes
        given = {"SWEEP_INDEX": "", "JOB_COMPLETION_INDEX": "0", "SWEEP_FAILURES": str(self.failures)}
        return folder.start_copied(**given)

    def launch(self) -> Run:
        return ended(self.begin())

    def statuses(self) -> dict[int, list[tuple[str, str]]]:
        """Say which attempts the bucket has, by row."""
        stored, found = self.stored(), dict[int, list[tuple[str, str]]]()
        for row in range(ROWS):
            records = [json.loads(content or b"{}") for content in stored.records(BATCH, row)]
            found[row] = [(record["uid"], record["status"]) for record in records]
        return found


@pytest.fixture
def packed(place: tuple[str, Path | None], tmp_path: Path) -> object:
    """Make pods of the same rows, one after the other."""
    made: list[PackedPod] = []

    def pod(**changes: object) -> PackedPod:
        uid = f"pod-{len(made)}"
        made.append(PackedPod(tmp_path / uid, *place, uid=uid, **changes))  # type: ignore[arg-type]
        return made[-1]

    yield pod
    for each in made:
        if each.sidecar is not None and each.sidecar.poll() is None:
            each.sidecar.send_signal(signal.SIGKILL)
            each.sidecar.wait()


def test_each_row_leaves_its_record_and_files_and_the_message_vouches_for_all(packed: MakePack) -> None:
    script = f'echo "row $JOB_ID"; printf $JOB_ID > "$SWEEP_ARTIFACTS/model"; {REPORT}'
    made = packed(command=shell(script))

    assert made.run().code == 0

    assert made.statuses() == {row: [(f"pod-0-{row}", "ok")] for row in range(ROWS)}
    stored = made.stored()
    for row in range(ROWS):
        assert stored.output(BATCH, row) == {f"pod-0-{row}": (f"row {row + 1}\n", "")}
        with stored.opened(BATCH, row, f"artifacts/pod-0-{row}/model", uid=f"pod-0-{row}") as source:
            assert source.read() == str(row + 1).encode()
    digests = {
        row: hashlib.sha256((made.results / f"{row}/pod-0-{row}.json").read_bytes()).hexdigest()
        for row in range(ROWS)
    }
    assert made.message == {"complete": True, "packs": {"pod-0": pack_digest.vouch(digests)}, "store": 1}
    assert json.loads(made.launchers_message)["rows"] == {str(row): digests[row] for row in range(ROWS)}
    assert not list(made.results.glob("*/artifacts")), "what is saved makes room for other trials"
    (journal,) = _journals(made)
    assert [json.loads(line)[0] for line in journal.splitlines()] == ["begun"] * ROWS


def test_the_next_pod_runs_only_what_has_no_final_record(packed: MakePack) -> None:
    script = f"if [ $JOB_ID = 2 ]; then exit 7; else {REPORT}; fi"
    first = packed(command=shell(script))
    assert first.run().code == 7
    second = packed(command=shell(f'echo $JOB_ID >> "$HERE/starts"; {REPORT}'), failures=1)

    assert second.run().code == 0

    assert (second.root / "starts").read_text().split() == ["2"]
    assert second.statuses()[1] == [("pod-0-1", "failed"), ("pod-1-1", "ok")]
    assert second.message["packs"].keys() == {"pod-0", "pod-1"}, "it confirms what the first has written, too"


def test_the_next_pod_knows_which_rows_were_running_when_the_node_was_lost(packed: MakePack) -> None:
    first = packed(command=shell("sleep 600")).start()
    program = first.begin()
    try:
        first.until(lambda: _journals(first)[0].count(b'"begun"') == 2)
        first.kill()
    finally:
        kill_tree(program.pid)
        program.communicate()
    second = packed(command=shell(f'echo $JOB_ID >> "$HERE/starts"; {REPORT}'), failures=1)

    assert second.run().code == 0

    starts = (second.root / "starts").read_text().split()
    assert (sorted(starts[:2]), starts[2:]) == (["3", "4"], ["1", "2"]), "what had begun comes last, alone"


def test_a_row_continues_from_its_checkpoint_in_another_pod(packed: MakePack) -> None:
    save = 'mkdir -p "$SWEEP_CHECKPOINTS" && echo "by $SWEEP_POD_UID" >> "$SWEEP_CHECKPOINTS/state"'
    first = packed(command=shell(f"{save}; exit 3"))
    assert first.run().code == 3
    second = packed(command=shell(f'{save}; cat "$SWEEP_CHECKPOINTS/state"; {REPORT}'), failures=1)

    assert second.run().code == 0

    for row in range(ROWS):
        (out, _) = second.stored().output(BATCH, row)[f"pod-1-{row}"]
        assert out == f"by pod-0-{row}\nby pod-1-{row}\n"
        assert transfer.numbered(second.bucket(), BATCH, row, None) == []


def test_a_sidecar_that_is_started_again_goes_on(packed: MakePack) -> None:
    made = packed(command=shell(f'while [ ! -e "$HERE/go" ]; do sleep 0.02; done; {REPORT}')).start()
    program = made.begin()
    try:
        made.kill()
        (made.root / "go").touch()
        made.start()
        run = ended(program)
    finally:
        program.kill()
    made.stop()

    assert run.code == 0
    assert made.statuses() == {row: [(f"pod-0-{row}", "ok")] for row in range(ROWS)}
    assert made.message["complete"] is True


def test_checkpoints_of_rows_that_run_are_saved_while_others_end(packed: MakePack) -> None:
    save = 'mkdir -p "$SWEEP_CHECKPOINTS" && echo one > "$SWEEP_CHECKPOINTS/state"'
    script = f"if [ $JOB_ID = 1 ]; then {save}; sleep 600; else {REPORT}; fi"
    made = packed(command=shell(script), variables={"SWEEP_STORE_INTERVAL": "0.05"}).start()
    program = made.begin()
    try:
        made.until(lambda: transfer.numbered(made.bucket(), BATCH, 0, None))
        made.until(lambda: all(made.statuses()[row] for row in range(1, ROWS)))
        assert made.statuses()[0] == []
    finally:
        kill_tree(program.pid)
        program.communicate()


def test_a_message_has_room_for_the_own_pod_and_the_largest_of_many_others(tmp_path: Path) -> None:
    (tmp_path / "log").touch()
    options = SidecarOptions(
        f"file://{tmp_path}", BATCH, 0, "own", str(tmp_path), str(tmp_path), log=str(tmp_path / "log")
    )
    sidecar = PackSidecar(replace(options, rows=range(1000)), Stop(), print)
    sidecar.seen["own"] = dict.fromkeys(range(0, 900, 2), "ab" * 32)
    for pod in range(60):
        sidecar.seen[f"{pod:036}"] = dict.fromkeys(range(pod + 1), "ab" * 32)

    sidecar.write_message()

    content = (tmp_path / "log").read_bytes()
    packs = json.loads(content)["packs"]
    assert len(content) < 4096
    assert "own" in packs
    assert f"{59:036}" in packs
    assert f"{0:036}" not in packs


def _journals(pod: PackedPod) -> list[bytes]:
    bucket = pod.bucket()
    keys = [found.key for found in bucket.list(layout.prefix(BATCH, ObjectKind.PACK, 0))]
    return [bucket.get(key) or b"" for key in keys]
