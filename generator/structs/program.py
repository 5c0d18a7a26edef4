"""What runs: image, command, code and data, each by content."""

from dataclasses import dataclass
from typing import Any

from generator.structs.values import digest

LOCAL_IMAGE = "local"
"""The program has no image: it runs as processes from the locked code."""


NO_IMAGE = "sweepledger.invalid/local"
"""What the frozen bases name as image, and what stays there while a program has none."""


@dataclass(frozen=True, slots=True)
class Code:
    """The code path of a program and the git tree that it stood for when it was locked."""

    path: str
    tree: str
    """Git's id of the tree at `path`: the same after a squash, a rebase, or a docs commit."""


@dataclass(frozen=True, slots=True)
class Data:
    """A dataset that the settings name, by content."""

    name: str
    digest: str


@dataclass(frozen=True, slots=True)
class Program:
    """Two trials with equal programs and assignments are one trial."""

    image: str
    """A reference with digest, or the literal `local`."""
    command: tuple[str, ...]
    """As written in the spec, macros included."""
    code: Code
    data: Data | None

    @property
    def digest(self) -> str:
        """SHA-256 over the program's canonical form, 64 hex digits."""
        return digest(self.as_data())

    @property
    def container_image(self) -> str:
        """Name the image that a container asks for."""
        return NO_IMAGE if self.image == LOCAL_IMAGE else self.image

    def as_data(self) -> dict[str, Any]:
        """Give the program as lock files hold it."""
        return {
            "image": self.image,
            "command": list(self.command),
            "code": {"path": self.code.path, "tree": self.code.tree},
            "data": None if self.data is None else {"name": self.data.name, "digest": self.data.digest},
        }

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> "Program":
        """Read back what `as_data` gave. Raises KeyError or TypeError on anything else."""
        dataset = data["data"]
        return cls(
            image=data["image"],
            command=tuple(data["command"]),
            code=Code(data["code"]["path"], data["code"]["tree"]),
            data=None if dataset is None else Data(dataset["name"], dataset["digest"]),
        )

    def answers(self, wanted: "Program", *, image_named: bool = True) -> bool:
        """Tell whether this locked program is still what a spec asks for, whatever code and data are now.

        Where the spec names no image, another default of the repository asks for nothing anew.
        """
        return (
            (self.image == wanted.image or not image_named)
            and self.command == wanted.command
            and self.code.path == wanted.code.path
            and (self.data and self.data.name) == (wanted.data and wanted.data.name)
        )
