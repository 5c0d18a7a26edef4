"""The search space: named domains in the order a person wrote them."""

from dataclasses import dataclass

from generator.structs.values import Value, canonical_json


@dataclass(frozen=True, slots=True)
class Constant:
    """One value for every trial."""

    value: Value


@dataclass(frozen=True, slots=True)
class Choice:
    """Any one of several distinct values."""

    values: tuple[Value, ...]

    def __post_init__(self) -> None:
        if not self.values:
            raise ValueError("a choice must have at least one value, but got none")
        if len({canonical_json(value) for value in self.values}) < len(self.values):
            raise ValueError(f"the values of a choice must differ, but got {self.values!r}")


Domain = Constant | Choice


@dataclass(frozen=True, slots=True)
class Parameter:
    """A named dimension of the search."""

    name: str
    domain: Domain


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """All dimensions; their order decides the order of trials, never their identity."""

    parameters: tuple[Parameter, ...]

    def __post_init__(self) -> None:
        if len(set(self.names)) < len(self.parameters):
            raise ValueError(f"parameter names must differ, but got {self.names!r}")

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters' names, in the order written."""
        return tuple(parameter.name for parameter in self.parameters)
