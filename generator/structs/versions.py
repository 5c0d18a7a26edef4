"""Which versions of Kubernetes are supported: the one place that says it to the program."""

OLDEST = (1, 30)
"""Nothing that is written may need more."""
NEWEST = (1, 37)
"""Nothing that is written may have gone by then."""


def shown(version: tuple[int, int]) -> str:
    """Write a version as people do."""
    return ".".join(map(str, version))
