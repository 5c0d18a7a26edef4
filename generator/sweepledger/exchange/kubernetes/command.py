"""A container's command as a command with macros."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sweepledger.exchange.conversion import LossList
from sweepledger.structs.names import environment_name

ARGS = "${args}"
NO_HYPHENS = "${args_no_hyphens}"

PLACEHOLDER = re.compile(r"\$\{trialParameters\.(?P<parameter>[^}]+)\}")
META = re.compile(r"\$\{trialSpec\.(?P<meta>[^}]+)\}")
KUBERNETES = re.compile(r"\$(?P<escaped>\$\()|\$\((?P<variable>[A-Za-z_][A-Za-z0-9_]*)\)")
SHELL = re.compile(r"\$\{(?!envvar:)(?P<variable>[A-Za-z_][A-Za-z0-9_]*)\}")
TRIAL = "${envvar:SWEEP_TRIAL_ID}"
RESULT = "${envvar:SWEEP_RESULT}"


@dataclass(frozen=True, slots=True)
class Placeholders:
    """The parameters that a manifest names in Katib's form, and the file of its metrics."""

    names: Mapping[str, str]
    """Parameters of the sweep by the names in placeholders."""
    result_file: str | None = None
    """The file to which the program writes its metrics: replaced by `$SWEEP_RESULT`."""


@dataclass(slots=True)
class CommandTranslator:
    """Translates a container's command to macros, and collects its losses."""

    placeholders: Placeholders
    variables: Mapping[str, str]
    """Variables of the container, whose values may contain Katib's placeholders."""
    path: str
    losses: LossList
    passes_result_file: bool = False
    """Whether the program was given the file of its metrics, which is now `$SWEEP_RESULT`."""
    settings: dict[str, str] = field(default_factory=dict)
    """The translated variables; as in Kubernetes, each may use those before it."""

    def command(self, elements: Sequence[str], *, program: Sequence[str] = ()) -> list[str]:
        """Return the command with macros for placeholders; `env` sets the variables before the program.

        A program that the file does not name goes before the elements, and may contain macros.
        """
        spread = _spread(elements, self.placeholders)
        if spread is not None:
            elements = [*elements[: spread[0]], ARGS, *elements[spread[1] :]]
        for name, value in self.variables.items():
            self.settings[name] = self.text(value, f"env {name}")
        written = [
            element if element in {ARGS, NO_HYPHENS} else self.text(element, f"{self.path}[{place}]")
            for place, element in enumerate(elements)
        ]
        settings = [f"{name}={value}" for name, value in self.settings.items()]
        return [*(["${env}", *settings] if settings else []), *program, *written]

    def text(self, text: str, where: str) -> str:
        """Return an element of the command with macros for Katib's placeholders."""
        # Shell variables are replaced before macros, which have the same syntax, are inserted.
        text = SHELL.sub(lambda match: self._shell(match, where), text)
        text = META.sub(lambda match: self._meta(match, where), text)
        text = PLACEHOLDER.sub(lambda match: self._parameter(match, where), text)
        return self._result_file(KUBERNETES.sub(lambda match: self._kubernetes(match, where), text))

    def _result_file(self, text: str) -> str:
        """Return an argument that is, or ends in, the file of metrics with `$SWEEP_RESULT` instead."""
        file = self.placeholders.result_file
        if file is None or not (text == file or text.endswith(f"={file}")):
            return text
        self.passes_result_file = True
        return text.removesuffix(file) + RESULT

    def _parameter(self, match: re.Match[str], where: str) -> str:
        foreign = match["parameter"]
        if foreign in self.placeholders.names:
            return f"${{envvar:{environment_name(self.placeholders.names[foreign])}}}"
        self.losses.add(f"{where}: {match[0]}", "is not a parameter of the search; left out")
        return ""

    def _meta(self, match: re.Match[str], where: str) -> str:
        if match["meta"] == "Name":
            self.losses.add(f"{where}: {match[0]}", f"replaced by the trial's id: {TRIAL}")
            return TRIAL
        self.losses.add(f"{where}: {match[0]}", "has no counterpart here; left out")
        return ""

    def _shell(self, match: re.Match[str], where: str) -> str:
        why = "replaced before the command starts, because `${` begins a macro here"
        self.losses.add(f"{where}: {match[0]}", why)
        return f"${{envvar:{match['variable']}}}"

    def _kubernetes(self, match: re.Match[str], where: str) -> str:
        if match["escaped"]:
            self.losses.add(f"{where}: $(", "is not allowed in a command: move shell code to a script")
            return "$("
        name = match["variable"]
        return self.settings.get(name, f"${{envvar:{name}}}")


def _spread(command: Sequence[str], placeholders: Placeholders) -> tuple[int, int] | None:
    """Return the range of elements that equals `${args}`: each parameter once, as --name=value."""
    places = [place for place, element in enumerate(command) if PLACEHOLDER.search(element)]
    spread = [_whole_option(command[place], placeholders) for place in places]
    if not places or None in spread or sorted(map(str, spread)) != sorted(placeholders.names.values()):
        return None
    first, last = places[0], places[-1] + 1
    return (first, last) if last - first == len(places) else None


def _whole_option(element: str, placeholders: Placeholders) -> str | None:
    """Return the parameter of an element that is `--name=` and its placeholder."""
    option, _, value = element.partition("=")
    match = PLACEHOLDER.fullmatch(value)
    name = placeholders.names.get(match["parameter"]) if match else None
    return name if name is not None and option == f"--{name}" else None
