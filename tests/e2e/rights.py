"""Accounts with the rights that docs/kubernetes.md gives them and no others, and a team that one founds."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.cluster import controller_files, platforms
from tests.cluster.apiserver import Server
from tests.cluster.machine import Machine
from tests.e2e.founding import Ground, signing_key
from tests.e2e.team import PASSWORDS, PERSON, READER, Team

HERE = Path(__file__).parents[2]
NAMESPACE = "strict"
PEOPLE = "default"
"""The namespace of accounts that stand for people."""
COMMON = ("authentication.k8s.io", "authorization.k8s.io")
"""Groups in which everybody may ask who he is and what he may."""
SETTINGS = """version: 1
namespace: {namespace}
controller: none
defaults: {{image: trainer}}
results: {{claim: sweep-results, every: 30m, keep: 90d, nfs: nfs.example:/results}}
images:
  trainer: registry.example/trainer@sha256:{digest}
  collector: registry.example/sweep@sha256:{digest}
egress:
  git: {{cidrs: ['192.0.2.1/32'], ports: [443]}}
  api-server: {{cidrs: ['192.0.2.2/32'], ports: [443]}}
"""
"""With every kind of object that a platform may consist of."""


def documented(name: str) -> dict[str, Any]:
    page = (HERE / "docs/kubernetes.md").read_text()
    blocks = map(yaml.safe_load, re.findall(r"```yaml\n(.*?)```", page, re.DOTALL))
    (block,) = [item for item in blocks if isinstance(item, dict) and item.get("metadata") == {"name": name}]
    assert block["kind"] == "ClusterRole"
    return block


@dataclass(frozen=True)
class Account:
    """Whoever speaks to the API server by a token, with the rights of an account and no more."""

    server: Server

    @classmethod
    def of(cls, machine: Machine, namespace: str, name: str) -> "Account":
        return cls(Server(machine.server.folder, controller_files.kubeconfig(machine, namespace, name)))

    def refused(self, *arguments: str, given: object = None) -> str:
        """Try something, and give what the API server says against it; empty where it lets it pass."""
        done = self.server.kubectl(*arguments, given=given, check=False)
        return done.stderr if done.returncode else ""

    def rules(self, namespace: str) -> set[tuple[str, str, str]]:
        """Give all that the account may do in a namespace, as group, resource and verb."""
        names = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectRulesReview",
            "spec": {"namespace": namespace},
        }
        completed = self.server.kubectl("create", "--filename=-", "--output=json", given=names)
        rules: list[Mapping[str, list[str]]] = json.loads(completed.stdout)["status"]["resourceRules"]
        return {
            (group, resource, verb)
            for rule in rules
            for group in rule["apiGroups"]
            for resource in rule["resources"]
            for verb in rule["verbs"]
            if group not in COMMON
        }


def granted(machine: Machine, name: str, *roles: str) -> Account:
    """Make an account that has documented rights everywhere, and nothing else."""
    server = machine.server
    text = json.dumps([documented(role) for role in roles])
    server.apply(*json.loads(text.replace("sweeps-git-read", f"{NAMESPACE}-git-read")))
    server.kubectl("create", "serviceaccount", name, f"--namespace={PEOPLE}")
    for role in roles:
        bound = (f"--clusterrole={role}", f"--serviceaccount={PEOPLE}:{name}")
        server.kubectl("create", "clusterrolebinding", f"{name}-{role}", *bound)
    return Account.of(machine, PEOPLE, name)


def founded(ground: Ground, person: Account) -> Team:
    """Found a second team in the cluster, up to the commit that holds its platform; apply nothing."""
    team = Team(ground.machine.folder / NAMESPACE, ground.forge, person.server, ground.controller)
    init = [sys.executable, "-m", "sweepledger.cli", "cluster", "init", str(team.root)]
    subprocess.run(init, cwd=HERE, env=team.environment(), check=True, capture_output=True)
    url = ground.forge.create(NAMESPACE)
    team.git("remote", "add", "origin", ground.forge.url(NAMESPACE, user=PERSON))
    team.write("sweepledger.yaml", SETTINGS.format(namespace=NAMESPACE, digest="a" * 64))
    for path in (team.root / "sweeps").glob("*.yaml"):
        path.unlink()
    team.sweep("cluster", "bootstrap", ground.controller, "--repo", url, "--branch", "main")
    team.commit("Bootstrap")
    return team


def steps(team: Team) -> list[list[str]]:
    """Give the commands that a person types: those of the page, those that make Secrets before the last."""
    *first, last = platforms.steps(team.root)
    document = json.loads(
        team.sweep(
            *("cluster", "bootstrap", team.controller, "--repo", team.forge.url(NAMESPACE)),
            *("--branch", "main", "--format", "json"),
        ).stdout
    )
    secrets = [
        shlex.split(command) for secret in document["data"]["secrets"] for command in secret["commands"]
    ]
    return [*first, *secrets, last]


def keys(team: Team) -> None:
    """Lay out the files that Secrets are made from, where git does not see them."""
    team.write(".git/info/exclude", "username\npassword\ntoken\nsigning\n")
    values = {"username": READER, "password": PASSWORDS[READER], "token": "of-a-test"}
    for name, content in {**values, "signing": signing_key(team).read_text()}.items():
        team.write(name, content)


def withdrawn(machine: Machine, team: Team, account: str, *roles: str) -> None:
    """Take the second team out of the cluster again, and the account that applied it."""
    kubectl, gone = machine.server.kubectl, ("--ignore-not-found", "--wait=false")
    for folder in (team.controller, "platform"):
        kubectl("delete", "-k", str(team.root / "clusters" / folder), *gone)
    for role in roles:
        kubectl("delete", "clusterrolebinding", f"{account}-{role}", *gone)
    kubectl("delete", "serviceaccount", account, f"--namespace={PEOPLE}", *gone)
