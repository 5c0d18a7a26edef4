"""What a commit asks a cluster for: its active overlays, rendered, checked, with code and data."""

from dataclasses import dataclass, field
from pathlib import Path

from generator.commands import committed, recorded
from generator.commands.rendering import rendered
from generator.engine import datasets
from generator.engine.local import manifests
from generator.engine.local.launching import Desired
from generator.errors import GeneratorError, RepositoryError, SpecError, UnreadableError
from generator.problems import Problem
from generator.repo import batches
from generator.repo.batches import StoredBatch
from generator.repo.git import Mirror
from generator.structs.settings import Settings


@dataclass(frozen=True)
class Refused:
    """An active batch that cannot run here, and why. The others go on."""

    batch: str
    problems: tuple[Problem, ...]


@dataclass
class Cluster:
    """Turns commits into desired state. A batch never changes, so each is rendered once."""

    mirror: Mirror
    state: Path
    _rendered: dict[str, Desired] = field(default_factory=dict)

    def settings(self, commit: str) -> Settings:
        """Read the settings of a commit. Raises SpecError."""
        found = committed.settings(self.mirror.repository, commit)
        if isinstance(found, tuple):
            raise SpecError(found)
        return found

    def active(self, commit: str) -> tuple[StoredBatch, ...]:
        """List the batches that the commit asks for."""
        return tuple(batch for batch in batches.in_commit(self.mirror.repository, commit) if batch.is_active)

    def pending(self, commit: str) -> tuple[str, ...]:
        """Name the cancelled batches that wait to be recorded."""
        stored = batches.in_commit(self.mirror.repository, commit)
        return tuple(batch.name for batch in recorded.pending(self.mirror.repository, commit, stored))

    def desired(self, commit: str, batch: StoredBatch) -> Desired | Refused:
        """Render one batch, or say why it cannot run. What failed is tried again at the next look."""
        if batch.name not in self._rendered:
            found = self._try(commit, batch)
            if isinstance(found, Refused):
                return found
            self._rendered[batch.name] = found
        return self._rendered[batch.name]

    def _try(self, commit: str, batch: StoredBatch) -> Desired | Refused:
        try:
            return self._render(commit, batch)
        except (SpecError, UnreadableError) as error:
            return Refused(batch.name, error.problems)
        except GeneratorError as error:
            return Refused(
                batch.name, (Problem(batch.folder, 0, 0, "", str(error), "cannot-run", error.hint),)
            )

    def _render(self, commit: str, batch: StoredBatch) -> Desired | Refused:
        settings = self.settings(commit)
        built = rendered(self.mirror.repository, commit, batch, settings)
        wrong = tuple(one for one in built if isinstance(one, Problem))
        if wrong:
            return Refused(batch.name, wrong)
        parsed = manifests.parse(batch.name, [one for one in built if not isinstance(one, Problem)])
        if isinstance(parsed, tuple):
            return Refused(batch.name, parsed)
        program = batch.lock.program
        code = self.mirror.code(program.code.tree, program.code.path)
        return Desired(parsed, code, self._data(batch, settings, code))

    def _data(self, batch: StoredBatch, settings: Settings, code: Path) -> Path | None:
        data = batch.lock.program.data
        if data is None:
            return None
        dataset = settings.datasets.get(data.name)
        if dataset is None or dataset.identity != data.digest:
            raise RepositoryError(
                f"{batch.name} locked dataset {data.name} at {data.digest[:19]}; the settings name another",
                hint=f"restore datasets.{data.name}.digest, or run `sweep update {batch.lock.sweep}`",
            )
        return datasets.ready(dataset, self.state / "data" / data.name, code=code)
