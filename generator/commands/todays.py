"""What a sweep's spec asks for as a commit holds it: what its results are held against."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from generator.commands import committed
from generator.repo.git import Repository
from generator.results import BatchResults, Summary, summarise
from generator.results.outcomes import Asked
from generator.search.membership import membership
from generator.structs.sweep import Sweep
from generator.structs.values import bytes_digest


@dataclass(frozen=True)
class Todays:
    """A spec, or what is left of one that cannot be read."""

    sweep: Sweep | None
    """None where nobody can read it: then nothing is refused for it, and nothing asked."""
    content: bytes | None
    """None where there is no such file."""

    @classmethod
    def at(cls, repository: Repository, commit: str, path: str) -> "Todays":
        """Read it as a commit holds it, and what it names beside itself. Raises RepositoryError."""
        found = committed.sweep(repository, commit, path, committed.standing_settings(repository, commit))
        content = repository.read(commit, path).get(path)
        return cls(found if isinstance(found, Sweep) else None, content)

    @property
    def cancelled(self) -> tuple[str, ...]:
        """Name the batches that are not to go on."""
        return self.sweep.cancel if self.sweep else ()

    def asked(self, batches: Iterable[BatchResults]) -> Asked | None:
        """Give the question which trials of these batches it asks for; None where it cannot be expanded.

        A batch that was generated from the same spec, and the same file beside it, lists nothing else:
        then the spec is not expanded, which for some methods takes more memory than all the results.
        """
        if self.sweep is None:
            return None
        if all(batch.lock.spec_digest == self.sweep.digest for batch in batches):
            return lambda _assignment, _replicate: True
        found = membership(self.sweep)
        return None if isinstance(found, tuple) else found

    def summarised(self, batches: Iterable[BatchResults]) -> Summary:
        """Summarise a sweep's batches against it. Raises ValueError."""
        found, search = tuple(batches), self.sweep.search if self.sweep else None
        made = summarise(
            found,
            description=self.sweep.description if self.sweep else "",
            asked=self.asked(found),
            spec_digest=None if self.content is None else bytes_digest(self.content),
        )
        return replace(made, resource=search.resource.parameter) if search and search.resource else made
