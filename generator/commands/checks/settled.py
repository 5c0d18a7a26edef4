"""New batches are judged by settings that stand: nobody widens a limit and uses it in one change."""

from collections.abc import Iterator

from generator.commands.checks.scene import Scene
from generator.commands.workspace import SETTINGS_FILE
from generator.problems import Problem


def check(scene: Scene) -> Iterator[Problem]:
    """Refuse new batches beside settings that say something else than those of the base."""
    if SETTINGS_FILE in scene.entries and scene.added and scene.workspace.settings != scene.settings:
        message = f"must not change together with new batches, got {len(scene.added)}: they are judged by it"
        hint = "merge the settings first, then ask for the batches"
        yield Problem(SETTINGS_FILE, 0, 0, "", message, "settings-changed", hint)
