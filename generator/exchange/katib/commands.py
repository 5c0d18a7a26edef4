"""A trial's command, from Katib's placeholders to our macros."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from generator.exchange.loss import Loss
from generator.structs.names import environment_name

ARGS = "${args}"
NO_HYPHENS = "${args_no_hyphens}"

PLACEHOLDER = re.compile(r"\$\{trialParameters\.(?P<parameter>[^}]+)\}")
META = re.compile(r"\$\{trialSpec\.(?P<meta>[^}]+)\}")
KUBERNETES = re.compile(r"\$(?P<escaped>\$\()|\$\((?P<variable>[A-Za-z_][A-Za-z0-9_]*)\)")
SHELL = re.compile(r"\$\{(?!envvar:)(?P<variable>[A-Za-z_][A-Za-z0-9_]*)\}")
TRIAL = "${envvar:SWEEP_TRIAL_ID}"

ACTION = re.compile(r"\{\{-?\s*(?P<action>[^}]*?)\s*-?\}\}")
BLOCK = re.compile(r"^\s*(?:\{\{-?\s*(?:with|range|end|else)[^}]*\}\}\s*)+$")
PAIR = re.compile(r"(?P<dashes>-*)\{\{-?\s*\.Name\s*-?\}\}=\{\{-?\s*\.Value\s*-?\}\}")


@dataclass(slots=True)
class Told:
    """A container's command on its way into our words, and what is lost on it."""

    names: Mapping[str, str]
    """Our parameters by the names of Katib's placeholders."""
    variables: Mapping[str, str]
    """Set for the container, with Katib's placeholders in them."""
    path: str
    losses: list[Loss] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)
    """The variables in our words; as in Kubernetes, each may use those before it."""

    def command(self, elements: Sequence[str]) -> list[str]:
        """Put our macros for the placeholders; variables are set by `env`, before the program."""
        spread = _spread(elements, self.names)
        if spread is not None:
            elements = [*elements[: spread[0]], ARGS, *elements[spread[1] :]]
        for name, value in self.variables.items():
            self.settings[name] = self.text(value, f"env {name}")
        written = [
            text if text in {ARGS, NO_HYPHENS} else self.text(text, f"{self.path}[{place}]")
            for place, text in enumerate(elements)
        ]
        settings = [f"{name}={value}" for name, value in self.settings.items()]
        return ["${env}", *settings, *written] if settings else written

    def text(self, text: str, where: str) -> str:
        """Translate one element."""
        # What a shell would fill in is looked for before our own macros are put in.
        text = SHELL.sub(lambda found: self._shell(found, where), text)
        text = META.sub(lambda found: self._meta(found, where), text)
        text = PLACEHOLDER.sub(lambda found: self._parameter(found, where), text)
        return KUBERNETES.sub(lambda found: self._kubernetes(found, where), text)

    def _parameter(self, found: re.Match[str], where: str) -> str:
        foreign = found["parameter"]
        if foreign in self.names:
            return f"${{envvar:{environment_name(self.names[foreign])}}}"
        self.losses.append(Loss(f"{where}: {found[0]}", "names no parameter of the search; left out"))
        return ""

    def _meta(self, found: re.Match[str], where: str) -> str:
        if found["meta"] == "Name":
            self.losses.append(Loss(f"{where}: {found[0]}", f"the trial's own id stands there: {TRIAL}"))
            return TRIAL
        self.losses.append(Loss(f"{where}: {found[0]}", "has no counterpart here; left out"))
        return ""

    def _shell(self, found: re.Match[str], where: str) -> str:
        why = "filled in before the command starts, since `${` opens a macro here"
        self.losses.append(Loss(f"{where}: {found[0]}", why))
        return f"${{envvar:{found['variable']}}}"

    def _kubernetes(self, found: re.Match[str], where: str) -> str:
        if found["escaped"]:
            self.losses.append(
                Loss(f"{where}: $(", "is refused in a command: move what a shell does into a script")
            )
            return "$("
        name = found["variable"]
        return self.settings.get(name, f"${{envvar:{name}}}")


def _spread(command: Sequence[str], names: Mapping[str, str]) -> tuple[int, int] | None:
    """Find the run of elements that is what `${args}` would give: each parameter once, as --name=value."""
    wanted = {f"--{name}=${{trialParameters.{foreign}}}" for foreign, name in names.items()}
    places = [place for place, element in enumerate(command) if PLACEHOLDER.search(element)]
    if not wanted or {command[place] for place in places} != wanted or len(places) != len(wanted):
        return None
    first, last = places[0], places[-1] + 1
    return (first, last) if last - first == len(places) else None


def go_template(text: str, foreign_names: Sequence[str], *, path: str) -> tuple[str, list[Loss]]:
    """Make a v1alpha3 Go template plain YAML: its one loop over the parameters becomes a macro."""
    losses: list[Loss] = []
    dashed = all(name.startswith("--") for name in foreign_names)

    def pair(found: re.Match[str]) -> str:
        if dashed or found["dashes"]:
            return ARGS
        if any(name.startswith("-") for name in foreign_names):
            losses.append(Loss(f"{path}: {found[0]}", f"written {ARGS}, which puts -- before every name"))
            return ARGS
        return NO_HYPHENS

    def action(found: re.Match[str]) -> str:
        if found["action"] in {".Trial", ".NameSpace"}:
            return "trial"
        losses.append(
            Loss(f"{path}: {found[0]}", "an action of the template that has no counterpart; left out")
        )
        return ""

    lines = [PAIR.sub(pair, line) for line in text.splitlines() if not BLOCK.match(line)]
    return "\n".join(ACTION.sub(action, line) for line in lines) + "\n", losses
