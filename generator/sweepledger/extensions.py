"""Tables that other packages extend by entry points: a name, and the location of its member of the table."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Never, Protocol, TypeVar

from sweepledger.errors import ToolError


class Named(Protocol):
    """A member of a table."""

    @property
    def name(self) -> str:
        """The name in commands."""


Member = TypeVar("Member", bound=Named)


def extended(
    own: Iterable[Member], group: str, refusing: Callable[[str, Callable[..., Never]], Member]
) -> Mapping[str, Member]:
    """Return the members of a table by name: ours, then those of other packages, which never replace ours.

    `refusing` builds a substitute for a member that cannot be loaded, from its name and a function that raises
    ToolError, so other members still work.
    """
    members = {member.name: member for member in own}
    kind = type(next(iter(members.values())))
    return members | {
        member.name: member for member in _loaded(group, kind, refusing) if member.name not in members
    }


def _loaded(
    group: str, kind: type[Member], refusing: Callable[[str, Callable[..., Never]], Member]
) -> Iterator[Member]:
    for entry in sorted(entry_points(group=group), key=lambda entry: entry.name):
        try:
            member = entry.load()
        except Exception as error:  # noqa: BLE001 - whatever its import raises
            yield refusing(entry.name, _refusal(entry, f"{type(error).__name__}: {error}"))
        else:
            is_member = isinstance(member, kind) and member.name == entry.name
            why = f"{entry.value} is no {kind.__name__} of this name"
            yield member if is_member else refusing(entry.name, _refusal(entry, why))


def _refusal(entry: EntryPoint, why: str) -> Callable[..., Never]:
    package = entry.dist.name if entry.dist else entry.value

    def refuse(*_: Any, **__: Any) -> Never:
        raise ToolError(
            f"{entry.name} of the package {package} cannot be loaded: {why}",
            hint=f"install a version of {package} for this version of sweepledger",
        )

    return refuse
