"""docs/manifests.md: no field is rendered that the page does not explain."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sweepledger.structs.run_config import Shape
from tests.render.building import built, job_of
from tests.sweeps import BASE, FULL_SETTINGS, a_batch, a_full_sweep

PAGE = (Path(__file__).parent.parent.parent / "docs/manifests.md").read_text(encoding="utf-8")
EXPLAINED = {word for cell in re.findall(r"`([^`]+)`", PAGE) for word in re.split(r"[./: ]", cell)}
PLAIN = {"template", "containers"}
"""Fields that hold others."""


def fields(job: dict[str, Any]) -> Iterator[str]:
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    for level in (job["metadata"], job["spec"], pod, pod["securityContext"], container):
        yield from level.keys() - PLAIN
    yield from container["securityContext"]
    yield from (volume["name"] for volume in pod["volumes"] if "secret" not in volume)


@pytest.mark.parametrize(
    ("shape", "pool"), [(Shape.INDEXED, "queued"), (Shape.JOBS, "chosen")], ids=["indexed", "jobs"]
)
def test_every_field_that_is_rendered_is_explained(shape: Shape, pool: str, tmp_path: Path) -> None:
    job = job_of(built(a_batch(shape, sweep=a_full_sweep(pool)), tmp_path, FULL_SETTINGS))

    assert sorted(set(fields(job)) - EXPLAINED) == []


def test_every_component_is_explained() -> None:
    assert {folder.name for folder in (BASE / "components").iterdir()} <= EXPLAINED
