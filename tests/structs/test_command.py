"""Macros in a command's elements."""

import pytest

from sweepledger.problems import TextError
from sweepledger.structs.program import LIST_MACROS, Macro, parse_element


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ()),
        ("train.py", ("train.py",)),
        ("${args}", (Macro("args"),)),
        ("${args_no_hyphens}", (Macro("args_no_hyphens"),)),
        ("--seed=${seed}", ("--seed=", Macro("seed"))),
        ("${envvar:HOME}/x", (Macro("envvar", "HOME"), "/x")),
        ("a${seed}b${env}c", ("a", Macro("seed"), "b", Macro("env"), "c")),
        ("${args_json}${args_json_file}", (Macro("args_json"), Macro("args_json_file"))),
        ("$HOME $$ {seed} $ {", ("$HOME $$ {seed} $ {",)),
        ("`ls`; $(x)", ("`ls`; $(x)",)),
    ],
)
def test_an_element_is_text_and_macros_in_order(text: str, parts: tuple[str | Macro, ...]) -> None:
    assert parse_element(text) == parts
    assert "".join(str(part) for part in parts) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *((text, "one of the macros") for text in ("${arg}", "${ARGS}", "${HOME}", "${}")),
        *((text, "must open a macro") for text in ("${args", "${{seed}}")),
        *((text, "takes no argument") for text in ("${seed:1}", "${seed:}")),
        *((f"${{{name}}}", "must name a variable") for name in ("envvar", "envvar:", "envvar:1X")),
        *((f"${{envvar:{name}}}", "must name a variable") for name in ("A-B", "A:B")),
        *((f"${{param{name}}}", "must name a parameter") for name in ("", ":", ":1", ":a b")),
    ],
)
def test_macros_that_no_launcher_could_fill_in_are_refused(text: str, message: str) -> None:
    with pytest.raises(TextError, match=message):
        parse_element(text)


@pytest.mark.parametrize("name", sorted(LIST_MACROS))
@pytest.mark.parametrize("around", ["--all={}", "{}x", "{}${{seed}}", "{0}{0}"])
def test_a_macro_that_yields_several_arguments_stands_alone(name: str, around: str) -> None:
    with pytest.raises(TextError, match="must stand alone in its element"):
        parse_element(around.format(f"${{{name}}}"))
