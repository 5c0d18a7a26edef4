"""What a changed spec must not do to a sweep that has batches already."""

from collections.abc import Iterator, Sequence

from generator.commands import committed
from generator.commands.workspace import Workspace
from generator.problems import Problem
from generator.repo.batches import StoredBatch
from generator.repo.git import commits
from generator.structs.sweep import Draw, Sampler, Sweep


def refused(workspace: Workspace, sweep: Sweep, old: Sequence[StoredBatch]) -> Iterator[Problem]:
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
