"""A Secret that the platform needs and git never has."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RequiredSecret:
    """A Secret that a person makes; its content is never in git, nor on a command line."""

    purpose: str
    namespace: str
    name: str
    keys: tuple[str, ...]
    """Each is read from a file of its own."""
    type: str | None = None
    literals: tuple[str, ...] = ()
    label: str | None = None
    is_elsewhere: bool = False
    """It lies in the cluster of the controller, which is not that of the trials."""

    @property
    def title(self) -> str:
        """Return kind and name, with the namespace."""
        return f"Secret {self.namespace}/{self.name}"

    @property
    def commands(self) -> tuple[str, ...]:
        """Return the commands that create it from files named like its keys."""
        words = ["kubectl", "--namespace", self.namespace, "create", "secret", "generic", self.name]
        words += [f"--type={self.type}"] if self.type else []
        words += [f"--from-literal={literal}" for literal in self.literals]
        words += [f"--from-file={key}=./{key.lstrip('.')}" for key in self.keys]
        make = " ".join(words)
        if self.label is None:
            return (make,)
        return (make, f"kubectl --namespace {self.namespace} label secret {self.name} {self.label}")
