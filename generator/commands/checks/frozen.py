"""What merged overlays were made from, or build on, never changes."""

from collections.abc import Iterator

from generator.commands.checks.scene import VERSION, Scene, bases_of
from generator.problems import Problem


def check(scene: Scene) -> Iterator[Problem]:
    """Compare the bases that any overlay at the base commit refers to, active or archived."""
    doubtful = [path for path in sorted(scene.changed_bases) if _stood(scene, path)]
    if not doubtful:
        return  # new versions only: no lock of thousands need be read
    referred = {folder for batch in scene.standing for folder in bases_of(batch)}
    for path in doubtful:
        for folder in sorted(referred):
            if path.startswith(f"{folder}/"):
                message = f"{folder} is frozen: merged overlays refer to it"
                yield Problem(path, 0, 0, "", message, "base-changed", "add a new version folder beside it")


def _stood(scene: Scene, path: str) -> bool:
    """Tell whether the version folder around a path is one of the base commit."""
    found = VERSION.match(path)
    return found is None or found[0] in scene.versions
