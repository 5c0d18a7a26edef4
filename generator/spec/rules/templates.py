"""Text that something between git and the trial would replace."""

from collections.abc import Iterator

from generator.problems import Problem
from generator.reader import Path, shown
from generator.spec.draft import Draft

SIGNS = {
    "{{": "Helm, ApplicationSets and workflows fill in {{ … }}",
    "}}": "Helm, ApplicationSets and workflows fill in {{ … }}",
    "{%": "template engines run {% … %}",
    "$(": "Kubernetes fills in $(NAME)",
    "${": "Flux fills in ${NAME}",
}

PLACES = ("description", "command", "program", "parameters", "assignments", "derived")


def no_template_syntax(draft: Draft) -> Iterator[Problem]:
    """What a person writes must reach the trial as written."""
    for top in _places(draft):
        for place, text in draft.texts(*top):
            # A command's ${…} are macros, which never stand in a manifest.
            signs = [sign for sign in SIGNS if sign in text and (sign != "${" or top != ("command",))]
            if signs:
                message = f"must not hold {signs[0]!r}, got {shown(text)}"
                hint = f"{SIGNS[signs[0]]} wherever a manifest has it"
                yield draft.problem(place, message, code="template-syntax", hint=hint)


def _places(draft: Draft) -> Iterator[Path]:
    yield from ((key,) for key in PLACES)
    yield ("run", "environment")
    for block, _ in draft.items("blocks"):
        yield from ((*block, key) for key in PLACES)
