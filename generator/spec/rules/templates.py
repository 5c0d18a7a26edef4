"""Text that something between git and the trial would replace."""

from collections.abc import Iterator

from generator.problems import Problem
from generator.reader import shown
from generator.spec.draft import Draft

SIGNS = {
    "{{": "Helm, ApplicationSets and workflows fill in {{ … }}",
    "}}": "Helm, ApplicationSets and workflows fill in {{ … }}",
    "{%": "template engines run {% … %}",
    "$(": "Kubernetes fills in $(NAME)",
    "${": "Flux fills in ${NAME}",
}

PLACES = (("description",), ("command",), ("parameters",))


def no_template_syntax(draft: Draft) -> Iterator[Problem]:
    """What a person writes must reach the trial as written."""
    for top in PLACES:
        for place, text in draft.texts(*top):
            # A command's ${…} are macros, which never stand in a manifest.
            signs = [sign for sign in SIGNS if sign in text and (sign != "${" or top != ("command",))]
            if signs:
                message = f"must not hold {signs[0]!r}, got {shown(text)}"
                hint = f"{SIGNS[signs[0]]} wherever a manifest has it"
                yield draft.problem(place, message, code="template-syntax", hint=hint)
