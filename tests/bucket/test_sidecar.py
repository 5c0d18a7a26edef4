"""The sidecar with the real launcher, on each kind of bucket: what is saved, restored, bounded and never followed."""

import hashlib
import json
import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from sweepledger.bucket import layout, transfer
from sweepledger.bucket.layout import ObjectKind
from sweepledger.bucket.objects import Bucket
from sweepledger.formats.json import RejectedInput
from tests.bucket.pods import BATCH, PATIENCE, Pod
from tests.launcher.folders import REPORT, shell

MakePod = Callable[..., Pod]
SAVING = 'mkdir -p "$SWEEP_CHECKPOINTS/deep" && echo "step $SWEEP_POD_UID" >> "$SWEEP_CHECKPOINTS/deep/state"'


def checkpoints(pod: Pod) -> list[layout.ObjectName]:
    return transfer.numbered(pod.bucket(), BATCH, pod.index, pod.key)


def test_a_record_and_all_files_of_its_attempt_come_to_the_bucket_and_the_trial_does_no_work_again(
    pod: MakePod,
) -> None:
    script = f'echo out; echo err >&2; mkdir "$SWEEP_ARTIFACTS/a" && printf x > "$SWEEP_ARTIFACTS/a/model"; {REPORT}'
    made = pod(command=shell(script))
    second = pod(uid="uid-2", command=shell("touch ran; exit 1"))

    assert made.run().code == 0
    again = second.run()

    content = (made.results / "uid-1.json").read_bytes()
    assert list(made.stored().records(BATCH, 0)) == [content]
    assert made.message == {
        "complete": True,
        "records": {"uid-1": hashlib.sha256(content).hexdigest()},
        "store": 1,
    }
    assert made.stored().output(BATCH, 0) == {"uid-1": ("out\n", "err\n")}
    (artifact,) = made.record()["artifacts"]
    with made.stored().opened(BATCH, 0, f"artifacts/uid-1/{artifact['path']}", uid="uid-1") as source:
        assert hashlib.sha256(source.read()).hexdigest() == artifact["sha256"]
    assert (again.code, again.said) == (0, ["t00000000000: ok already, by attempt uid-1: nothing to do"])
    assert not (second.root / "ran").exists()
    assert second.message["records"] == made.message["records"], "it confirms what the first has written"


def test_the_next_attempt_continues_from_the_checkpoint_of_a_failed_one(pod: MakePod) -> None:
    first = pod(command=shell(f"{SAVING}; exit 3"))
    assert first.run().code == 3
    assert [name.number for name in checkpoints(first)] == [1]
    second = pod(uid="uid-2", command=shell(f'{SAVING}; cat "$SWEEP_CHECKPOINTS/deep/state"; {REPORT}'))

    run = second.run()

    assert (run.code, run.out.decode()) == (0, "step uid-1\nstep uid-2\n")
    assert checkpoints(second) == [], (
        "the launcher deletes checkpoints of a trial that is ok, and so does the sidecar"
    )
    names = {found.key for found in second.bucket().list(f"{BATCH}/chunks/")}
    kept = {
        chunk
        for uid in ("uid-1", "uid-2")
        for f in second.stored().files(BATCH, 0, uid).values()
        for chunk in f.chunks
    }
    assert {name.rpartition("/")[2] for name in names} == kept, "what nothing names is deleted"


def test_a_child_gets_the_checkpoints_of_its_parent(pod: MakePod) -> None:
    first = pod(command=shell(f"{SAVING}; {REPORT}"), changes={"keep_checkpoints": True})
    first.variables = {"SWEEP_STORE_KEEP_CHECKPOINTS": "true"}
    assert first.run().code == 0
    child = pod(index=1, uid="uid-2", command=shell(f'cat "$SWEEP_PARENT/deep/state"; {REPORT}'))
    child.variables = {"SWEEP_PARENT_FOLDER": f"{BATCH}/0"}

    assert child.run().out == b"step uid-1\n"


def test_a_child_without_the_checkpoints_of_its_parent_waits(plain_pod: MakePod) -> None:
    child = plain_pod(index=1)
    child.variables = {"SWEEP_PARENT_FOLDER": f"{BATCH}/0"}

    child.start(waits=False)

    child.until(lambda: f"there is no checkpoint of row 0 of {BATCH}" in child.said)
    assert not (child.state / "ready").exists()


def test_checkpoints_are_saved_while_the_program_runs_and_a_damaged_one_is_passed_over(pod: MakePod) -> None:
    made = pod(variables={"SWEEP_STORE_INTERVAL": "0.05"}).start()
    (made.results / "checkpoints").mkdir()
    for text, kept in (("one", [1]), ("two!", [2, 1]), ("three", [3, 2])):
        (made.results / "checkpoints/state").write_text(text)
        made.until(lambda kept=kept: [name.number for name in checkpoints(made)] == kept)
    made.kill()

    again = pod(uid="uid-2").start()
    assert (again.results / "checkpoints/state").read_text() == "three"
    again.kill()

    newest = layout.chunk_key(BATCH, 0, hashlib.sha256(b"three").hexdigest())
    made.bucket().put(newest, b"none")
    last = pod(uid="uid-3").start()
    assert (last.results / "checkpoints/state").read_text() == "two!"
    assert "has other content" in last.said


