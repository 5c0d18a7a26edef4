"""Signatures of the commits that changed given paths, verified with a list of allowed keys."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from sweepledger.repo.git.repository import LITERAL_PATHS, Repository

COMMIT_MARK = "commit:"
"""Begins the part of a commit; no path in the listed folders begins with it."""
GOOD_SIGNATURE = "G"
"""Git's letter for a valid signature of a trusted key; for SSH, of a listed one."""

LISTED_KEYS_ONLY = (
    "gpg.program=false",
    "gpg.x509.program=false",
    "gpg.ssh.program=ssh-keygen",
    "gpg.ssh.defaultKeyCommand=false",
    "gpg.minTrustLevel=fully",
    "log.showSignature=false",
)
"""Neither the user's keyring nor a program in the repository's configuration can add a trusted key."""


@dataclass(frozen=True, slots=True)
class CommitSignature:
    """A commit that changed some of the requested paths, and whether it is signed."""

    id: str
    is_signed: bool
    blobs: Mapping[str, str]
    """Path → blob id after the commit; zeros if it deleted the file."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The changed paths."""
        return tuple(self.blobs)


def commit_signatures(
    repository: Repository, since: str | None, until: str, below: Iterable[str], *, signers: Iterable[str]
) -> tuple[CommitSignature, ...]:
    """Return the commits after `since` that change some paths, newest first; `signers` are git's allowed signers.

    With `since` None the whole history is read. A merge changes only files that differ from those of all parents.
    """
    with tempfile.TemporaryDirectory(prefix="sweep-signers-") as folder:
        allowed = Path(folder) / "allowed"
        allowed.write_text("".join(f"{line}\n" for line in signers), encoding="utf-8")
        chosen = (*LISTED_KEYS_ONLY, f"gpg.ssh.allowedSignersFile={allowed}")
        output = repository.run(
            *(word for setting in chosen for word in ("-c", setting)),
            "log",
            *(
                "--full-history",
                "--topo-order",
                "-c",
                "--raw",
                "--no-abbrev",
                "-z",
                "--no-renames",
                "--no-follow",
                "--no-color",
            ),
            f"--format=%x00{COMMIT_MARK}%H %G?",
            until if since is None else f"{since}..{until}",
            "--",
            *below,
            env=LITERAL_PATHS,
        )
    return tuple(_parse_log(output))


def _parse_log(output: str) -> Iterator[CommitSignature]:
    """Parse the log: one line per commit, then two fields per path, after another separator for a merge.

    The first of the two begins with one colon per parent; the path may begin with any character.
    """
    for part in output.split(f"\0{COMMIT_MARK}")[1:]:
        head, *rest = part.split("\0")
        identity, letter = head.split(" ")
        fields = (field for field in rest if field.lstrip("\n"))
        blobs = {next(fields): meta.split(" ")[-2] for meta in fields}
        if blobs:
            yield CommitSignature(identity, letter == GOOD_SIGNATURE, MappingProxyType(blobs))
