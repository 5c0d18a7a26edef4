"""Archives that trials, or whoever takes their place, can send: written by `tarfile`, and by hand."""

import io
import tarfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from sweepledger.engine.cluster import helper_pods
from sweepledger.engine.cluster.helper_pods import ArchiveError, unpack
from sweepledger.structs.record import LARGEST_TRIAL_FILE

END = bytes(2 * helper_pods.BLOCK)


def packed(*members: tarfile.TarInfo, form: int = tarfile.GNU_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as opened:
        for info in members:
            opened.addfile(info, io.BytesIO(b"x" * info.size))
    return buffer.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "", size: int = 1) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, target
    made.size = size if kind == tarfile.REGTYPE else 0
    return made


def header(kind: bytes, size: int, name: str = "./0/a.json") -> bytes:
    """Write a header that promises more than follows."""
    made = tarfile.TarInfo(name)
    made.type, made.size = kind, size
    return made.tobuf(tarfile.GNU_FORMAT)


def extended(**headers: str) -> tarfile.TarInfo:
    made = member("./0/a.json")
    made.pax_headers = {name.replace("_", "."): value for name, value in headers.items()}
    return made


def test_records_and_output_are_unpacked(tmp_path: Path) -> None:
    sent = packed(member("./0/a-b.json"), member("./0/a-b.out", size=LARGEST_TRIAL_FILE), member("11/c.json"))
    extended_only = packed(extended(mtime="1.5", comment="hello"), form=tarfile.PAX_FORMAT)

    assert unpack(io.BytesIO(sent), tmp_path) == 3
    assert (tmp_path / "11/c.json").read_bytes() == b"x"
    assert unpack(io.BytesIO(extended_only), tmp_path / "other") == 1, (
        "headers that change nothing are ignored"
    )


HOSTILE = {
    "above": member("../../evil.json"),
    "absolute": member("/0/evil.json"),
    "through": member("./0/../../evil.json"),
    "symlink": member("./0/evil.json", tarfile.SYMTYPE, "/etc/passwd"),
    "link": member("./0/evil.json", tarfile.LNKTYPE, "../../other"),
    "device": member("./0/evil.json", tarfile.CHRTYPE),
    "pipe": member("./0/evil.json", tarfile.FIFOTYPE),
    "other": member("./0/evil.sh"),
    "foreign digits": member("./٣/evil.json"),
    "long": member("./0/" + "e" * 200 + "evil.json"),
    "large": member("./0/evil.out", size=LARGEST_TRIAL_FILE + 1),
}


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_other_files_of_a_trial_are_ignored(hostile: tarfile.TarInfo, tmp_path: Path) -> None:
    sent = packed(hostile, member("./1/good.json"))

    assert unpack(io.BytesIO(sent), tmp_path / "batch") == 1
    assert [path.name for path in tmp_path.rglob("*.*")] == ["good.json"]


ENDLESS = 10**12
TOO_LONG = f"an extended header has {ENDLESS} bytes"
REFUSED = {
    "text": (b"tar: command not found" * 100, "header"),
    "twice": (packed(member("./0/a.json"), member("0/a.json")), "0/a.json twice"),
    "cut content": (packed(member("./0/a.json"))[:700], "truncated"),
    "no end": (packed(member("./0/a.json"))[:1024], "truncated"),
    "promised": (header(tarfile.REGTYPE, ENDLESS) + END, "truncated"),
    "negative": (header(tarfile.REGTYPE, -(10**9)) + END, "bytes"),
    "sparse": (header(tarfile.GNUTYPE_SPARSE, 512) + END, "sparse"),
    "extension": (header(tarfile.XHDTYPE, ENDLESS) + END, TOO_LONG),
    "global extension": (header(tarfile.XGLTYPE, ENDLESS) + END, TOO_LONG),
    "long name": (header(tarfile.GNUTYPE_LONGNAME, ENDLESS) + END, "truncated"),
    "PAX sparse": (packed(extended(GNU_sparse_size="2000000000"), form=tarfile.PAX_FORMAT), "sparse"),
    "PAX terabyte": (packed(extended(GNU_sparse_realsize=str(ENDLESS)), form=tarfile.PAX_FORMAT), "sparse"),
    "PAX size": (
        packed(extended(size=str(ENDLESS)), form=tarfile.PAX_FORMAT),
        "size differs from its header",
    ),
}


@pytest.mark.parametrize(("sent", "why"), REFUSED.values(), ids=REFUSED)
def test_archives_that_no_trial_can_cause_are_refused(sent: bytes, why: str, tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match=why):
        unpack(io.BytesIO(sent), tmp_path)

    assert sum(path.stat().st_size for path in tmp_path.rglob("*.json")) <= 1


class Endless:
    """A source that never ends."""

    def __init__(self, content: bytes, most: int) -> None:
        self.content, self.left = content, most

    def read(self, size: int) -> bytes:
        size = min(size, self.left)
        self.left -= size
        return (self.content * (size // len(self.content) + 1))[:size]


@pytest.fixture
def little_memory() -> Iterator[None]:
    tracemalloc.start()
    yield
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(tarfile.XHDTYPE, id="pax"),
        pytest.param(tarfile.GNUTYPE_LONGNAME, id="long", marks=pytest.mark.full_suite("large inputs")),
        pytest.param(tarfile.DIRTYPE, id="folder", marks=pytest.mark.full_suite("large inputs")),
    ],
)
def test_endless_headers_are_stopped(kind: bytes, tmp_path: Path, little_memory: None) -> None:
    with pytest.raises(ArchiveError, match="truncated"):
        unpack(Endless(header(kind, 0), 3 << 20), tmp_path)


def test_endless_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helper_pods, "MOST_FILES", 10)
    sent = packed(*(member(f"./{number}/a.json") for number in range(11)))

    with pytest.raises(ArchiveError, match="more than 10 files"):
        unpack(io.BytesIO(sent), tmp_path)