def test_links_devices_and_what_exceeds_the_bytes_of_a_trial_are_left_out_and_counted(
    plain_pod: MakePod,
) -> None:
    script = (
        'ln -s /etc/passwd "$SWEEP_ARTIFACTS/link"; mkfifo "$SWEEP_ARTIFACTS/pipe"; ln -s / "$SWEEP_ARTIFACTS/root"; '
        f'printf x > "$SWEEP_ARTIFACTS/good"; head -c 3000 /dev/zero > "$SWEEP_ARTIFACTS/large"; '
        f'mkdir -p "$SWEEP_CHECKPOINTS"; ln -s /etc "$SWEEP_CHECKPOINTS/etc"; {REPORT}'
    )
    made = plain_pod(command=shell(script), variables={"SWEEP_STORE_MOST_BYTES": "2000"})

    made.run()

    names = [name for name in made.stored().files(BATCH, 0, "uid-1") if not name.startswith("environments/")]
    assert names == ["artifacts/uid-1/good", "uid-1.out"]
    assert made.message["left_out"] >= 4


def test_a_trial_with_more_folders_than_a_process_may_open_loses_no_file(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"artifacts/{number}").mkdir(parents=True)
        (tmp_path / f"artifacts/{number}/file").touch()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))
    try:
        found = transfer.find_files(str(tmp_path), "artifacts")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert (len(found.files), found.left_out) == (300, 0)


def test_a_file_that_changes_while_it_is_read_is_not_kept(tmp_path: Path) -> None:
    bucket = Bucket(f"file://{tmp_path / 'bucket'}")
    root = tmp_path / "root"
    root.mkdir()
    (root / "file").write_bytes(b"a" * 100)

    uploader = transfer.Uploader(bucket, BATCH, 0, "uid-1")

    def grow() -> bool:
        with (root / "file").open("ab") as file:
            file.write(b"b")
        return False

    uploader.is_interrupted = grow

    with pytest.raises(transfer.FileChangedError):
        uploader.save_files(ObjectKind.FILES, str(root), ["file"])

    assert list(bucket.list(f"{BATCH}/files/")) == []


def test_a_sidecar_that_is_restarted_restores_nothing_over_a_running_trial(plain_pod: MakePod) -> None:
    first = plain_pod(command=shell(f"{SAVING}; exit 3"))
    first.run()
    made = plain_pod(uid="uid-2").start()
    (made.results / "checkpoints/deep/state").write_text("newer")
    made.kill()
    os.truncate(made.log, 0)

    made.start().until(lambda: made.message)
    made.stop()

    assert (made.results / "checkpoints/deep/state").read_text() == "newer"
    again = plain_pod(uid="uid-3").start()
    assert (again.results / "checkpoints/deep/state").read_text() == "newer"


def test_lists_of_files_with_unsafe_paths_are_refused() -> None:
    digest = "0" * 64
    rows = [
        *("/a", "../a", "a/../b", "a//b", "a/", ".", "", "a\0b", "x" * 501, "/".join("a" * 40)),
        *(["a"], None, 3),
    ]
    for path in rows:
        content = json.dumps({"version": 1, "files": [{"path": path, "bytes": 0, "sha256": digest}]})
        with pytest.raises(RejectedInput):
            layout.parse_list(content.encode())
    for paths in (["a", "a"], ["a", "a/b"]):
        files = [{"path": path, "bytes": 0, "sha256": digest} for path in paths]
        with pytest.raises(RejectedInput):
            layout.parse_list(json.dumps({"version": 1, "files": files}).encode())


def test_of_a_distributed_trial_all_restore_and_only_rank_0_saves(plain_pod: MakePod) -> None:
    first = plain_pod(command=shell(f"{SAVING}; exit 3"))
    assert first.run().code == 3

    other = plain_pod(uid="uid-2", variables={"SWEEP_RANK": "1"}).start()
    (other.results / "checkpoints/deep/state").write_text("of rank 1")
    other.stop()

    assert other.message["complete"] is True
    assert [name.uid for name in checkpoints(first)] == ["uid-1"]
    again = plain_pod(uid="uid-3").start()
    assert (again.results / "checkpoints/deep/state").read_text() == "step uid-1\n"


AWAY = {
    "SWEEP_STORE_URL": "s3://results/sweeps",
    "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
    "AWS_ALLOW_HTTP": "true",
    "AWS_ACCESS_KEY_ID": "the-test",
    "AWS_SECRET_ACCESS_KEY": "a-key",
    "SWEEP_STORE_PATIENCE": "0.1",
}


@pytest.mark.parametrize(
    ("variables", "words"),
    [(AWAY, "the bucket is still away"), ({"SWEEP_STORE_URL": "ftp://there"}, "ftp://there")],
    ids=["away", "no address"],
)
def test_a_bucket_that_stays_away_ends_the_sidecar_before_the_launcher_starts(
    plain_pod: MakePod, variables: dict[str, str], words: str
) -> None:
    made = plain_pod(variables=variables).start(waits=False)
    assert made.sidecar is not None

    assert made.sidecar.wait(PATIENCE) == 3

    assert words in made.said
    assert not (made.state / "ready").exists()


def test_sigterm_saves_what_the_program_has_left(plain_pod: MakePod) -> None:
    made = plain_pod().start()
    (made.results / "checkpoints").mkdir()
    (made.results / "checkpoints/state").write_bytes(os.urandom(20 << 20))
    assert made.sidecar is not None

    made.sidecar.send_signal(signal.SIGTERM)
    assert made.sidecar.wait(PATIENCE) == 0

    again = plain_pod(uid="uid-2").start()
    assert (again.results / "checkpoints/state").read_bytes() == (
        made.results / "checkpoints/state"
    ).read_bytes()
