"""Which kinds of object batches may consist of in a cluster."""

from generator.render.platform.source import Source
from generator.structs.kinds import CONFIG_MAP, JOB, OF_ALL_TRIALS, RUNNERS, Kind


def rendered(source: Source) -> tuple[Kind, ...]:
    """List what overlays may hold in this cluster."""
    return (JOB, CONFIG_MAP, *chosen(source))


def chosen(source: Source) -> tuple[Kind, ...]:
    """List the custom kinds that the cluster has controllers for."""
    return tuple(
        kind for shape in sorted(source.shapes) for kind in (RUNNERS[shape], *OF_ALL_TRIALS.get(shape, ()))
    )
