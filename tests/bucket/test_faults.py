"""A real S3 server that fails: nothing is lost, nothing half is visible, and what is doubtful is said."""

import hashlib
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sweepledger.bucket import transfer
from sweepledger.bucket.layout import ObjectKind
from tests.bucket import servers
from tests.bucket.pods import BATCH, Pod
from tests.bucket.proxies import KeepingProxy
from tests.bucket.servers import NoServerError, StorageServer
from tests.launcher.folders import REPORT, shell

pytestmark = pytest.mark.full_suite("object storage")
MakePod = Callable[..., Pod]
LARGE = 64 << 20


def keeping(pod: Pod, content: bytes, name: str = "checkpoints/state") -> None:
    path = pod.results / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def chunks(pod: Pod) -> set[str]:
    return {found.key.rpartition("/")[2] for found in pod.bucket().list(f"{BATCH}/chunks/")}


def test_an_upload_that_was_killed_continues_where_it_was(s3_pod: MakePod) -> None:
    content = os.urandom(LARGE)
    made = s3_pod(variables={"SWEEP_STORE_INTERVAL": "0.05"}).start()
    keeping(made, content)
    made.until(lambda: len(chunks(made)) >= 2)
    made.kill()
    before = chunks(made)
    assert 2 <= len(before) < LARGE // (8 << 20), "it was killed within the upload"
    assert transfer.numbered(made.bucket(), BATCH, 0, None) == [], "no list names half a file"
    uploader = transfer.Uploader(made.bucket(), BATCH, 0, "uid-1")

    uploader.save_files(ObjectKind.CHECKPOINT, str(made.results / "checkpoints"), ["state"], 1)

    # The server may still finish a request of the killed process after it was asked for its objects.
    assert 0 < uploader.sent_bytes <= LARGE - len(before) * (8 << 20)
    again = s3_pod(uid="uid-2").start()
    assert (again.results / "checkpoints/state").read_bytes() == content


def test_two_attempts_at_once_leave_two_records_and_whole_checkpoints(s3_pod: MakePod) -> None:
    two = [s3_pod(uid=f"uid-{number}", command=shell("exit 3")) for number in (1, 2)]
    for number, pod in enumerate(two):
        pod.start()
        keeping(pod, f"of {number}".encode() * 1000)
        keeping(pod, b"equal" * 1000, "checkpoints/shared")
    for pod in two:
        assert pod.launch().code == 3
    for pod in two:
        pod.stop()

    contents = list(two[0].stored().records(BATCH, 0))

    assert sorted(contents, key=str) == sorted(
        ((p.results / f"{p.uid}.json").read_bytes() for p in two), key=str
    )
    again = s3_pod(uid="uid-3").start()
    assert (again.results / "checkpoints/shared").read_bytes() == b"equal" * 1000
    assert (again.results / "checkpoints/state").read_bytes() in {b"of 0" * 1000, b"of 1" * 1000}


def test_credentials_that_expire_are_read_again(s3_pod: MakePod, s3: StorageServer) -> None:
    made = s3_pod(variables={"SWEEP_STORE_GRACE": "40"}).start()
    (s3.secrets / "AWS_SECRET_ACCESS_KEY").write_text("expired")
    assert s3_pod(uid="uid-2").start(waits=False).sidecar
    made.kill()
    made.start()
    assert made.launch().code == 0
    made.until(lambda: "record: " in made.said)
    assert "403 Forbidden" in made.said
    assert made.message["records"] == {}

    (s3.secrets / "AWS_SECRET_ACCESS_KEY").write_text(servers.KEY)

    made.until(lambda: made.message["complete"])
    assert made.record()["status"] == "ok"


def test_a_server_that_is_down_is_waited_for(s3_pod: MakePod, s3: StorageServer) -> None:
    made = s3_pod().start()
    s3.stop()
    assert made.launch().code == 0
    made.until(lambda: "record: " in made.said)
    late = s3_pod(index=1, uid="uid-2").start(waits=False)
    late.until(lambda: "restore: " in late.said)
    assert not (late.state / "ready").exists(), "no trial starts without knowing what there is"

    s3.start()

    made.until(lambda: made.message["complete"])
    assert made.record()["status"] == "ok"
    assert late.ready().launch().code == 0


