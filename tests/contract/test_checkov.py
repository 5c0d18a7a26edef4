"""checkov, a judge from outside, on what we render: nothing failed, and nothing skipped."""

import json
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sweepledger.formats import yaml
from sweepledger.storage import write_file
from sweepledger.structs.run_config import Shape
from sweepledger.structs.settings import Controller
from tests.cluster.templates import pods
from tests.command_line import captured
from tests.render.building import built
from tests.render.platforms import (
    DISTRIBUTED,
    PLATFORM_SETTINGS,
    THREE_POOLS,
    a_platform,
    a_source,
    manifests,
)
from tests.sweeps import FULL_SETTINGS, a_batch, a_full_sweep, with_keys

ROOT = Path(__file__).parents[2]
CHECKOV = ROOT / ".venv/checkov/bin/python"
"""Of its own environment. The script beside it cannot be started where a folder has a space in its name."""
IMAGE = "registry.example.org/team/trainer@sha256:" + "a" * 64

OF_MPI_ALONE = "CKV_K8S_40 Containers should run as a high UID to avoid host conflict"
"""sshd wants the user that MPI's images are made with, and that has number 1000; checkov knows no MPIJob."""

pytestmark = [
    pytest.mark.full_suite("checkov"),
    pytest.mark.skipif(not CHECKOV.exists(), reason="skipped: checkov not found; `make checkov`"),
]


@dataclass(frozen=True)
class Judgement:
    passed: int
    failed: list[str]
    skipped: int
    unread: int


def judged(folder: Path, documents: Iterable[dict[str, Any]]) -> Judgement:
    write_file(folder / "judged/all.yaml", yaml.dump(*documents).encode())
    flags = ["--framework=kubernetes", "--output=json", "--compact", "--skip-download", "--soft-fail"]
    done = captured(
        [CHECKOV, "-m", "checkov.main", "--directory", "judged", *flags],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "LOG_LEVEL": "ERROR"},
        check=True,
    )
    document = json.loads(done.stdout)
    counts, failed = document["summary"], document["results"]["failed_checks"]
    sys.stdout.write(f"{counts}\n")
    shown = [f"{item['check_id']} {item['check_name']}: {item['resource']}" for item in failed]
    return Judgement(counts["passed"], shown, counts["skipped"], counts["parsing_errors"])


def as_jobs(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    """Show checkov the pods of a kind that it does not know as those of one that it knows."""
    if manifest["kind"] in {"Job", "ConfigMap"}:
        return [manifest]
    results = [
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": f"{manifest['metadata']['name']}-{number}", "namespace": "research"},
            "spec": {"template": {"metadata": {"labels": pod["metadata"]["labels"]}, "spec": pod["spec"]}},
        }
        for number, pod in enumerate(pods(manifest))
    ]
    return [manifest, *results]


@pytest.mark.usefixtures("needs_kustomize")
def test_even_the_pods_of_kinds_that_checkov_does_not_know_fail_nothing(tmp_path: Path) -> None:
    settings = with_keys(PLATFORM_SETTINGS, controller=Controller.ARGOCD, pools=THREE_POOLS)
    documents = manifests(a_platform(settings, a_source(shapes=DISTRIBUTED)))
    for shape in Shape:
        made = built(a_batch(shape, sweep=a_full_sweep(), image=IMAGE), tmp_path, FULL_SETTINGS)
        documents += [item for manifest in made for item in as_jobs(manifest)]

    judgement = judged(tmp_path, documents)

    assert {item.partition(":")[0] for item in judgement.failed} <= {OF_MPI_ALONE}
    assert len(judgement.failed) <= 2
    assert (judgement.skipped, judgement.unread) == (0, 0)
    assert judgement.passed > 500


def test_the_platform_for_flux_fails_nothing(tmp_path: Path) -> None:
    judgement = judged(tmp_path, manifests(a_platform(active=("lr-b1-3f9a1c2e",))))

    assert judgement.failed == []
    assert (judgement.skipped, judgement.unread) == (0, 0)
    assert judgement.passed > 100


def test_it_would_have_said_so(tmp_path: Path) -> None:
    container = {"name": "x", "image": "a.example/b:latest", "securityContext": {"privileged": True}}
    loose = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "x"},
        "spec": {"containers": [container]},
    }

    assert len(judged(tmp_path, [loose]).failed) > 10
