"""Settings and specs as a commit holds them, whatever lies in the work tree."""

from pathlib import PurePosixPath

from generator import spec
from generator.commands.workspace import SETTINGS_FILE
from generator.problems import Problem
from generator.repo.git import Repository
from generator.structs.settings import Settings
from generator.structs.sweep import Sweep


def settings(repository: Repository, commit: str | None) -> Settings | tuple[Problem, ...]:
    """Read the settings of a commit; the defaults where it has none."""
    content = repository.read(commit, SETTINGS_FILE).get(SETTINGS_FILE)
    return Settings() if content is None else spec.parse_settings(content, SETTINGS_FILE)


def standing_settings(repository: Repository, commit: str | None) -> Settings:
    """Read the settings of a commit; the defaults where it has none, or where they cannot be read."""
    found = settings(repository, commit)
    return found if isinstance(found, Settings) else Settings()


def sweep(
    repository: Repository, commit: str | None, path: str, chosen: Settings
) -> Sweep | tuple[Problem, ...]:
    """Read a spec of a commit, and what it names beside itself."""

    def beside(name: str) -> bytes | None:
        place = str(PurePosixPath(path).with_name(name))
        return repository.read(commit, place).get(place)

    return spec.parse(repository.read(commit, path).get(path, b""), path, chosen, beside=beside)
