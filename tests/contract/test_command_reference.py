"""docs/commands.md describes the commands that exist."""

from sweepledger.cli.response import EXIT_DRIFT, EXIT_INTERNAL_ERROR, EXIT_SEARCH_ENDED
from tools import command_reference


def test_the_page_is_generated_from_the_commands() -> None:
    page = command_reference.PAGE.read_text(encoding="utf-8")

    assert page == command_reference.page(), "run `python -m tools.command_reference`"


def test_the_page_explains_the_exit_codes() -> None:
    for code in (EXIT_DRIFT, EXIT_SEARCH_ENDED, EXIT_INTERNAL_ERROR):
        assert f"| {code} | " in command_reference.INTRODUCTION
