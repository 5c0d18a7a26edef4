"""`sweep show --fetch`, `sweep logs` and `sweep cluster expire` of a batch in a real bucket."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from sweepledger.bucket.layout import ObjectKind
from sweepledger.bucket.objects import Bucket
from sweepledger.bucket.results import BucketResults
from sweepledger.bucket.transfer import Uploader, find_files
from sweepledger.operations.collection.record_store import RecordStores
from sweepledger.verbs.cluster.expire import Expired, FolderState, expire_batches
from tests.bucket import servers
from tests.bucket.servers import NoServerError, StorageServer
from tests.command_line import run_program
from tests.operations.test_collect import leave, stored
from tests.operations.test_fetch import FILES, record
from tests.repository import IMAGE, Sandbox

pytestmark = pytest.mark.full_suite("object storage")

KEEP, DAY = 30, 86_400


@dataclass
class Stored:
    """A batch of three trials that is recorded, and whose files are in a bucket."""

    sandbox: Sandbox
    bucket: Bucket
    variables: dict[str, str]
    """The credential, as a user has it in the environment."""

    @property
    def batch(self) -> str:
        return stored(self.sandbox).name

    def sweep(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        code = "import sys; from sweepledger.cli.app import main; sys.exit(main())"
        return run_program(sys.executable, "-c", code, *arguments, cwd=self.sandbox.root, **self.variables)

    def expired(self, *, now: float, dry_run: bool = False) -> Expired:
        return expire_batches(self.sandbox.workspace, {}, remote="origin", now=now, dry_run=dry_run)


def settings_of(server: StorageServer, kind: str) -> tuple[str, dict[str, str]]:
    values = {name: value.replace("PORT", str(server.port)) for name, value in server.variables.items()}
    if kind == "azure":
        own = f"account: {values['AZURE_STORAGE_ACCOUNT_NAME']}, endpoint: {values['AZURE_STORAGE_ENDPOINT']}"
        names = ["AZURE_STORAGE_ACCOUNT_KEY"]
    else:
        own = f"region: {values['AWS_REGION']}, endpoint: {values['AWS_ENDPOINT_URL']}"
        names = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]
    repository, _, digest = IMAGE.partition("@")
    text = (
        f'results: {{store: bucket, keep: {KEEP}d, bucket: {{url: "{server.url}", egress: bucket, {own}}}}}\n'
        f"images: {{collector: {repository}@{digest}}}\n"
        "egress: {bucket: {cidrs: [203.0.113.0/24], ports: [443]}}\n"
    )
    return f"version: 1\n{text}", {name: values[name] for name in names}


@pytest.fixture(params=servers.KINDS)
def in_bucket(
    request: pytest.FixtureRequest, sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Stored]:
    folder = tmp_path / "server"
    folder.mkdir()
    try:
        with servers.running(request.param, folder) as server:
            if request.param == "azure":
                servers.create_azure_container(server)
            text, variables = settings_of(server, request.param)
            for name, value in variables.items():
                monkeypatch.setenv(name, value)
            monkeypatch.setenv("SWEEP_TRUSTED_CLONE", str(sandbox.root))
            sandbox.write("sweepledger.yaml", text)
            sandbox.merged()
            bucket = Bucket(server.url, secrets=server.secrets)
            save(sandbox, bucket, tmp_path / "pods")
            assert sandbox.record(RecordStores.all_in(BucketResults(bucket)), {stored(sandbox).name})
            yield Stored(sandbox, bucket, variables)
    except NoServerError as error:
        pytest.skip(f"skipped: {error}")


def save(sandbox: Sandbox, bucket: Bucket, pods: Path) -> None:
    """Save what three trials left, the second with files, as their sidecars do."""
    made = stored(sandbox)
    for index in range(3):
        more = {"artifacts": [record(*item) for item in FILES.items()]} if index == 1 else {}
        path = leave(pods, made, index, **more)
        uid, uploader = path.stem, Uploader(bucket, made.name, index, path.stem)
        uploader.save(ObjectKind.RECORD, path.read_bytes())
        (path.parent / f"{uid}.out").write_text(f"epoch {index}\n")
        for name, content in FILES.items() if index == 1 else ():
            place = path.parent / "artifacts" / uid / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        found = [file.path for file in find_files(str(path.parent), "").files if file.path != path.name]
        uploader.save_files(ObjectKind.FILES, str(path.parent), found)


def trial(in_bucket: Stored, index: int) -> str:
    return stored(in_bucket.sandbox).trials[index].id


def test_files_are_fetched_and_output_is_shown_without_a_pod(in_bucket: Stored) -> None:
    fetched = in_bucket.sweep("show", trial(in_bucket, 1), "--fetch", "artifacts", "--format", "json")
    shown = in_bucket.sweep("logs", trial(in_bucket, 2))
    refused = in_bucket.sweep("show", trial(in_bucket, 1), "--fetch", "artifacts", "--by-pod")

    assert fetched.returncode == 0, fetched.stderr
    folder = in_bucket.sandbox.root / "artifacts"
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {str(path.relative_to(folder)): path.read_bytes() for path in files} == FILES
    assert "epoch 2" in shown.stdout
    assert (refused.returncode, "are in a bucket" in refused.stderr) == (2, True)


def test_without_a_credential_the_error_names_the_bucket(in_bucket: Stored) -> None:
    wrong = {name: "bm90IHRoZSBrZXk=" for name in in_bucket.variables if name != "AWS_ACCESS_KEY_ID"}
    in_bucket.variables |= wrong

    done = in_bucket.sweep("logs", trial(in_bucket, 2))

    assert done.returncode == 3
    assert in_bucket.bucket.url in done.stderr
    assert "403" in done.stderr


def test_expiry_deletes_what_git_has_held_for_long_and_nothing_earlier(in_bucket: Stored) -> None:
    name = in_bucket.batch
    in_bucket.bucket.put("data/mnist/images", b"pixels")
    early = in_bucket.expired(now=time.time() + (KEEP - 1) * DAY)
    assert [expiry.state for expiry in early.batches] == [FolderState.KEPT]
    later = time.time() + (KEEP + 1) * DAY
    assert [e.state for e in in_bucket.expired(now=later, dry_run=True).batches] == [FolderState.EXPIRED]
    assert in_bucket.bucket.folders() == ("data", name)

    result = in_bucket.expired(now=later)

    assert [(expiry.batch, expiry.state) for expiry in result.batches] == [(name, FolderState.EXPIRED)]
    assert in_bucket.bucket.folders() == ("data",)
    assert in_bucket.bucket.get("data/mnist/images") == b"pixels"
    done = in_bucket.sweep("logs", trial(in_bucket, 2))
    assert "has expired" in done.stderr


def test_a_record_that_git_lacks_keeps_the_batch(in_bucket: Stored, tmp_path: Path) -> None:
    failed = {"status": "failed", "reason": "exit-1", "metrics": {}}
    late = leave(tmp_path / "late", stored(in_bucket.sandbox), 0, uid="late", **failed)
    Uploader(in_bucket.bucket, in_bucket.batch, 0, "late").save(ObjectKind.RECORD, late.read_bytes())

    (expiry,) = in_bucket.expired(now=time.time() + (KEEP + 1) * DAY).batches

    assert expiry.state is FolderState.LATE
    assert in_bucket.bucket.folders() == (in_bucket.batch,), "the mark was taken away"


def test_the_commands_of_the_page_run(in_bucket: Stored) -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/buckets.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```console\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    named = block.replace("TRIAL", trial(in_bucket, 1)).replace("SWEEP", "peak")

    for line in named.splitlines():
        done = in_bucket.sweep(*line.removeprefix("$ sweep ").split())
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
