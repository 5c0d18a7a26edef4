"""What a changed spec must not do to a sweep that has batches already."""

from collections.abc import Iterator, Sequence

from generator.commands import committed
from generator.commands.workspace import Workspace
from generator.problems import Problem
from generator.repo.batches import StoredBatch
from generator.repo.git import commits
from generator.structs.program import LOCAL_IMAGE, Program
from generator.structs.settings import Controller
from generator.structs.sweep import Draw, Sampler, Sweep


def refused(
    workspace: Workspace, sweep: Sweep, old: Sequence[StoredBatch], program: Program
) -> Iterator[Problem]:
    """Refuse what would make a batch that cannot run, or one whose trials are not those of the spec."""
    yield from _imageless(workspace, sweep, program)
    yield from _moved(workspace, sweep, old)


def _imageless(workspace: Workspace, sweep: Sweep, program: Program) -> Iterator[Problem]:
    """A lock from before there was a controller may hold no image, and no cluster can run that."""
    controller = workspace.settings.controller
    if controller is not Controller.NONE and program.image == LOCAL_IMAGE:
        found = f"as controller is {str(controller)!r}; {LOCAL_IMAGE!r} is locked"
        message = f"must be an image of the cluster, {found}"
        hint = f"`sweep update {sweep.name}` takes today's image, and asks for every trial anew"
        yield Problem(sweep.path, 0, 0, "run.image", message, code="image-missing", hint=hint)


def _moved(workspace: Workspace, sweep: Sweep, old: Sequence[StoredBatch]) -> Iterator[Problem]:
    """Refuse another number of points in a Latin hypercube that batches were made of: all would move."""
    drawn = [block for block in sweep.blocks if _is_hypercube(block)]
    if not drawn or not old:
        return
    for former in _former(workspace, sweep, {batch.lock.spec_digest for batch in old}):
        for block in drawn:
            for before in filter(_is_hypercube, former.blocks):
                assert isinstance(block, Draw)
                assert isinstance(before, Draw)
                if _draws(block) == _draws(before) and block.cap != before.cap:
                    message = (
                        f"must stay {before.cap} for a latin-hypercube that has batches, got {block.cap}"
                    )
                    hint = "other counts draw other points: use sobol, or add a block with another seed"
                    yield Problem.at(sweep.path, block.place, message, code="hypercube-count", hint=hint)


def _is_hypercube(block: object) -> bool:
    return isinstance(block, Draw) and block.sampler is Sampler.LATIN_HYPERCUBE


def _draws(block: Draw) -> object:
    """Give what decides the points beside their number."""
    parameters = [(parameter.name, parameter.domain) for parameter in block.space.parameters]
    return block.seed, parameters, block.space.zips


def _former(workspace: Workspace, sweep: Sweep, digests: set[str]) -> Iterator[Sweep]:
    """Find the versions of the spec that batches were made of, in the history of what is checked out."""
    for commit in commits(workspace.repository, sweep.path):
        former = committed.sweep(workspace.repository, commit.id, sweep.path, workspace.settings)
        if isinstance(former, Sweep) and former.digest in digests:
            yield former
