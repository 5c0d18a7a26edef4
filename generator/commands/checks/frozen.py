"""What merged overlays or the platform were made from, or build on, never changes."""

from collections.abc import Iterator

from generator.commands.bootstrap import BASES
from generator.commands.checks.scene import BASE, VERSION, Scene, bases_of, load_bases
from generator.formats.bootstrap import BOOTSTRAP_FILE
from generator.problems import Problem


def check(scene: Scene) -> Iterator[Problem]:
    """Compare the bases that the base commit's overlays, active or archived, and platform refer to."""
    doubtful = [path for path in sorted(scene.changed_bases) if _stood(scene, path)]
    if not doubtful:
        return  # new versions only: no lock of thousands need be read
    load_bases(scene.standing)
    referred = {
        folder: "merged overlays refer to it" for batch in scene.standing for folder in bases_of(batch)
    }
    if BOOTSTRAP_FILE in scene.entries:
        referred |= {f"{BASE}{name}": "the files in clusters/ are made from it" for name in BASES}
    for path in doubtful:
        for folder in sorted(referred):
            if path.startswith(f"{folder}/"):
                message = f"{folder} is frozen: {referred[folder]}"
                yield Problem(path, 0, 0, "", message, "base-changed", "add a new version folder beside it")


def _stood(scene: Scene, path: str) -> bool:
    """Tell whether the version folder around a path is one of the base commit."""
    found = VERSION.match(path)
    return found is None or found[0] in scene.versions
