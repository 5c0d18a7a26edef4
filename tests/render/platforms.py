"""A platform for tests: settings that use all of it, and its files as manifests."""

from copy import deepcopy
from dataclasses import replace
from functools import cache
from typing import Any

from sweepledger import controllers
from sweepledger.formats import yaml
from sweepledger.render.manifest import Manifest
from sweepledger.render.platform import kueue
from sweepledger.render.platform.manual_setup import required_secrets
from sweepledger.render.platform.tree import platform_tree
from sweepledger.structs.file_tree import FileTree
from sweepledger.structs.node_pool import NodeCapacity, Pool
from sweepledger.structs.platform import GitSource, Names, RequiredSecret
from sweepledger.structs.run_config import Shape
from sweepledger.structs.settings import Controller, Dataset, Image, ResultsSettings, Settings
from sweepledger.structs.settings.results import Nfs
from tests.sweeps import FULL_SETTINGS, real_bases, with_keys

URL = "https://git.example.org/team/sweeps.git"
DISTRIBUTED = tuple(sorted(shape for shape in Shape if shape.is_distributed))

COLLECTOR = Image("collector", "registry.example.org/tools/sweep", "sha256:" + "2" * 64)
TRAINER = Image("trainer", "registry.example.org/team/trainer", "sha256:" + "a" * 64)
NFS = Nfs("nfs.example.org", "/export/results")

PLATFORM_SETTINGS = with_keys(
    FULL_SETTINGS,
    controller=Controller.FLUX,
    images={**FULL_SETTINGS.trials.images, "collector": COLLECTOR, "trainer": TRAINER},
    results=ResultsSettings("results", checkpoints="fast", artifacts="large", nfs=NFS),
    datasets={"mnist": Dataset("mnist", "mnist-claim", "version:1", nfs=Nfs("nfs.example.org", "/export/m"))},
)

THREE_POOLS = {
    "cpu": Pool("cpu", NodeCapacity("16", "64Gi"), queue="cpu", max_nodes=4),
    "gpu-light": Pool(
        "gpu-light", NodeCapacity("8", "32Gi", 1), queue="light", max_nodes=4, gpu_type="Tesla-T4"
    ),
    "gpu-heavy": Pool("gpu-heavy", NodeCapacity("96", "1Ti", 8), queue="heavy", max_nodes=2, gpu_type="A100"),
}


def a_source(**changes: Any) -> GitSource:
    return replace(GitSource(URL, "main"), **changes)


def a_platform(
    settings: Settings = PLATFORM_SETTINGS, source: GitSource | None = None, active: tuple[str, ...] = ()
) -> FileTree:
    key = repr((settings, source, active))
    if key not in _platforms:
        _platforms[key] = platform_tree(settings, source or a_source(), real_bases(), dict.fromkeys(active))
    return _platforms[key]


def secrets_of(settings: Settings, source: GitSource | None = None) -> tuple[RequiredSecret, ...]:
    names, source = Names.of(settings.trials, settings.fleet), source or a_source()
    code, results, platform = settings.git.code, settings.results, settings.platform
    of_controller = controllers.secrets(names, platform, source)
    return tuple(required_secrets(names, settings.trials, code, results, of_controller, source))


def kueue_objects(settings: Settings) -> list[Manifest]:
    trials, collector = settings.trials, settings.platform.collector
    return kueue.objects(Names.of(trials, settings.fleet), trials.pools, collector.pool, real_bases())


_platforms: dict[str, FileTree] = {}
"""Rendered once for all tests of a process, by their arguments: hundreds of tests judge objects by the same files."""


@cache
def _documents(content: bytes) -> tuple[dict[str, Any], ...]:
    return tuple(yaml.load_all(content))


def trial_policy(settings: Settings = PLATFORM_SETTINGS, shapes: tuple[Shape, ...] = ()) -> dict[str, Any]:
    """Give the admission policy for the Jobs and pods of trials."""
    tree = a_platform(settings, a_source(shapes=shapes))
    return the("ValidatingAdmissionPolicy", f"{settings.trials.namespace}-trials", tree)


def manifests(tree: FileTree, below: str = "clusters/") -> list[dict[str, Any]]:
    """Read every object of the files below a folder."""
    return deepcopy(_manifests(tree, below))


def network_policies(tree: FileTree, namespace: str) -> dict[str, dict[str, Any]]:
    """Return the network policies of a namespace by their names."""
    return {
        made["metadata"]["name"]: made["spec"]
        for made in manifests(tree)
        if made["kind"] == "NetworkPolicy" and made["metadata"]["namespace"] == namespace
    }


def cron_pod(name: str, tree: FileTree) -> dict[str, Any]:
    """Return what the pods of a CronJob are made from."""
    pod: dict[str, Any] = the("CronJob", name, tree)["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    return pod


def _manifests(tree: FileTree, below: str = "clusters/") -> list[dict[str, Any]]:
    return [
        made
        for path, content in tree
        if path.startswith(below) and path.endswith(".yaml") and "kustomization" not in path
        for made in _documents(content)
    ]


def the(kind: str, name: str, tree: FileTree, namespace: str | None = None) -> dict[str, Any]:
    (manifest,) = [
        made
        for made in _manifests(tree)
        if made["kind"] == kind
        and made["metadata"]["name"] == name
        and namespace in {None, made["metadata"].get("namespace")}
    ]
    return deepcopy(manifest)
