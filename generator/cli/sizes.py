"""How large a sweep is: its trials, or where these come by rounds what bounds them."""

from typing import TYPE_CHECKING, Any

from generator.cli.values import counted

if TYPE_CHECKING:
    from generator.plan import Ahead


def said(found: "int | Ahead") -> str:
    """Say it in words."""
    if isinstance(found, int):
        return counted(found, "trial")
    return rounds(found)


def rounds(found: "Ahead", *, further: bool = False) -> str:
    """Say how many rounds there are; `further`: after those that were asked for."""
    size = counted(found.size, "trial")
    if found.trials is None:
        return f"rounds of {size}, as many as its records ask for"
    if further and not found.rounds:
        return "no further rounds"
    count = counted(found.rounds or 0, "further round" if further else "round")
    whole = f", {found.trials:,} in all" if not further else ""
    return f"at most {count} of at most {size}{whole}"


def data(found: "int | Ahead") -> dict[str, Any]:
    """Give it as the envelope shows it; null where nothing but its records bounds a search."""
    if isinstance(found, int):
        return {"trials": found}
    return {"trials": found.trials, "rounds": found.rounds, "round_size": found.size}
