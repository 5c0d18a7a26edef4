"""A kubectl that answers what no cluster should: the tests' own program is the hostile party."""

import io
import json
import shlex
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sweepledger.engine.cluster import helper_pods, kubectl, pods, workloads
from sweepledger.engine.cluster.kubectl import ClusterError, Kubectl
from sweepledger.structs.record import LARGEST_TRIAL_FILE
from sweepledger.structs.run_config import Shape
from tests.builders import a_lock

POD = helper_pods.reader_pod_manifest("team", "results", "a.example/b", None)
WANTED = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}

Fake = Callable[[str], Path]


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    """Put a shell script in kubectl's place."""

    def make(script: str) -> Path:
        path = tmp_path / "kubectl"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setenv("KUBECTL", str(path))
        return path

    return make


def script_printing(tmp_path: Path, content: bytes) -> str:
    path = tmp_path / "said"
    path.write_bytes(content)
    return f"exec cat {path}"


ASKING: dict[str, Callable[[], object]] = {
    "versions": lambda: Kubectl().versions(),
    "version": kubectl.version,
    "get": lambda: Kubectl().get("pods", "a"),
    "find": lambda: Kubectl().find(WANTED),
    "list": lambda: Kubectl().list("jobs.batch", "team", "a=b"),
    "held": lambda: workloads.list_workloads(Kubectl(), "team", [Shape.INDEXED]),
    "any-pod": lambda: pods.has_pods(Kubectl(), "team", "a"),
    "pods": lambda: list(pods.batch_pods(Kubectl(), "team", a_lock(), pods.NOT_SUCCEEDED)),
    "create": lambda: Kubectl().create(WANTED),
}


@pytest.mark.parametrize("ask", ASKING.values(), ids=ASKING.keys())
@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"{}",
        b"[]",
        b"<html>please log in</html>",
        b"\xff\xfe",
        b'{"items": null}',
        b'{"kind": "List", "items": [null]}',
        b'{"kind": "Pod", "metadata": null}',
        b'{"kind": "List", "items": [{"kind": "Pod", "metadata": {"name": "a", "labels": null}}]}',
        b'{"kind": "List", "items": [{"kind": "Pod", "metadata": {"name": "a"}, "status": 5}]}',
        b'{"kind": "Pod", "metadata": {"name": "a"}, "status": {"conditions": ["no"]}}',
        b'{"kind": "Pod", "metadata": {"name": "a"}, "spec": {"accessModes": 1}}',
        b"[" * 200_000,
        b'{"kind": "Pod", "metadata": {"name": "a"}, "spec": {"a": ' + b"[" * 500 + b"]" * 500 + b"}}",
        b"[" + b"{}," * 5_000_000 + b"{}]",
    ],
    ids=[
        *("nothing", "empty", "a-list", "html", "no-text", "null-items", "null-item"),
        *("null-metadata", "null-labels", "number-status", "text-condition", "number-modes"),
        *("deep-lists", "rather-deep", "many"),
    ],
)
def test_foreign_responses(answer: bytes, ask: Callable[[], object], fake: Fake, tmp_path: Path) -> None:
    fake(script_printing(tmp_path, answer))

    with pytest.raises(ClusterError, match=r"kubectl [a-z]+ printed") as caught:
        ask()

    assert len(str(caught.value)) < 300


def test_an_object_that_was_not_requested_is_refused(fake: Fake, tmp_path: Path) -> None:
    fake(script_printing(tmp_path, b'{"kind": "Secret", "metadata": {"name": "a"}}'))

    with pytest.raises(ClusterError, match="returned a Secret instead of a Pod"):
        Kubectl().find(WANTED)


def test_an_endless_response_is_stopped(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubectl, "MAX_OUTPUT_BYTES", 1 << 20)
    fake("exec yes")

    with pytest.raises(ClusterError, match="because it printed more than 1 MiB"):
        Kubectl().run("get", "pods")


def test_an_endless_list_is_stopped(fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubectl, "MAX_PAGES", 3)
    fake(script_printing(tmp_path, b'{"items": [], "metadata": {"continue": "more"}}'))

    with pytest.raises(ClusterError, match="has more than 3 pages"):
        list(Kubectl().pages("/api/v1/pods", "a=b"))


def test_much_output_on_standard_error_does_not_stop_kubectl(fake: Fake) -> None:
    fake("head -c 3000000 /dev/zero >&2; echo >&2; echo the cause >&2; exit 1")

    with pytest.raises(ClusterError, match="the cause"):
        Kubectl().run("get", "pods")


