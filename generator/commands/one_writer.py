"""One collector at a time, by a Lease, and none that takes a branch for what it was made to forget."""

from collections.abc import Iterator
from contextlib import contextmanager

from generator.commands.collect import Target
from generator.engine.cluster.kubectl import Kubectl
from generator.engine.cluster.lease import LAST_COMMIT, NAME, Lease
from generator.errors import RepositoryError
from generator.render.platform import Names
from generator.repo.git import follows
from generator.structs.settings import Settings


@contextmanager
def one_writer(kubectl: Kubectl, namespace: str, target: Target) -> Iterator[tuple[str, ...]]:
    """Hold the collector's Lease, where there is one, for a block; yield what a person should know of it.

    Without it the block runs all the same: git refuses whoever is late, so results are right, and only the
    memory of the branch is lacking. Raises RepositoryError where the branch lost what was seen of it.
    """
    if target.remote is None:
        yield ()
        return
    lease = Lease(kubectl, Names.of(Settings(namespace=namespace)).collector)
    why_not = lease.take()
    seen = lease.last_commit
    try:
        tip = target.tip()
        _refuse_shorter(target, tip, lease)
        seen = tip
        yield () if why_not is None else (f"without its Lease, as {why_not}",)
        seen = target.tip()
    finally:
        lease.give_back(seen)


def _refuse_shorter(target: Target, tip: str | None, lease: Lease) -> None:
    last = lease.last_commit
    if last is None or tip is None or target.remote is None:
        return
    if not follows(target.repository, target.remote, target.branch, tip, last):
        raise RepositoryError(
            f"{target.branch} is at {tip[:12]}, which does not follow {last[:12]}, seen there before: its "
            "history was cut or rewritten, and nothing is recorded on top",
            hint=f"restore it; or, if it is meant so: `kubectl --namespace {lease.namespace} annotate lease "
            f"{NAME} {LAST_COMMIT}-`",
        )
