"""Keys that go with some shapes only, and what a shape needs."""

from collections.abc import Iterator

from generator.problems import Problem
from generator.reader import shown
from generator.spec.draft import Draft
from generator.spec.rules.program import asked_image
from generator.structs.program import LOCAL_IMAGE
from generator.structs.settings import Controller
from generator.structs.sweep import Shape

RUN_ONCE = frozenset({Shape.MPI_JOB, Shape.PYTORCH_JOB, Shape.TF_JOB})


def chosen(draft: Draft) -> Shape | None:
    """Give the shape that a spec names; None where it names none, or nonsense."""
    name = draft.get("run", "shape", kind=str)
    return Shape(name) if name in set(Shape) else None


def keys(draft: Draft) -> Iterator[Problem]:
    """Pods and processes are of the shapes with several pods, a count of failures is of one Indexed Job."""
    written, shape = draft.names("run"), chosen(draft)
    if "shape" in written and shape is None:
        return
    found = f"got {str(shape)!r}" if shape else "got no shape"
    for key in ("nodes", "processes"):
        if key in written and not (shape and shape.is_distributed):
            message = f"must stand in a shape of several pods, {found}"
            hint = "delete the key, or choose a shape such as train-job or mpi-job"
            yield draft.problem(("run", key), message, code="shape-key", hint=hint, at_key=True)
    if "max_failed" in written and shape not in {None, Shape.INDEXED}:
        message = f"must stand in shape 'indexed', {found}"
        yield draft.problem(
            ("run", "max_failed"), message, code="shape-key", hint="delete the key", at_key=True
        )


def retries(draft: Draft) -> Iterator[Problem]:
    """Some kinds start no pod anew without starting those anew that must not be: their trials run once."""
    shape = chosen(draft)
    written = "retries" in draft.names("run")
    asked = draft.number("run", "retries") if written else draft.settings.defaults.retries
    if shape in RUN_ONCE and asked:
        message = f"shape {str(shape)!r} runs each trial once, so its retries ({asked}) come to nothing"
        hint = "`sweep retry` asks again for trials that failed; train-job and job-set count retries"
        place = ("run", "retries" if written else "shape")
        yield draft.warning(place, message, code="retries-unused", hint=hint, at_key=written)


def needs_image(draft: Draft) -> Iterator[Problem]:
    """Several pods need a cluster, and a cluster an image."""
    shape = chosen(draft)
    if shape and shape.is_distributed and asked_image(draft) == LOCAL_IMAGE:
        message = f"must be 'jobs' or 'indexed' where image is 'local', got {shown(str(shape))}"
        hint = "name an image by run.image"
        yield draft.problem(("run", "shape"), message, code="shape-image", hint=hint)


def has_image(draft: Draft) -> Iterator[Problem]:
    """What applies overlays to a cluster starts pods, and a pod is started from an image."""
    controller, shape = draft.settings.controller, chosen(draft)
    if controller is Controller.NONE or (shape and shape.is_distributed) or asked_image(draft) != LOCAL_IMAGE:
        return
    is_written = "image" in draft.names("run")
    message = f"must be an image of the cluster, as controller is {str(controller)!r}, got {LOCAL_IMAGE!r}"
    hint = "name one by run.image, or for every sweep by defaults.image in sweepledger.yaml"
    yield draft.problem(("run", "image"), message, code="image-missing", hint=hint, at_key=not is_written)
