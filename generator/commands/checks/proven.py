"""Which specs need not be read: those whose newest merged batch was made from exactly these bytes.

Such a batch, with those before it, lists every trial of the spec. A repository keeps its specs for ever,
and to read thousands would take minutes.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from generator.commands.checks.scene import Scene
from generator.commands.workspace import SETTINGS_FILE, SUFFIX
from generator.formats.lock import LOCK_FILE
from generator.repo.batches import StoredBatch
from generator.repo.contents import blob_id
from generator.repo.files import read_input
from generator.structs.values import bytes_digest


def unproven(scene: Scene, paths: Iterable[Path]) -> Iterator[Path]:
    """Choose the specs that must be read; all of them where the settings are not those that stand."""
    newest = _newest(scene) if _same_settings(scene) else {}
    growing = {batch.sweep for batch in scene.added}
    for path in paths:
        name = path.name.removesuffix(SUFFIX)
        batch = None if name in growing else newest.get(name)
        if batch is None or not _was_made_from(batch, read_input(path)):
            yield path


def _newest(scene: Scene) -> dict[str, StoredBatch]:
    """Give each sweep's last batch at the base; the batches come in the order of their numbers."""
    return {batch.sweep: batch for batch in scene.standing}


def _was_made_from(batch: StoredBatch, spec: bytes) -> bool:
    """Search the lock for the spec's digest: a merged lock need not be parsed to be believed."""
    try:
        return bytes_digest(spec).encode() in batch.contents.read(LOCK_FILE)
    except KeyError:
        return False


def _same_settings(scene: Scene) -> bool:
    path = scene.workspace.root / SETTINGS_FILE
    stood = scene.entries.get(SETTINGS_FILE)
    if stood is None:
        return not path.exists()
    return path.is_file() and blob_id(read_input(path), like=stood.id) == stood.id
