"""Hazard: the rights that the pages ask for suffice, for persons and controllers, and allow nothing else."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from tests.cluster.children import until
from tests.cluster.machine import Machine
from tests.e2e import rights
from tests.e2e.controllers import Controller, until_in_sync
from tests.e2e.founding import Ground
from tests.e2e.rights import Account
from tests.e2e.team import COLLECTORS, NAMESPACE, PATIENCE, Team

pytestmark = pytest.mark.full
PERSON = "platform-person"
READS = {("batch", "jobs", verb) for verb in ("get", "list")} | {
    ("", "pods", verb) for verb in ("get", "list")
}
LEASES = "leases.coordination.k8s.io"
OWN = {("coordination.k8s.io", "leases", verb) for verb in ("get", "update")}
"""In its own namespace; of one Lease alone."""
ALL = ("create", "delete", "get", "list", "patch", "update", "watch")
ANY_POD = f"/api/v1/namespaces/{NAMESPACE}/pods/any"
"""Whether there is such a one is not said to who may not delete it."""
ROLE = "argocd-application-controller"


@dataclass(frozen=True)
class Applied:
    """A second team, whose platform was applied by an account with the documented rights."""

    team: Team
    person: Account


@pytest.fixture(scope="module")
def applied(ground: Ground, machine: Machine, team: Team) -> Iterator[Applied]:
    """Do all that the pages tell a person to do with kubectl, as an account with the documented rights."""
    roles = ("sweep-platform", f"sweep-platform-{team.controller}")
    person = rights.granted(machine, PERSON, *roles)
    strict = rights.founded(ground, person)
    try:
        rights.keys(strict)
        for command in rights.steps(strict):
            strict.run(command)
        yield Applied(strict, person)
    finally:
        rights.withdrawn(machine, strict, PERSON, *roles)


def test_a_platform_is_applied_twice_by_an_account_with_the_documented_rights(applied: Applied) -> None:
    team = applied.team

    for command in rights.steps(team):
        if "apply" in command:
            forced = ["--force-conflicts"] if command[-1] == "clusters/argocd" else []  # as the page says
            team.run([*command, *forced])
    # What was just applied, Argo CD may not have looked at yet.
    until("nothing is absent", lambda: not _absent(_findings(team)), seconds=PATIENCE, pause=2)

    unseen = {finding["check"] for finding in _findings(team) if finding["state"] == "not checked"}
    # Its collector runs every half hour, so it may not have run yet.
    assert {what.partition(" ")[0] for what in unseen} <= {"Secret", "PersistentVolume", "a", "collector"}


def _findings(team: Team) -> list[dict[str, str]]:
    output = team.sweep("cluster", "doctor", "--format", "json", check=False).stdout
    findings: list[dict[str, str]] = json.loads(output)["data"]["findings"]
    return findings


def _absent(results: list[dict[str, str]]) -> list[dict[str, str]]:
    return [
        result
        for result in results
        if result["state"] in {"missing", "wrong"} and result["part"] != "storage"
    ]


def test_that_account_grants_reads_and_deletes_nothing_else(applied: Applied) -> None:
    person = applied.person
    bind = ("create", "rolebinding", "more", "--clusterrole=admin", f"--serviceaccount={NAMESPACE}:default")
    grant = ("create", "role", "more", "--verb=get", "--resource=secrets")
    attempts = [
        bind,
        grant,
        ("get", "secret", "sweep-git-write", f"--namespace={COLLECTORS}"),
        ("get", "secrets", "--namespace=kube-system"),
        ("delete", "namespace", rights.NAMESPACE),
        ("delete", "cronjob", "sweep-collector", f"--namespace={COLLECTORS}"),
        ("run", "pod", "--image=localhost/any", f"--namespace={NAMESPACE}"),
    ]

    refusals = [person.refused(*attempt) for attempt in attempts]

    assert all("forbidden" in refusal.lower() for refusal in refusals), refusals
    assert all("not currently held" in refusal for refusal in refusals[:2]), refusals


def test_the_collector_reads_jobs_and_pods_of_trials_alone(team: Team, machine: Machine) -> None:
    collector = Account.of(machine, COLLECTORS, "sweep-collector")
    attempts = [
        ("get", "secrets", f"--namespace={COLLECTORS}"),
        ("get", "configmaps", f"--namespace={NAMESPACE}"),
        ("get", "pods", f"--namespace={COLLECTORS}"),
        ("get", "pods", "--all-namespaces"),
        ("get", "jobs", f"--namespace={NAMESPACE}", "--watch"),
        ("create", "job", "more", "--image=localhost/any", f"--namespace={NAMESPACE}"),
        ("delete", f"--raw=/apis/batch/v1/namespaces/{NAMESPACE}/jobs/any"),
        ("delete", f"--raw={ANY_POD}"),
    ]

    refusals = [collector.refused(*attempt) for attempt in attempts]

    assert collector.rules(NAMESPACE) == READS
    assert collector.rules(COLLECTORS) == OWN
    assert collector.rules("kube-system") == set()
    assert "forbidden" in collector.refused("get", LEASES, "any", f"--namespace={COLLECTORS}").lower()
    assert collector.refused("get", "jobs,pods", f"--namespace={NAMESPACE}") == ""
    assert all("forbidden" in refusal.lower() for refusal in refusals), refusals


def test_flux_applies_batches_by_accounts_with_no_other_right(team: Team, machine: Machine) -> None:
    if team.controller != "flux":
        pytest.skip("skipped: Argo CD's projects bound what it applies")
    flux = f"{NAMESPACE}-flux"
    applier, root = (Account.of(machine, flux, name) for name in ("sweep-applier", "sweep-root"))
    job = ("create", "job", "more", "--image=localhost/any", "--dry-run=server")
    secret = ("create", "secret", "generic", "more", "--from-literal=a=b")

    refusals = [
        *(
            account.refused(*secret, f"--namespace={place}")
            for account in (applier, root)
            for place in (flux, NAMESPACE)
        ),
        applier.refused("get", "secret", "sweep-git-read", f"--namespace={flux}"),
        applier.refused(*job, f"--namespace={flux}"),
        applier.refused("get", "kustomizations.kustomize.toolkit.fluxcd.io", f"--namespace={flux}"),
        root.refused(*job, f"--namespace={NAMESPACE}"),
        root.refused(*job, f"--namespace={flux}"),
    ]

    assert applier.rules(NAMESPACE) == {
        (group, resource, verb) for group, resource in (("batch", "jobs"), ("", "configmaps")) for verb in ALL
    }
    assert root.rules(flux) == {("kustomize.toolkit.fluxcd.io", "kustomizations", verb) for verb in ALL}
    assert applier.rules(flux) == root.rules(NAMESPACE) == set()
    assert all("forbidden" in refusal.lower() for refusal in refusals), refusals
    # What it may create is for the policy to say then.
    assert "ValidatingAdmissionPolicy" in applier.refused(*job, f"--namespace={NAMESPACE}")


def test_argo_cd_runs_with_documented_rights(team: Team, machine: Machine, controller: Controller) -> None:
    if team.controller != "argocd":
        pytest.skip("skipped: Flux takes on accounts of ours")
    kubectl = machine.server.kubectl
    team.pull()
    team.write_spec("modest", parameters={"x": [1, 2]})

    with _confined(machine, controller):
        argocd = Account.of(machine, "argocd", ROLE)
        kubectl("delete", "limitrange", "sweep-trials", f"--namespace={NAMESPACE}")
        (batch,) = team.merge_specs("modest")
        controller.look()
        until(
            "the platform is mended",
            lambda: team.get("limitrange", "sweep-trials"),
            seconds=PATIENCE,
            pause=1,
        )
        team.until_recorded(batch)
        until("the Jobs are pruned", lambda: not team.jobs(batch), seconds=PATIENCE, pause=1)
        until_in_sync(controller, batch)

        refusals = [
            argocd.refused("get", "secrets", f"--namespace={COLLECTORS}"),
            argocd.refused("delete", f"--raw={ANY_POD}"),
            argocd.refused("delete", "namespace", COLLECTORS),
        ]
    assert [row["status"] for row in team.summary("modest")] == ["ok", "ok"]
    assert all("forbidden" in refusal.lower() for refusal in refusals), refusals


@contextmanager
def _confined(machine: Machine, controller: Controller) -> Iterator[None]:
    """Let Argo CD's application controller have the documented rights in place of all, during the block."""
    kubectl = machine.server.kubectl
    before = json.loads(kubectl("get", "clusterrole", ROLE, "--output=json").stdout)
    settings = ("patch", "configmap", "argocd-cm", "--namespace=argocd", "--type=merge", "--patch")
    try:
        kubectl("replace", "--filename=-", given=rights.documented(ROLE))
        kubectl(*settings, json.dumps({"data": {"resource.respectRBAC": "strict"}}))
        controller.restart()
        yield
    finally:
        del before["metadata"]["resourceVersion"]
        kubectl("replace", "--filename=-", given=before)
        kubectl(*settings, json.dumps({"data": {"resource.respectRBAC": None}}))
        controller.restart()