def test_a_bucket_that_stays_away_leaves_the_message(s3_pod: MakePod, s3: StorageServer) -> None:
    made = s3_pod(variables={"SWEEP_STORE_GRACE": "2"}).start()
    s3.stop()
    assert made.launch().code == 0

    assert made.stop() == 0

    assert made.message == {"complete": False, "records": {}, "store": 1}
    assert made.launchers_message.encode() == (made.results / "uid-1.json").read_bytes()
    assert "is not saved: no time is left" in made.said


@pytest.fixture
def full(tmp_path: Path) -> Iterator[StorageServer]:
    """An S3 server on a disk of 24 MiB."""
    if os.geteuid() != 0:
        pytest.skip("skipped: a disk that is full needs root")
    (tmp_path / "server").mkdir()
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "none", str(disk)], check=True)
    try:
        with servers.running("s3", tmp_path / "server", data=disk) as server:
            yield server
    except NoServerError as error:
        pytest.skip(f"skipped: {error}")
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_full_bucket_costs_files_but_no_record(pods: Callable[..., MakePod], full: StorageServer) -> None:
    script = f'head -c {LARGE} /dev/urandom > "$SWEEP_ARTIFACTS/model"; {REPORT}'
    made = pods(full.url, full.secrets)(command=shell(script), variables={"SWEEP_STORE_GRACE": "5"}).start()
    assert made.launch().code == 0
    made.until(lambda: "files: " in made.said)

    made.stop()

    assert made.record()["status"] == "ok", "the record is saved first"
    assert made.message["complete"] is False
    assert made.stored().files(BATCH, 0, "uid-1") == {}, "no list names half a file"


@pytest.fixture
def kept(s3: StorageServer) -> Iterator[KeepingProxy]:
    """The S3 server behind a port at which nothing can be deleted or replaced, as in a locked bucket."""
    proxy = KeepingProxy(servers.free_port(), s3.port)
    (s3.secrets / "AWS_ENDPOINT_URL").write_text(f"http://127.0.0.1:{proxy.server_port}")
    yield proxy
    proxy.end()


def test_a_bucket_that_deletes_nothing_keeps_all_it_needs(s3_pod: MakePod, kept: KeepingProxy) -> None:
    save = 'mkdir -p "$SWEEP_CHECKPOINTS"; echo "$SWEEP_POD_UID" >> "$SWEEP_CHECKPOINTS/state"'
    for number in (1, 2):
        assert s3_pod(uid=f"uid-{number}", command=shell(f"{save}; exit 3")).run().code == 3
    last = s3_pod(uid="uid-3", command=shell(f'{save}; cat "$SWEEP_CHECKPOINTS/state"; {REPORT}'))

    run = last.run()

    assert (run.code, run.out.decode()) == (0, "uid-1\nuid-2\nuid-3\n")
    assert last.message["complete"]
    assert len(list(last.stored().records(BATCH, 0))) == 3
    assert "checkpoints stay: " in last.said
    assert {*kept.refused} == {"DELETE"}, "nothing is written over what is there"


def test_a_sidecar_started_again_completes_though_none_replace(s3_pod: MakePod, kept: KeepingProxy) -> None:
    made = s3_pod(command=shell(f'echo same > "$SWEEP_ARTIFACTS/file"; {REPORT}')).start()
    assert made.launch().code == 0
    made.until(lambda: made.message["complete"])
    made.kill()
    made.log.write_text("")

    made.start()

    made.until(lambda: made.message.get("complete"))
    assert made.record()["status"] == "ok"
    assert any(" /results/sweeps/" in request for request in kept.refused), "it tried to write them again"


def test_the_newest_of_several_checkpoints_is_kept(s3_pod: MakePod, s3: StorageServer) -> None:
    made = s3_pod(variables={"SWEEP_STORE_INTERVAL": "0.05"}).start()
    for number in range(1, 4):
        keeping(made, b"x" * number)
        made.until(
            lambda number=number: (
                [name.number for name in transfer.numbered(made.bucket(), BATCH, 0, None)][:1] == [number]
            )
        )
    made.stop()
    assert made.sidecar is not None
    assert made.sidecar.returncode == 0
    newest = hashlib.sha256(b"xxx").hexdigest()
    assert newest in chunks(made)
