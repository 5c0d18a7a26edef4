"""Pods that the API server refuses to a Job: `sweep why` and `sweep status` show its sentence and the way out.

Quota, limits and policies judge pods as the Job controller creates them, so a Job without pods is all that is seen.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tests.cluster import kwok
from tests.cluster.apiserver import NoClusterToolsError
from tests.cluster.children import until
from tests.cluster.fleet import Ask, Fleet, cluster, start_fleet
from tests.e2e.team import NAMESPACE
from tests.manifests import manifest

pytestmark = pytest.mark.usefixtures("needs_kustomize")

PATIENCE = 300


def policy(name: str, message: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Make a policy of the platform team's own, against all pods of the namespace."""
    api = "admissionregistration.k8s.io/v1"
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    selected = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}}}
    validations = [{"expression": "false", "message": message}]
    rules = {"matchConstraints": {"resourceRules": [pods]}, "validations": validations}
    bound = {"policyName": name, "validationActions": ["Deny"], "matchResources": selected}
    return (
        manifest("ValidatingAdmissionPolicy", name, api=api, spec=rules),
        manifest("ValidatingAdmissionPolicyBinding", name, api=api, spec=bound),
    )


@dataclass(frozen=True)
class Refusal:
    """What refuses the pods, and what is to be shown."""

    rules: tuple[dict[str, Any], ...]
    cause: str
    says: str
    remedy: str


REFUSALS: Mapping[str, Refusal] = {
    "used-up": Refusal(
        (manifest("ResourceQuota", "team", NAMESPACE, spec={"hard": {"requests.cpu": "1"}}),),
        "quota",
        "exceeded quota: team, requested: requests.cpu=1, used: requests.cpu=1, limited: requests.cpu=1",
        "it starts when other trials end; else ask the platform team to raise ResourceQuota team",
    ),
    "too-small": Refusal(
        (manifest("ResourceQuota", "small", NAMESPACE, spec={"hard": {"requests.cpu": "500m"}}),),
        "quota",
        "exceeded quota: small",
        "one pod requests more than the whole quota",
    ),
    "limits": Refusal(
        (
            manifest(
                "LimitRange",
                "half",
                NAMESPACE,
                spec={"limits": [{"type": "Container", "max": {"cpu": "500m"}}]},
            ),
        ),
        "refused",
        "maximum cpu usage per Container is 500m, but limit is 1",
        "a LimitRange of the namespace",
    ),
    "policy": Refusal(
        policy("no-pods-on-sundays", "no pods on Sundays"),
        "refused",
        "ValidatingAdmissionPolicy 'no-pods-on-sundays' with binding 'no-pods-on-sundays' denied request: no pods",
        "the message names the rule",
    ),
}


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    """A team whose trials run until they are withdrawn; skip by name where there can be none."""
    try:
        with cluster(nodes=1, seconds=3600) as machine:
            yield start_fleet(machine, "flux", pool=kwok.POOL)
    except NoClusterToolsError as error:
        pytest.skip(f"skipped: {error}")


def groups(fleet: Fleet, sweep: str) -> list[dict[str, Any]]:
    data = json.loads(fleet.team.sweep("why", sweep, "--format", "json").stdout)["data"]
    return [group for batch in data["batches"] for group in batch["causes"]]


@pytest.mark.parametrize("shape", ["indexed", "jobs"])
@pytest.mark.parametrize("name", REFUSALS)
def test_a_job_of_refused_pods_shows_why_and_the_way_out(fleet: Fleet, name: str, shape: str) -> None:
    refusal, server = REFUSALS[name], fleet.machine.server
    server.apply(*refusal.rules)
    if name == "policy":
        server.until_in_force()
    sweep = f"{name}-{shape}"
    fleet.ask(Ask(sweep, 2, 2, shape))
    fleet.push()
    refused = 1 if name == "used-up" else 2

    try:
        until("all are refused", lambda: counted(fleet, sweep, refusal) == refused, seconds=PATIENCE)

        (group,) = [group for group in groups(fleet, sweep) if group["cause"] == refusal.cause]
        status = fleet.team.sweep("status", sweep, "--cluster").stdout
        assert refusal.says in group["message"]
        assert refusal.remedy in group["remedy"]
        assert refusal.says.split(",")[0] in " ".join(status.split())
    finally:
        fleet.team.sweep("cancel", sweep)
        fleet.push()
        server.kubectl("delete", "-f", "-", given=list(refusal.rules))


def counted(fleet: Fleet, sweep: str, refusal: Refusal) -> int:
    return sum(group["count"] for group in groups(fleet, sweep) if group["cause"] == refusal.cause)
