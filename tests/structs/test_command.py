"""Macros in a command's elements."""

import pytest

from sweepledger.structs.program import LIST_MACROS, MACROS, Macro, MacroError, parse_element

KNOWN = (
    "${args}, ${args_json}, ${args_json_file}, ${args_no_boolean_flags}, ${args_no_hyphens}, "
    "${env}, ${envvar:NAME}, ${interpreter}, ${program}, ${seed}"
)


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


@pytest.mark.parametrize("name", sorted(MACROS - {"envvar"}))
def test_every_macro_but_envvar_stands_for_itself(name: str) -> None:
    assert parse_element(f"${{{name}}}") == (Macro(name),)


UNCLOSED = "macros look like ${args}; an environment variable is ${envvar:NAME}"
REFUSED = {
    "${arg}": (f"must be one of the macros {KNOWN}, got '${{arg}}'", "did you mean ${args}?"),
    "${ARGS}": (f"must be one of the macros {KNOWN}, got '${{ARGS}}'", "did you mean ${args}?"),
    "${HOME}": (
        f"must be one of the macros {KNOWN}, got '${{HOME}}'",
        "an environment variable is ${envvar:HOME}",
    ),
    "${}": (f"must be one of the macros {KNOWN}, got '${{}}'", None),
    "${args": ("every '${' must open a macro that '}' closes, got '${args'", UNCLOSED),
    "${{seed}}": ("every '${' must open a macro that '}' closes, got '${{seed}}'", UNCLOSED),
    "${seed:1}": ("the macro ${seed} takes no argument, got '${seed:1}'", None),
    "${seed:}": ("the macro ${seed} takes no argument, got '${seed:}'", None),
    **{
        f"${{{body}}}": (
            f"the macro ${{envvar:NAME}} must name a variable, got '${{{body}}}'",
            "names are letters, digits and underscores, and start with no digit",
        )
        for body in ("envvar", "envvar:", "envvar:1X", "envvar:A-B", "envvar:A:B")
    },
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_no_launcher_could_fill_in_is_refused_with_a_way_out(text: str) -> None:
    with pytest.raises(MacroError) as caught:
        parse_element(text)

    assert (str(caught.value), caught.value.hint) == REFUSED[text]


@pytest.mark.parametrize("name", sorted(LIST_MACROS))
@pytest.mark.parametrize("around", ["--all={}", "{}x", "{}${{seed}}", "{0}{0}"])
def test_a_macro_that_yields_several_arguments_stands_alone(name: str, around: str) -> None:
    macro = f"${{{name}}}"
    text = around.format(macro)

    with pytest.raises(ValueError, match="stand alone") as caught:
        parse_element(text)

    assert str(caught.value) == f"{macro} must stand alone in its element, got {text!r}"
    assert isinstance(caught.value, MacroError)
    assert caught.value.hint == f'it yields several arguments; make it an element of its own: "{macro}"'
