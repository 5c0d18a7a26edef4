"""Generated files are what the generator writes, and their code can be found again."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from generator.commands import generate
from generator.commands.checks import afforded, builds
from generator.commands.checks.scene import Scene
from generator.commands.edits import EditedError
from generator.commands.generate import Generated, Stored
from generator.commands.rounds import Due, Over, Step, Waiting
from generator.commands.workspace import SPECS, SUFFIX
from generator.errors import RepositoryError, UnreadableError
from generator.formats.lock import LOCK_FILE
from generator.problems import Problem, Severity
from generator.repo import batches
from generator.repo.contents import blob_id
from generator.repo.files import read_input
from generator.repo.git import reachable_trees
from generator.structs.settings import Generate
from generator.structs.sweep import Sweep


def illegible(scene: Scene) -> Iterator[Problem]:
    """Find new batches that do not even say what they are: nothing else can be asked of them."""
    for batch in scene.added:
        try:
            _ = batch.lock
        except RepositoryError as error:
            hint = "remove the folder and run `sweep generate`"
            yield Problem(f"{batch.folder}/{LOCK_FILE}", 0, 0, "", str(error), "batch-forged", hint)


def check(scene: Scene, sweeps: tuple[Sweep, ...]) -> Iterator[Problem]:
    """Hold the work tree's new batches against the specs. Raises as generate does.

    Warnings are passed on as long as trials are new: who has merged them has read them.
    """
    stored = Stored(scene.base, scene.standing, scene.present)
    unplanned = {sweep.name: found for sweep in sweeps if (found := tuple(_broken(scene, sweep)))}
    for found in unplanned.values():
        yield from found
    asked = tuple(sweep for sweep in sweeps if sweep.name not in unplanned)
    try:
        planned = generate.plan(scene.workspace, asked, base=scene.base, stored=stored)
    except EditedError as error:
        for path in error.paths:
            yield Problem(path, 0, 0, "", "is not what the generator writes", "batch-forged", error.hint)
        return
    for generated in planned:
        yield from _planned(scene, generated)
    yield from afforded.check(scene, planned)
    yield from _orphans(scene, planned)
    yield from _asked_twice(scene, {one.batch.name for one in planned if one.batch})
    yield from _code(scene)


def _broken(scene: Scene, sweep: Sweep) -> Iterator[Problem]:
    """Tell of batches that were merged past the check, where the change asks nothing of their sweep."""
    if scene.entries.get(sweep.path) != scene.index.get(sweep.path):
        return
    for batch in batches.of_sweep(scene.standing, sweep.name):
        try:
            batch.vetted()
        except UnreadableError as error:
            yield from (replace(problem, severity=Severity.WARNING) for problem in error.problems)


def _planned(scene: Scene, generated: Generated) -> Iterator[Problem]:
    yield from generated.warnings if generated.batch else ()
    path, name = generated.sweep.path, generated.sweep.name
    way_out = f"run `sweep generate {name}` and commit what it writes"
    if generated.step is not None and generated.known:
        yield from _round(generated, generated.step)
        return
    if generated.batch and generated.batch.name not in {batch.name for batch in scene.added}:
        count = generated.batch.lock.trials
        if scene.workspace.settings.generate is Generate.ON_MERGE:
            message = f"{count} trial(s) that no batch lists; their batch is written after the merge"
            yield Problem(path, 0, 0, "", message, "pending", None, Severity.WARNING)
            yield from builds.unwritten(scene, path, generated.batch)
        elif _was_never_generated(scene, generated.sweep):
            # It was merged so, as a new repository's example is: that must stop nobody else's merge.
            message = f"{count} trial(s) that no batch lists yet; {generated.batch.name} is missing"
            yield Problem(path, 0, 0, "", message, "pending", way_out, Severity.WARNING)
        elif generated.retried == count:
            # A results commit may be what makes them due: that must stop nobody else's merge, either.
            message = f"{count} trial(s) are due once more; {generated.batch.name} is missing"
            yield Problem(path, 0, 0, "", message, "pending", way_out, Severity.WARNING)
        else:
            message = f"{count} trial(s) that no batch lists; {generated.batch.name} is missing"
            yield Problem(path, 0, 0, "", message, "drift", way_out)
    for stale in generated.stale:
        yield Problem(stale.folder, 0, 0, "", "the spec does not give this batch", "drift", way_out)


def _was_never_generated(scene: Scene, sweep: Sweep) -> bool:
    """Tell whether this very spec was merged, and neither what stands nor the change has a batch of it."""
    stood = scene.entries.get(sweep.path)
    if stood is None or batches.of_sweep((*scene.standing, *scene.added), sweep.name):
        return False
    return blob_id(read_input(scene.workspace.root / sweep.path), like=stood.id) == stood.id


def _round(generated: Generated, step: Step) -> Iterator[Problem]:
    """A proposed round is the one that the records give; none need be proposed."""
    way_out = f"remove it and run `sweep next {generated.sweep.name}`"
    for stale in generated.stale:
        if isinstance(step, Due) and stale.lock.engine not in {None, step.round.engine}:
            found = f"drawn by {stale.lock.engine}; here is {step.round.engine}"
            message = f"cannot be worked out again: it was {found}"
            hint = f"install that version, or {way_out}"
            yield Problem(f"{stale.folder}/{LOCK_FILE}", 0, 0, "engine", message, "engine-differs", hint)
        else:
            yield Problem(stale.folder, 0, 0, "", _why_not(step), "drift", way_out)


def _why_not(step: Step) -> str:
    match step:
        case Due(round=found, batch=batch):
            return f"the records do not give this batch: round {found.number} is {batch.name}"
        case Waiting(evidence=evidence):
            return f"the records do not give this batch yet: {', '.join(evidence.waiting)} must be recorded"
        case Over(reason=reason, text=text):
            return f"the search is over ({reason}): {text}"


def _orphans(scene: Scene, planned: Iterable[Generated]) -> Iterator[Problem]:
    """New is only what was just planned, and was equal to it; a lock may call itself what it likes."""
    names = {one.batch.name for one in planned if one.batch}
    names |= {batch.name for one in planned for batch in one.stale}
    for batch in scene.added:
        if batch.name not in names:
            message = f"belongs to no spec: {SPECS}/{batch.sweep}{SUFFIX} is missing"
            yield Problem(batch.folder, 0, 0, "", message, "drift", "add the spec, or remove the folder")


def _asked_twice(scene: Scene, planned: Collection[str]) -> Iterator[Problem]:
    """A trial that stands is not paid for again, unless the spec asks for it: such batches are planned."""
    for batch in scene.added:
        if batch.name in planned:
            continue
        others = batches.of_sweep(scene.standing, batch.sweep)
        batches.load(others)
        held = {trial.digest: other.name for other in others for trial in other.trials}
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
                f"run `sweep update {batch.sweep}`",
            )
