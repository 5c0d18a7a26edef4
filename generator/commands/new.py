"""`sweep new`: a commented spec to start from."""

import os
from pathlib import Path

from generator.commands.workspace import SPECS, Workspace
from generator.errors import UsageError
from generator.repo import files
from generator.spec.schemas import schema_text
from generator.spec.starter import MNIST, PLAIN, SCHEMA_FILE, starter
from generator.structs.names import RESERVED_SWEEP_NAMES, SWEEP_NAME_LENGTH, is_sweep_name


def new(workspace: Workspace, name: str) -> Path:
    """Write `sweeps/<name>.yaml`, and the schema that editors explain its keys by.

    Raises UsageError if the name is no name or taken, StorageError where `sweeps/` is a link.
    """
    if name in RESERVED_SWEEP_NAMES:
        raise UsageError(f"{name!r} is reserved", hint="choose another name")
    if not is_sweep_name(name):
        raise UsageError(
            f"{name!r} is no sweep name",
            hint=f"lower-case letters, digits and dashes, a letter first, at most {SWEEP_NAME_LENGTH}",
        )
    path = workspace.root / SPECS / f"{name}.yaml"
    files.refuse_links(workspace.root, SPECS)
    if os.path.lexists(path):
        raise UsageError(f"{SPECS}/{name}.yaml exists", hint="choose another name, or edit it")
    settings = workspace.settings
    has_mnist = "mnist" in settings.datasets and (workspace.root / "trainer").is_dir()
    text = starter(name, example=MNIST if has_mnist else PLAIN, clones=settings.code is not None)
    # Committed beside the specs, so that every clone has it, offline, in the version that wrote them.
    files.write_file(path.with_name(SCHEMA_FILE), schema_text("sweep").encode())
    files.write_file(path, text.encode())
    return path
