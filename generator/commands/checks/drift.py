"""Generated files are what the generator writes, and their code can be found again."""

from collections.abc import Iterator

from generator.commands import generate
from generator.commands.checks.scene import Scene
from generator.commands.edits import EditedError
from generator.formats.lock import LOCK_FILE
from generator.problems import Problem
from generator.repo.batches import ACTIVE
from generator.repo.git import reachable_trees
from generator.structs.sweep import Sweep


def check(scene: Scene, sweeps: tuple[Sweep, ...]) -> Iterator[Problem]:
    """Hold the work tree's new batches against the specs. Raises as generate does.

    Warnings are passed on as long as trials are new: who has merged them has read them.
    """
    try:
        planned = generate.plan(scene.workspace, sweeps, base=scene.base)
    except EditedError as error:
        yield Problem(ACTIVE, 0, 0, "", str(error), "batch-forged", error.hint)
        return
    for generated in planned:
        yield from generated.warnings if generated.batch else ()
        way_out = f"run `sweep generate {generated.sweep.name}` and commit what it writes"
        if generated.batch and not generated.is_written:
            count = generated.batch.lock.trials
            message = f"{count} trial(s) that no batch lists; {generated.batch.name} is missing"
            yield Problem(generated.sweep.path, 0, 0, "", message, "drift", way_out)
        for stale in generated.stale:
            yield Problem(stale.folder, 0, 0, "", "the spec does not give this batch", "drift", way_out)
    yield from _orphans(scene, sweeps)
    yield from _asked_twice(scene)
    yield from _code(scene)


def _orphans(scene: Scene, sweeps: tuple[Sweep, ...]) -> Iterator[Problem]:
    names = {sweep.name for sweep in sweeps}
    for batch in scene.added:
        if batch.is_active and batch.lock.sweep not in names:
            message = f"belongs to no spec: sweeps/{batch.lock.sweep}.yaml is missing"
            yield Problem(batch.folder, 0, 0, "", message, "drift", "add the spec, or remove the folder")


def _asked_twice(scene: Scene) -> Iterator[Problem]:
    """A trial that stands already is not paid for again."""
    held = {trial.digest: batch.name for batch in scene.standing for trial in batch.trials}
    for batch in scene.added:
        for trial in batch.trials:
            if trial.digest in held:
                message = f"{trial.id} is in {held[trial.digest]} already"
                yield Problem(batch.folder, 0, 0, "", message, "trial-asked-twice", "run `sweep generate`")
                break


def _code(scene: Scene) -> Iterator[Problem]:
    """A locked tree that no merged commit holds would be lost with the branch that made it."""
    for batch in scene.added:
        code = batch.lock.program.code
        if code.tree not in reachable_trees(scene.workspace.repository, ("HEAD", scene.base), code.path):
            yield Problem(
                f"{batch.folder}/{LOCK_FILE}",
                0,
                0,
                "program.code.tree",
                f"{code.path}/ at {code.tree[:12]} is in no commit that will be merged",
                "code-unreachable",
                f"run `sweep update {batch.lock.sweep}`",
            )
