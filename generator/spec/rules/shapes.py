"""Keys that go with some shapes only, and what a shape needs."""

from collections.abc import Iterator

from generator.problems import Problem
from generator.reader import shown
from generator.spec.draft import Draft
from generator.spec.rules.program import asked_image
from generator.structs.program import LOCAL_IMAGE
from generator.structs.sweep import Shape


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


def needs_image(draft: Draft) -> Iterator[Problem]:
    """Several pods need a cluster, and a cluster an image."""
    shape = chosen(draft)
    if shape and shape.is_distributed and asked_image(draft) == LOCAL_IMAGE:
        message = f"must be 'jobs' or 'indexed' where image is 'local', got {shown(str(shape))}"
        hint = "name an image by run.image"
        yield draft.problem(("run", "shape"), message, code="shape-image", hint=hint)
