"""Recorded files that somebody edited: the Python API, the site and reports end with a sentence, and follow no link."""

from collections.abc import Callable
from pathlib import Path

import pytest

import sweepledger
from sweepledger.cli import completion
from sweepledger.errors import GeneratorError, StorageError
from sweepledger.operations.reports import results, status
from sweepledger.verbs.site import build_site
from tests.operations.test_read import recorded
from tests.repository import Sandbox

RECORDS, SUMMARY = "results/peak/records/*.jsonl", "results/peak/summary.csv"
DEEP = b"[" * 100_000
CONTENTS: dict[str, tuple[str, bytes | Path]] = {
    "records of many levels": (RECORDS, DEEP),
    "records of no text": (RECORDS, b"\xff\xfe\0"),
    "records with a long line": (RECORDS, b'{"a":"' + b"x" * 10_000_000),
    "records that are a link": (RECORDS, Path("/etc/passwd")),
    "a summary of no text": (SUMMARY, b"\0\r\n," * 50),
    "a summary of quotes": (SUMMARY, b'"a\n' * 100),
    "a summary that is a link": (SUMMARY, Path("/etc/passwd")),
    "a lock of many levels": ("overlays/archive/*/batch.json", DEEP),
    "a table of many levels": ("overlays/archive/*/hyperparams.csv", b'trial,x\nt0,"' + DEEP + b'"\n'),
    "a spec with aliases": ("sweeps/peak.yaml", b"&a [*a]"),
    "settings that are a link": ("sweepledger.yaml", Path("/etc/passwd")),
}


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    folder = tmp_path_factory.mktemp("history")
    sandbox = Sandbox.create(folder)
    recorded(sandbox, folder / "volume", "1, 2")
    return sandbox


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CONTENTS)
def test_a_history_that_somebody_edited_is_no_traceback(
    name: str, history: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(history.root)
    place, content = CONTENTS[name]
    (file,) = history.root.glob(place)
    start = history.git("rev-parse", "HEAD").strip()
    file.unlink()
    if isinstance(content, Path):
        file.symlink_to(content)
    else:
        file.write_bytes(content)
    history.commit("Edit")
    read = []

    for use in (use_api, lambda sandbox: build_site(sandbox.workspace, tmp_path / "site"), *REPORTS):
        try:
            read.append(repr(use(history)))
        except GeneratorError as error:
            read.append(str(error))
    pages = [path.read_text() for path in (tmp_path / "site").rglob("*.html")] if content else []
    pages += [path.read_text() for path in (history.root / ".sweepledger").rglob("*.json")]
    history.git("reset", "-q", "--hard", start)

    assert all("root:x:0" not in text for text in (*read, *pages))


def use_api(sandbox: Sandbox) -> object:
    sweep = sweepledger.open(sandbox.root).sweep("peak")
    return [tuple(sweep.trials), sweep.best, tuple(sweep.curves), tuple(sweep.history), dict(sweep.charts)]


REPORTS: tuple[Callable[[Sandbox], object], ...] = (
    lambda sandbox: status.sweep_statuses(sandbox.workspace, state=sandbox.root / ".sweepledger"),
    lambda sandbox: results.rank_trials(sandbox.workspace, "peak"),
    lambda _sandbox: completion.trials(""),
)


@pytest.mark.parametrize("place", ["results/peak/summary.csv", "results/peak", "results"])
def test_results_behind_a_link_are_not_shown(place: str, history: Sandbox, tmp_path: Path) -> None:
    path = history.root / place
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")

    for report in REPORTS[:2]:
        with pytest.raises(StorageError, match="symbolic link"):
            report(history)

    path.unlink()
    (tmp_path / "elsewhere").rename(path)
