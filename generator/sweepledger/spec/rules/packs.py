"""Several trials in one pod: numbers, shapes and stores."""

from collections.abc import Iterator

from sweepledger.problems import Problem
from sweepledger.reader import safe_repr
from sweepledger.spec.draft import Draft
from sweepledger.spec.rules.methods import RESOURCE_METHODS
from sweepledger.spec.rules.workload import chosen_shape
from sweepledger.structs.run_config import Shape
from sweepledger.structs.settings import ResultsStore

PACK = ("run", "pack")


def pack_bounds(draft: Draft) -> Iterator[Problem]:
    """A pod runs at most its trials at once, and as many pods run as `parallelism` has room for."""
    trials, at_once = draft.number(*PACK, "trials"), draft.number(*PACK, "at_once") or 1
    if trials is not None and at_once > trials:
        message = f"must be at most pack.trials ({trials}), got {at_once}"
        yield draft.problem((*PACK, "at_once"), message, code="pack-bounds", hint="a pod has no other trials")
    parallelism = draft.number("run", "parallelism")
    if trials is not None and parallelism is not None and parallelism % at_once:
        below = int(parallelism // at_once * at_once)
        hint = " or ".join(str(number) for number in (below, below + at_once) if number)
        message = f"must be a multiple of pack.at_once ({at_once}), got {parallelism}"
        yield draft.problem(("run", "parallelism"), message, code="pack-bounds", hint=f"write {hint}")


def pack_shape(draft: Draft) -> Iterator[Problem]:
    """Only an Indexed Job of all trials has pods with several rows, and it counts their failures by pod."""
    if "pack" not in draft.names("run"):
        return
    shape, method = chosen_shape(draft), draft.get("method", kind=str)
    if shape not in {None, Shape.INDEXED}:
        message = f"needs shape 'indexed', got {str(shape)!r}"
        yield draft.problem(PACK, message, code="pack-shape", hint="delete one of both keys", at_key=True)
    if method in RESOURCE_METHODS:
        message = f"needs a method whose trials mount no other trial's checkpoints, got {safe_repr(method)}"
        hint = "delete the key: each trial of this method has a pod of its own"
        yield draft.problem(PACK, message, code="pack-shape", hint=hint, at_key=True)
    if "max_failed" in draft.names("run"):
        message = "must be absent with pack: the Job would count pods, not trials"
        place = ("run", "max_failed")
        yield draft.problem(place, message, code="pack-shape", hint="delete one of both keys", at_key=True)


STORES_WITHOUT_PACKS = {
    ResultsStore.API: "only a message outlives a pod there, and the next pod could not know which trials are done",
    ResultsStore.CLAIM: "records travel in a pod's message there, which has room for that of one trial",
}


def pack_store(draft: Draft) -> Iterator[Problem]:
    """Pods of several trials need a store that has the records of all of them, and what earlier pods have begun."""
    store = draft.settings.results.store
    if "pack" not in draft.names("run"):
        return
    if why := STORES_WITHOUT_PACKS.get(store):
        message = f"needs results.store: volume or bucket, got {store}"
        hint = f"delete the key, or choose another store in sweepledger.yaml: {why}"
        yield draft.problem(PACK, message, code="store-pack", hint=hint, at_key=True)
