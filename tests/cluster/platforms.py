"""A platform as `sweep cluster bootstrap` writes it, built and applied for real."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

from sweepledger.operations.scaffold.bootstrap import BootstrapRequest, bootstrap
from sweepledger.repo import kustomize
from sweepledger.structs.batch import Batch
from sweepledger.structs.settings import Controller, Settings
from tests.cluster.apiserver import Server
from tests.render import building
from tests.render import platforms as rendering
from tests.repository import Sandbox

Manifest = Mapping[str, Any]

SETTINGS = """version: 1
namespace: {namespace}
defaults: {{image: 'registry.example/trainer@sha256:{digest}'}}
secrets: {{tracker: {{secret: tracker, key: token, variable: TRACKER_TOKEN}}}}
results: {{nfs: files.example:/results}}
"""
STEP = re.compile(r"`(kubectl apply [^`]+)`")


def bootstrapped(sandbox: Sandbox, namespace: str, controller: Controller, more: str = "") -> None:
    """Write the platform's files and merge them; `more` are further settings."""
    sandbox.write("sweepledger.yaml", SETTINGS.format(namespace=namespace, digest="a" * 64) + more)
    bootstrap(
        sandbox.workspace,
        BootstrapRequest(controller, url="https://git.example/team/sweeps.git", branch="main"),
    )
    sandbox.publish("Bootstrap")


def steps(root: Path, cluster: str = "") -> list[list[str]]:
    """Read the commands that the platform's own page tells a person to type, in their order."""
    page = (root / "clusters" / cluster / "README.md").read_text()
    return [shlex.split(step) for step in STEP.findall(page)]


def built(root: Path, folder: str) -> list[Manifest]:
    """Build a folder of `clusters/`, namespaces first."""
    manifests = kustomize.build(root / "clusters" / folder)
    return sorted(manifests, key=lambda manifest: manifest["kind"] != "Namespace")


def applied(server: Server, manifests: Sequence[Manifest]) -> None:
    """Apply a platform as a controller would: namespaces before what lies in them."""
    spaces = [one for one in manifests if one["kind"] == "Namespace"]
    for part in (spaces, [one for one in manifests if one not in spaces]):
        if part:
            server.apply(*part)


@contextmanager
def rendered_and_applied(server: Server, settings: Settings, *without: str) -> Iterator[None]:
    """Apply the rendered platform without some kinds; what lies in no namespace is taken away again."""
    objects = [
        one
        for one in rendering.manifests(rendering.a_platform(settings), "clusters/platform/")
        if "kind" in one
    ]
    objects = [one for one in objects if one["kind"] not in {"Kustomization", *without}]
    applied(server, objects)
    yield
    shared = [one for one in objects if one["kind"].startswith("ValidatingAdmission")]
    server.kubectl("delete", "--wait=false", "-f", "-", given=shared)


def policed_job(server: Server, batch: Batch, settings: Settings, folder: Path) -> dict[str, Any]:
    """Give a batch's first Job, once the policies are at work."""
    wanted = building.job_of(building.built(batch, folder, settings))
    faulty = deepcopy(wanted)
    faulty["spec"]["ttlSecondsAfterFinished"] = 60
    server.until_refused(faulty)
    return wanted
