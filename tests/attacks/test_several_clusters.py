"""Files in a folder of a cluster that no setting names, and clusters whose platforms would share an object."""

import pytest

from sweepledger.render.platform.tree import platform_tree
from sweepledger.structs.platform import GitSource
from tests.attacks.edits import errors
from tests.operations.test_bootstrap import URL
from tests.operations.test_fleet import founded
from tests.render.platforms import manifests
from tests.repository import Sandbox
from tests.spec.test_settings import settings
from tests.sweeps import real_bases

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: evil}\nspec: {hostNetwork: true}\n"
PLACES = (
    "clusters/ghost/flux/active/evil.yaml",
    "clusters/ghost/flux/active/kustomization.yaml",
    "clusters/ghost/flux/active/in-eu-b1-0a1b2c3d.yaml",
    "clusters/platform/flux/active/evil.yaml",
    "clusters/monitoring/flux/active/evil.yaml",
    "clusters/flux/flux/active/evil.yaml",
    "clusters/flux/active/evil.yaml",
    "clusters/eu/flux/active/evil.yaml",
)


def test_a_file_in_the_place_of_a_batchs_is_refused_whatever_cluster_it_is_of(sandbox: Sandbox) -> None:
    founded(sandbox)
    for place in PLACES:
        sandbox.write(place, POD)
    sandbox.write("clusters/extra/flux/active/own.yaml", POD)

    assert {(place, "drift") for place in PLACES} <= errors(sandbox)
    assert not any(file.startswith("clusters/extra/") for file, _ in errors(sandbox))


def test_what_stays_of_a_cluster_that_was_removed_stops_no_other_change(sandbox: Sandbox) -> None:
    founded(sandbox)
    sandbox.publish("Merged despite the check", {PLACES[0]: POD})

    assert errors(sandbox) == set()


@pytest.mark.parametrize("first", ["eu-platform", "eu"])
def test_no_two_clusters_have_one_project_of_argo_cd(first: str) -> None:
    second = {"eu": "eu-platform"}.get(first, "eu")

    refused = settings(f"controller: argocd\nclusters: {{{first}: {{}}, {second}: {{}}}}\n")

    assert refused == [("clusters.eu-platform", "cluster-name")]


def test_clusters_with_similar_names_have_projects_of_their_own() -> None:
    read = settings("controller: argocd\nclusters: {eu: {}, eu-platforms: {}, us-platform: {}}\n")
    assert not isinstance(read, list)

    projects = [
        made["metadata"]["name"]
        for made in manifests(platform_tree(read, GitSource(URL, "main"), real_bases()))
        if made["kind"] == "AppProject"
    ]

    assert len(projects) == len(set(projects)) == 6
