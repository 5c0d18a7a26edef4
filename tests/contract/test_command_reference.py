"""docs/commands.md describes the commands that exist."""

from tools import command_reference


def test_the_page_is_generated_from_the_commands() -> None:
    page = command_reference.PAGE.read_text(encoding="utf-8")

    assert page == command_reference.page(), "run `python -m tools.command_reference`"
