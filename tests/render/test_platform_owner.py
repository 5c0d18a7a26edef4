"""Objects of a platform belong to one repository: they say so, differ between repositories, and keep their owner."""

from copy import deepcopy
from typing import Any

import pytest

from sweepledger.operations.scaffold.init import repository_namespace
from sweepledger.structs.kubernetes import OWNER_ANNOTATION
from sweepledger.structs.settings import Controller, Settings
from tests.render.judging import is_judged, refusals
from tests.render.platforms import PLATFORM_SETTINGS, THREE_POOLS, URL, a_platform, a_source, manifests, the
from tests.sweeps import with_keys

Manifest = dict[str, Any]
OTHER = "https://git.example.org/other/sweeps.git"
CONTROLLERS = [Controller.ARGOCD, Controller.FLUX]
POLICIES = {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
"""About these the API server asks no policy."""


def applied(controller: Controller) -> list[Manifest]:
    tree = a_platform(with_keys(PLATFORM_SETTINGS, controller=controller))
    return [
        made for folder in ("platform", str(controller)) for made in manifests(tree, f"clusters/{folder}/")
    ]


def owned_by(made: Manifest, owner: str | None) -> Manifest:
    changed = deepcopy(made)
    changed["metadata"]["annotations"] = {} if owner is None else {OWNER_ANNOTATION: owner}
    return changed


@pytest.mark.parametrize("controller", CONTROLLERS)
def test_every_object_names_the_repository_that_it_belongs_to(controller: Controller) -> None:
    for made in applied(controller):
        assert made["metadata"]["annotations"][OWNER_ANNOTATION] == URL
        assert made["metadata"]["labels"]["app.kubernetes.io/part-of"] == "sweepledger-platform"


@pytest.mark.parametrize("controller", CONTROLLERS)
def test_the_policy_is_asked_about_every_kind(controller: Controller) -> None:
    policy = the("ValidatingAdmissionPolicy", "research-owner", a_platform())
    requested = {
        (rule["apiGroups"][0], plural)
        for rule in policy["spec"]["matchConstraints"]["resourceRules"]
        for plural in rule["resources"]
    }

    for made in applied(controller):
        group, kind = made["apiVersion"].rpartition("/")[0], made["kind"].lower()
        plurals = {f"{kind}s", f"{kind.removesuffix('y')}ies"}
        assert made["kind"] in POLICIES or any((group, plural) in requested for plural in plurals), made[
            "kind"
        ]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("controller", CONTROLLERS)
def test_new_repositories_have_no_object_in_common(controller: Controller) -> None:
    names = [
        {
            (made["kind"], made["metadata"].get("namespace"), made["metadata"]["name"])
            for made in manifests(
                a_platform(
                    with_keys(
                        Settings(),
                        namespace=repository_namespace(name),
                        controller=controller,
                        pools=THREE_POOLS,
                    ),
                    a_source(url=f"https://git.example.org/{name}"),
                )
            )
            if "metadata" in made and made["kind"] != "PriorityClass"
        }
        for name in ("vision", "speech", "sweeps", "Speech_2")
    ]

    assert all(names)
    assert len(set().union(*names)) == sum(map(len, names))


def test_an_object_gets_an_owner_once_and_keeps_it() -> None:
    policy = the("ValidatingAdmissionPolicy", "research-owner", a_platform())
    made = the("Namespace", "research", a_platform())
    nobodys, ours, theirs = owned_by(made, None), owned_by(made, URL), owned_by(made, OTHER)

    assert not is_judged(policy, ours, nobodys)
    assert is_judged(policy, ours, ours)
    assert refusals(policy, ours, "UPDATE", old=ours) == set()
    for change in (theirs, nobodys):
        assert refusals(policy, change, "UPDATE", old=ours) == {"belongs to another repository"}


def refused(policy: Manifest, made: Manifest) -> bool:
    """Whether the policy keeps an object from going to another repository."""
    return bool(refusals(policy, owned_by(made, OTHER), "UPDATE", old=made))


@pytest.mark.parametrize("controller", CONTROLLERS)
def test_each_platform_has_a_policy_of_its_own(controller: Controller) -> None:
    policy = the(
        "ValidatingAdmissionPolicy",
        "speech-owner",
        a_platform(with_keys(Settings(), namespace="speech", controller=controller)),
    )
    tree = a_platform(with_keys(Settings(), namespace="speech", controller=controller))
    own = [
        made for folder in ("platform", str(controller)) for made in manifests(tree, f"clusters/{folder}/")
    ]

    for made in own:
        assert refused(policy, made) or made["kind"] in POLICIES, made["metadata"]
    for made in applied(controller):
        assert not refused(policy, made), made["metadata"]


def test_the_commands_of_two_repositories_apply_under_two_names_and_force_nothing() -> None:
    pages = [
        a_platform(with_keys(PLATFORM_SETTINGS, controller=controller), a_source(url=url))[
            "clusters/README.md"
        ].decode()
        for controller in CONTROLLERS
        for url in (URL, OTHER)
    ]

    managers = [{word for word in page.split() if "manager=sweepledger-" in word} for page in pages]
    assert [len(manager) for manager in managers] == [1, 1, 1, 1]
    assert managers[0] == managers[2] != managers[1] == managers[3]
    assert not [page for page in pages if "-k clusters" in page.partition("--force-conflicts")[2]]
