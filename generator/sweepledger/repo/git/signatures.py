"""Who has signed what: commits that touch some paths, and whether a listed key signed each."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from generator.repo.git.door import Repository

LITERAL = {"GIT_LITERAL_PATHSPECS": "1"}
HEAD = "commit:"
"""Begins what is said of a commit; no path below a folder begins so."""
GOOD = "G"
"""Git's letter for a signature that verifies, of a key that is trusted: for ssh, one that is listed."""

NO_OTHER_WAY = (
    "gpg.program=false",
    "gpg.x509.program=false",
    "gpg.ssh.program=ssh-keygen",
    "gpg.ssh.defaultKeyCommand=false",
    "gpg.minTrustLevel=fully",
    "log.showSignature=false",
)
"""A person's own keyring, or a program that a repository's settings name, has no say in who is listed."""


@dataclass(frozen=True, slots=True)
class Touch:
    """A commit that changed some of the paths that were asked for."""

    id: str
    is_signed: bool
    blobs: Mapping[str, str]
    """The id of what it left at each path; zeros where it left nothing."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths that it changed."""
        return tuple(self.blobs)


def touches(
    repository: Repository, since: str | None, until: str, below: Iterable[str], *, signers: Iterable[str]
) -> tuple[Touch, ...]:
    """List the commits after `since` that touch paths, the last first; `signers` are git's allowed signers.

    With None the whole history is looked at. Of a merge only what none of its parents has counts as touched.
    """
    with tempfile.TemporaryDirectory(prefix="sweep-signers-") as folder:
        allowed = Path(folder) / "allowed"
        allowed.write_text("".join(f"{line}\n" for line in signers), encoding="utf-8")
        chosen = (*NO_OTHER_WAY, f"gpg.ssh.allowedSignersFile={allowed}")
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
            f"--format=%x00{HEAD}%H %G?",
            until if since is None else f"{since}..{until}",
            "--",
            *below,
            env=LITERAL,
        )
    return tuple(_touches(output))


def _touches(output: str) -> Iterator[Touch]:
    """Take git's answer apart: a line a commit, then two fields a path, for a merge after another separator.

    The first of the two is led by a colon for each parent; the path itself may begin with anything.
    """
    for one in output.split(f"\0{HEAD}")[1:]:
        head, *rest = one.split("\0")
        identity, letter = head.split(" ")
        fields = (field for field in rest if field.lstrip("\n"))
        blobs = {next(fields): told.split(" ")[-2] for told in fields}
        if blobs:
            yield Touch(identity, letter == GOOD, MappingProxyType(blobs))