def test_children_of_kubectl_end_with_it(fake: Fake, tmp_path: Path) -> None:
    go, left = tmp_path / "go", tmp_path / "left"
    fake(f"(while [ ! -e {go} ]; do sleep 0.01; done; touch {left}) & exec sleep 60")

    with pytest.raises(ClusterError, match=r"stopped after 0\.2 s"):
        Kubectl().run("get", "pods", seconds=0.2)

    go.touch()
    time.sleep(0.3)
    assert not left.exists()


def test_a_child_that_leaves_the_process_group_does_not_delay_the_output(fake: Fake, tmp_path: Path) -> None:
    has_left, ended = tmp_path / "left", tmp_path / "ended"
    script = f"import os, time; os.setsid(); open({str(has_left)!r}, 'w'); time.sleep(60); open({str(ended)!r}, 'w')"
    wait = f"while [ ! -e {has_left} ]; do sleep 0.01; done"
    fake(f"{shlex.quote(sys.executable)} -c {shlex.quote(script)} & {wait}; echo output")

    assert Kubectl().run("get", "pods", seconds=45) == b"output\n"

    assert not ended.exists()


LOGGED = 'E1121 20:01:28.720866    6991 memcache.go:381] "Unhandled" err="dial tcp 127.0.0.1:1"'


REFUSED = "The connection to the server a:1 was refused"
ERRORS = {
    "refused": (f"{LOGGED}\n{LOGGED}\n{REFUSED}", "was refused", "", "get-contexts"),
    "log only": (LOGGED, "dial tcp 127.0.0.1:1", "", ""),
    "context": (
        "error: context was not found for specified context: b",
        "specified context: b",
        "",
        "--context",
    ),
    "login": ("error: You must be logged in to the server (Unauthorized)", "Unauthorized", "", "log in"),
    "forbidden": (
        *("Error from server (Forbidden): pods is forbidden", "is forbidden"),
        *("Forbidden", "an administrator"),
    ),
    "not found": ("Error from server (NotFound): pods not found", "pods not found", "NotFound", ""),
    "kind": ('error: no matches for kind "Queue" in version "a/v1"', "no matches", "UnknownKind", ""),
    "exists": ("Error from server (AlreadyExists): it exists", "it exists", "AlreadyExists", ""),
    "lines": ("first\n* second\n\n* third", "first; * second; * third", "", ""),
    "nothing": ("", "it failed without a message", "", ""),
    "long": ("x" * 100_000, "…x", "", ""),
}


@pytest.mark.parametrize(("words", "shown", "reason", "hint"), ERRORS.values(), ids=ERRORS)
def test_an_error_is_one_line_with_a_reason(
    words: str, shown: str, reason: str, hint: str, fake: Fake, tmp_path: Path
) -> None:
    (tmp_path / "words").write_text(words)
    fake(f"cat {tmp_path}/words >&2; exit 1")

    with pytest.raises(ClusterError) as caught:
        Kubectl("mine").run("get", "pods")

    text = str(caught.value)
    assert text.startswith("`kubectl --context=mine get pods`: ")
    assert shown in text
    assert "\n" not in text
    assert "memcache.go" not in text
    assert len(text) < 1100
    assert caught.value.reason == reason
    assert hint in str(caught.value.hint)


def reader(sending: str) -> str:
    """Give a cluster whose reader pod runs at once, and sends what it is told to."""
    pod = json.dumps({**POD, "status": {"phase": "Running"}})
    return f"""case "$*" in
*" create "*|*" get "*) cat > /dev/null; echo '{pod}' ;;
*" exec "*) {sending} ;;
esac"""


def fetched(into: Path, *batches: str) -> list[str]:
    into.mkdir(exist_ok=True)
    with helper_pods.running_reader_pod(Kubectl(), POD, patience=5) as reader:
        for batch in batches or ("batch",):
            reader.copy(batch, into)
    return sorted(path.relative_to(into).as_posix() for path in into.rglob("*.*"))


def packed(*names: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as opened:
        for name in names:
            opened.addfile(tarfile.TarInfo(name))
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("files", "after", "words"),
    [
        (1, "exec yes", "because it printed more than 1 MiB"),
        (2, "", r"sent an invalid archive of batch: it contains 0/a\.json twice"),
        (1, "echo error: the pod is gone >&2; exit 137", "the pod is gone"),
    ],
    ids=["endless", "a name twice", "killed"],
)
def test_a_transfer_that_fails_says_why_and_keeps_nothing(
    fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: int, after: str, words: str
) -> None:
    monkeypatch.setattr(helper_pods, "LARGEST_ARCHIVE", 1 << 20)
    (tmp_path / "sent").write_bytes(packed(*["./0/a.json"] * files))
    fake(reader(f"cat {tmp_path}/sent; {after}"))

    with pytest.raises(ClusterError, match=words):
        fetched(tmp_path / "into")

    assert not list((tmp_path / "into").iterdir())


@pytest.fixture(params=["coreutils", "busybox"])
def programs(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give the PATH of an image: GNU programs, or busybox."""
    if request.param == "coreutils":
        return "/usr/bin:/bin"
    busybox = shutil.which("busybox")
    if busybox is None:
        pytest.skip("skipped: busybox not found")
    completed = subprocess.run([busybox, "tar", "--help"], capture_output=True, check=False)
    if b"-T" not in completed.stdout + completed.stderr:
        pytest.skip("skipped: this busybox's tar takes no list of files, as that of Alpine does")
    folder = tmp_path / "busybox"
    folder.mkdir()
    for name in ("sh", "tar", "find", "head"):
        (folder / name).symlink_to(busybox)
    return str(folder)


@pytest.fixture
def pod(fake: Fake, tmp_path: Path, programs: str) -> Path:
    """Give the volume of a pod that really runs what is executed in it."""
    results = tmp_path / "results"
    run = f'while [ "$1" != -- ]; do shift; done; shift; folder="{results}/${{4##*/}}"'
    fake(reader(f'{run}; PATH={programs} exec "$1" "$2" "$3" "$folder"'))
    return results


def test_the_reader_pod_sends_only_what_the_collector_reads(pod: Path, tmp_path: Path) -> None:
    folder = pod / "batch/0"
    folder.mkdir(parents=True)
    for name in ("a.json", "a.out", "a.err", "b.txt", "-x.json", "with space.json", "x\n--help.json"):
        (folder / name).write_text("x")
    (folder / "link.json").symlink_to("/etc/passwd")
    (folder / "deeper").mkdir()
    (folder / "deeper/c.json").write_text("x")
    with (folder / "hole.out").open("wb") as hole:
        hole.truncate(10**12)
    (folder / "full.out").write_bytes(bytes(LARGEST_TRIAL_FILE))

    results = fetched(tmp_path / "into")

    assert results == [f"batch/0/{name}" for name in ("-x.json", "a.err", "a.json", "a.out", "full.out")]
    assert (tmp_path / "into/batch/0/full.out").stat().st_size == LARGEST_TRIAL_FILE


def test_a_batch_without_files_is_empty(pod: Path, tmp_path: Path) -> None:
    (pod / "empty/0").mkdir(parents=True)

    assert fetched(tmp_path / "into", "empty", "missing") == []
    assert sorted(path.name for path in (tmp_path / "into").iterdir()) == ["empty", "missing"]


def test_an_unreadable_folder_is_reported(fake: Fake, pod: Path, tmp_path: Path, programs: str) -> None:
    (pod / "batch/0").mkdir(parents=True)
    failing = tmp_path / "failing"
    failing.mkdir()
    (failing / "find").write_text("#!/bin/sh\necho find: ./0: input/output error >&2; exit 1\n")
    (failing / "find").chmod(0o755)
    script = tmp_path / "kubectl"
    script.write_text(script.read_text().replace("PATH=", f"PATH={failing}:"))

    with pytest.raises(ClusterError, match="input/output error"):
        fetched(tmp_path / "into")


@pytest.mark.full_suite("large inputs")
def test_a_stream_is_read_in_little_memory(fake: Fake, tmp_path: Path) -> None:
    if not Path("/proc/self/status").is_file():
        pytest.skip("skipped: no /proc to read the memory from")
    path = tmp_path / "sent"
    with tarfile.open(path, "w") as opened:
        for number in range(200):
            info = tarfile.TarInfo(f"./{number}/a.out")
            info.size = LARGEST_TRIAL_FILE
            opened.addfile(info, io.BytesIO(bytes(info.size)))
    fake(reader(f"exec cat {path}"))
    program = f"""
import re
from pathlib import Path
from sweepledger.engine.cluster import helper_pods
from sweepledger.engine.cluster.kubectl import Kubectl
from tests.engine.test_untrusted_cluster import POD
with helper_pods.running_reader_pod(Kubectl(), POD, patience=5) as reader:
    reader.copy("batch", Path({str(tmp_path / "into")!r}))
print(re.search(r"VmHWM:\\s+([0-9]+) kB", Path("/proc/self/status").read_text())[1])
"""
    (tmp_path / "into").mkdir()

    done: Any = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert int(done.stdout) < 150 * 1024
    assert len(list((tmp_path / "into/batch").iterdir())) == 200
