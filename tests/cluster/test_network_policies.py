"""On a network that enforces NetworkPolicies, pods reach what the settings open, and nothing else.

`sweep cluster bootstrap` writes the policies and `sweep generate` the labels of pods; kube-router's firewall enforces
them. Connections are tried from inside real pods, first without the firewall: then each of them succeeds.
"""

import json
import os
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster import box, connections, images, kube_router, listener, machine, outside
from tests.cluster.apiserver import NoClusterToolsError, Server
from tests.cluster.children import until
from tests.cluster.connections import OPEN
from tests.cluster.templates import pods
from tests.command_line import captured
from tests.manifests import manifest

ROOT = Path(__file__).parents[2]
SCRIPT = Path(connections.__file__).read_text()
SECONDS = 420
"""For pods to start, on a machine full of others."""
PORT = 8080
SPACE, COLLECTORS, NEIGHBOURS = "sweeps", "sweeps-collector", "neighbours"
STORE, NAME = listener.ADDRESS, listener.NAME
BESIDE = "203.0.113.8"
"""The address beside the one that the settings open."""
TRACKER, PROXY = "203.0.113.5", "203.0.113.9"
GIT, INTERNET, RESOLVER, METADATA = "198.51.100.7", "198.51.100.9", "198.51.100.53", "169.254.169.254"
HOSTS = (
    *(f"tcp:{STORE}:443", f"tcp:{STORE}:8443", f"tcp:{BESIDE}:443"),
    *(f"tcp:{TRACKER}:8443", f"tcp:{PROXY}:3128", f"dns:{RESOLVER}:5353", f"tcp:{GIT}:443"),
    *(f"tcp:{INTERNET}:443", f"tcp:{INTERNET}:8443", f"dns:{INTERNET}:53", f"tcp:{METADATA}:80"),
)
DIGEST = f"sha256:{'1' * 64}"
KNOWN = f"""  git: {{cidrs: ['{GIT}/32'], ports: [443]}}
  api-server: {{cidrs: ['{box.SERVICE}/32'], ports: [443]}}
"""
"""The settings of what is open to the collector."""
SETTINGS = f"""version: 1
namespace: {SPACE}
controller: none
defaults: {{image: trainer}}
images:
  trainer: registry.example/trainer@{DIGEST}
  collector: registry.example/sweep@{DIGEST}
  sync: registry.example/sync@{DIGEST}
code: {{url: 'https://git.example/team/sweeps.git', image: collector}}
results:
  claim: results
  keep: 30d
  sync: {{mlflow: {{to: 'http://{TRACKER}:8443', egress: mlflow}}}}
egress:
  store: {{cidrs: ['{STORE}/32'], ports: [443]}}
  mlflow: {{cidrs: ['{TRACKER}/32'], ports: [8443]}}
  proxy: {{cidrs: ['{PROXY}/32'], ports: [3128]}}
{KNOWN}"""
MORE = f"""dns: {{cidrs: ['{RESOLVER}/32'], port: 5353}}
proxy: {{address: 'http://{PROXY}:3128', egress: proxy, except: ['10.0.0.0/8']}}
"""
SPEC = """name: {name}
description: What may its trials reach?
method: grid
metric: {{name: score, goal: maximize}}
parameters: {{x: {{values: [1, 2]}}}}
command: [python3, code/work.py, "${{args}}"]
run: {run}
"""
RUNS = {
    "closed": "{code: {path: code}}",
    "opened": "{code: {path: code, mode: clone}, egress: [store]}",
    "wide": "{code: {path: code}, shape: job-set, nodes: 2, parallelism: 2}",
}
"""Sweeps: of trials that request nothing; that clone and use an egress; that have several pods."""

FORBIDDEN: Mapping[str, tuple[str, str]] = {
    "a trial to the API server": ("closed", "tcp:{service}:443"),
    "a trial to the kubelet of its node": ("closed", "tcp:{node}:10250"),
    "a trial that does not clone to the git server": ("closed", f"tcp:{GIT}:443"),
    "a trial to the internet": ("closed", f"tcp:{INTERNET}:443"),
    "a trial to the metadata server of a cloud": ("closed", f"tcp:{METADATA}:80"),
    "a trial to another trial": ("closed", f"tcp:{{other}}:{PORT}"),
    "a trial to the collector": ("closed", f"tcp:{{collector}}:{PORT}"),
    "a trial to a pod in the namespace of others": ("closed", f"tcp:{{neighbour}}:{PORT}"),
    "a trial to an egress that its spec does not name": ("closed", f"tcp:{STORE}:443"),
    "a trial to a server of DNS outside": ("closed", f"udp:{INTERNET}:53"),
    "a trial to a server of DNS outside by TCP": ("closed", f"tcp:{INTERNET}:53"),
    "a trial to another port of the servers of DNS": ("closed", f"tcp:{{dns}}:{PORT}"),
    "a trial to another port of its egress": ("opened", f"tcp:{STORE}:8443"),
    "a trial to the address beside its egress": ("opened", f"tcp:{BESIDE}:443"),
    "a trial with an egress to the internet": ("opened", f"tcp:{INTERNET}:443"),
    "a trial that clones to the API server": ("opened", "tcp:{service}:443"),
    "a trial that clones to the kubelet": ("opened", "tcp:{node}:10250"),
    "a distributed trial to another trial": ("peer", f"tcp:{{closed}}:{PORT}"),
    "a distributed trial to the internet": ("peer", f"tcp:{INTERNET}:443"),
    "a trial to a distributed trial": ("closed", f"tcp:{{peer}}:{PORT}"),
    "the collector to the internet": ("collector", f"tcp:{INTERNET}:443"),
    "the collector to the metadata server": ("collector", f"tcp:{METADATA}:80"),
    "the collector to an egress of trials": ("collector", f"tcp:{STORE}:443"),
    "the collector to a trial": ("collector", f"tcp:{{closed}}:{PORT}"),
    "the collector to the kubelet": ("collector", "tcp:{node}:10250"),
    "the job for stores to the API server": ("sync", "tcp:{service}:443"),
    "the job for stores to the internet": ("sync", f"tcp:{INTERNET}:8443"),
    "the job for old results to the API server": ("expiry", "tcp:{service}:443"),
    "the job for old results to the internet": ("expiry", f"tcp:{INTERNET}:443"),
    "a pod of others to a trial": ("neighbour", f"tcp:{{closed}}:{PORT}"),
    "a pod of others to a trial with an egress": ("neighbour", f"tcp:{{opened}}:{PORT}"),
    "a pod of others to a distributed trial": ("neighbour", f"tcp:{{peer}}:{PORT}"),
    "a pod of others to the collector": ("neighbour", f"tcp:{{collector}}:{PORT}"),
}
ALLOWED: Mapping[str, tuple[str, str]] = {
    "a trial to the cluster's DNS": ("closed", "udp:{service}:53"),
    "a trial to the cluster's DNS by TCP": ("closed", "tcp:{service}:53"),
    "a trial to its egress": ("opened", f"tcp:{STORE}:443"),
    "a trial to its egress by name": ("opened", f"name:{NAME}:443"),
    "a trial that clones to the git server": ("opened", f"tcp:{GIT}:443"),
    "a distributed trial to another of its pods": ("peer", f"tcp:{{second}}:{PORT}"),
    "the collector to the API server": ("collector", "tcp:{service}:443"),
    "the collector to the git server": ("collector", f"tcp:{GIT}:443"),
    "the collector to the cluster's DNS": ("collector", "udp:{service}:53"),
    "the job for stores to its store": ("sync", f"tcp:{TRACKER}:8443"),
    "the job for stores to the git server": ("sync", f"tcp:{GIT}:443"),
    "the job for old results to the git server": ("expiry", f"tcp:{GIT}:443"),
    "a pod of others to the internet": ("neighbour", f"tcp:{INTERNET}:443"),
    "a pod of others to the metadata server": ("neighbour", f"tcp:{METADATA}:80"),
    "a pod of others to the API server": ("neighbour", "tcp:{service}:443"),
    "a pod of others to the kubelet": ("neighbour", "tcp:{node}:10250"),
    "a pod of others to the egress of trials": ("neighbour", f"tcp:{STORE}:443"),
}
CONFINED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "runAsUser": 65532,
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""What Pod Security demands in namespaces of ours."""

Verdicts = Mapping[tuple[str, str], str]


@dataclass(frozen=True)
class Repository:
    """A team's repository, whose policies a person applies."""

    root: Path
    server: Server

    def found(self) -> None:
        """Write settings, specs, platform and batches."""
        self._sweep("cluster", "init", str(self.root))
        for path in (self.root / "sweeps").glob("*.yaml"):
            path.unlink()
        (self.root / "code").mkdir(exist_ok=True)
        (self.root / "code/work.py").write_text("print('score=1')\n")
        for name, run in RUNS.items():
            (self.root / f"sweeps/{name}.yaml").write_text(SPEC.format(name=name, run=run))
        (self.root / "sweepledger.yaml").write_text(SETTINGS)
        self._run("git", "add", "--all")
        self._run("git", "commit", "--quiet", "--message=Begin")
        source = ("--repo", "https://git.example/team/sweeps.git", "--branch", "main")
        self._sweep("cluster", "bootstrap", "flux", *source, "--shape", "job-set")
        self._sweep("generate")

    def apply(self) -> None:
        paths = [self.root / f"clusters/platform/{name}.yaml" for name in ("namespaces", "network")]
        written = [item for path in paths for item in yaml.safe_load_all(path.read_text())]
        for kind in ("Namespace", "NetworkPolicy"):
            self.server.apply(*(item for item in written if item["kind"] == kind))

    @contextmanager
    def changed(self, before: str, after: str) -> Iterator[None]:
        """Let other settings hold for a block."""
        self._change(before, after)
        yield
        self._change("", "")

    def _change(self, before: str, after: str) -> None:
        (self.root / "sweepledger.yaml").write_text(SETTINGS.replace(before, after) if before else SETTINGS)
        output = self._sweep("cluster", "bootstrap", "flux", "--format=json")
        self.apply()
        for item in json.loads(output)["data"]["undeclared"]:
            if item["kind"] == "NetworkPolicy":
                _, *words = item["command"].split()
                self.server.kubectl(*words, "--ignore-not-found")

    def labels(self, pattern: str) -> dict[str, str]:
        """Give the labels of the pods that a generated file asks for."""
        for path in sorted(self.root.glob(pattern)):
            for document in yaml.safe_load_all(path.read_text()):
                for pod in pods(document or {}):
                    labels: dict[str, str] = pod["metadata"]["labels"]
                    if labels:
                        return labels
        raise AssertionError(f"no pods in {pattern}")

    def _sweep(self, *arguments: str) -> str:
        return self._run(sys.executable, "-m", "sweepledger.cli", *arguments)

    def _run(self, *argv: str) -> str:
        person = {f"GIT_{role}_{key}": "a@b" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = {**person, "PATH": path, "HOME": str(self.root.parent), "PYTHONPATH": str(ROOT)}
        done = captured(argv, cwd=self.root if self.root.is_dir() else ROOT, env=environment)
        assert not done.returncode, f"{argv}\n{done.stdout}{done.stderr}"
        return done.stdout


@dataclass(frozen=True)
class Network:
    """Pods, and what they may try to reach."""

    machine: machine.Machine
    repository: Repository
    spaces: Mapping[str, str]
    """The namespace of each pod."""
    places: Mapping[str, str]
    """The address of each pod, and of other hosts."""

    def verdict(self, source: str, place: str) -> str:
        """Say what comes of a connection from a pod."""
        return self.attempts(source, [place])[place]

    def verdicts(self) -> Verdicts:
        listed = [*FORBIDDEN.values(), *ALLOWED.values()]
        sources = dict.fromkeys(source for source, _ in listed)
        tried = {
            source: self.attempts(source, [place for name, place in listed if name == source])
            for source in sources
        }
        return {(source, place): tried[source][place] for source, place in listed}

    def attempts(self, source: str, places: Sequence[str]) -> dict[str, str]:
        """Try connections from inside a pod, all at once."""
        inside = ("exec", source, f"--namespace={self.spaces[source]}", "--", "python3", "-c", SCRIPT)
        real = {place: place.format(**self.places) for place in places}
        answers = json.loads(self.machine.server.kubectl(*inside, *real.values()).stdout)
        return {place: answers[address] for place, address in real.items()}

    def until(self, source: str, place: str, *, is_open: bool) -> None:
        until(
            f"{source} finds {place} {'open' if is_open else 'closed'}",
            lambda: (self.verdict(source, place) == OPEN) == is_open,
            seconds=kube_router.READY_SECONDS,
        )


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    """A node with pods that listen, and hosts outside; nothing enforces the policies yet."""
    try:
        made, archives = machine.start(), images.built()
    except NoClusterToolsError as error:
        pytest.skip(f"skipped: {error}")
    if archives is None:
        pytest.skip("skipped: no images (run `make cluster-tools`)")
    if reason := kube_router.why_not():
        pytest.skip(f"skipped: {reason}")
    assert made.node is not None
    try:
        made.node.load(archives.pause.archive)
        made.node.load(archives.trainer.archive)
        outside.start(made.children, *HOSTS)
        repository = Repository(tmp_path_factory.mktemp("team") / "sweeps", made.server)
        repository.found()
        repository.apply()
        yield _with_pods(made, repository, archives.trainer.reference)
    finally:
        made.children.end_all()


@pytest.fixture(scope="module")
def unconfined(network: Network) -> Verdicts:
    """What comes of each connection where nothing enforces the policies."""
    return network.verdicts()


@pytest.fixture(scope="module")
def firewall(network: Network, unconfined: Verdicts) -> None:
    kube_router.start(network.machine)
    kube_router.until_it_knows(network.places[name] for name in network.spaces)


@pytest.fixture(scope="module")
def confined(network: Network, firewall: None) -> Verdicts:
    """What comes of each connection then."""
    return network.verdicts()


def test_where_nothing_enforces_the_policies_every_connection_succeeds(unconfined: Verdicts) -> None:
    assert {attempt: verdict for attempt, verdict in unconfined.items() if verdict != OPEN} == {}


@pytest.mark.parametrize("attempt", FORBIDDEN)
def test_what_nobody_opened_is_refused(confined: Verdicts, attempt: str) -> None:
    assert "refused" in confined[FORBIDDEN[attempt]]


@pytest.mark.parametrize("attempt", ALLOWED)
def test_what_is_open_is_reached(confined: Verdicts, attempt: str) -> None:
    assert confined[ALLOWED[attempt]] == OPEN


def test_settings_for_dns_and_a_proxy_open_these_alone(network: Network, firewall: None) -> None:
    chosen, usual, proxy = f"udp:{RESOLVER}:5353", "udp:{service}:53", f"tcp:{PROXY}:3128"
    assert "refused" in network.verdict("closed", chosen)
    assert "refused" in network.verdict("collector", proxy)

    with network.repository.changed("egress:\n", f"{MORE}egress:\n"):
        network.until("closed", chosen, is_open=True)
        network.until("closed", usual, is_open=False)
        network.until("collector", proxy, is_open=True)

        assert network.verdict("sync", proxy) == OPEN
        assert "refused" in network.verdict("closed", proxy), "its spec does not name it"
    network.until("closed", usual, is_open=True)
    network.until("closed", chosen, is_open=False)


def test_without_addresses_the_collector_reaches_only_the_ports(network: Network, firewall: None) -> None:
    anywhere, other, git = f"tcp:{INTERNET}:443", f"tcp:{INTERNET}:8443", f"tcp:{GIT}:443"

    with network.repository.changed(KNOWN, ""):
        network.until("collector", anywhere, is_open=True)

        for source in ("sync", "expiry"):  # both read the repository
            assert network.verdict(source, git) == OPEN
        assert network.verdict("collector", git) == OPEN
        assert network.verdict("collector", "tcp:{service}:443") == OPEN
        assert "refused" in network.verdict("collector", other)
        assert "refused" in network.verdict("closed", anywhere)
    network.until("collector", anywhere, is_open=False)


def _with_pods(made: machine.Machine, repository: Repository, image: str) -> Network:
    """Start pods with the labels that the generated files give them, and servers of DNS where policies expect them."""
    ours = {
        **dict.fromkeys(("closed", "other"), (SPACE, "overlays/active/closed-*/*.yaml")),
        "opened": (SPACE, "overlays/active/opened-*/*.yaml"),
        **dict.fromkeys(("peer", "second"), (SPACE, "overlays/active/wide-*/*.yaml")),
        "expiry": (SPACE, "clusters/platform/expiry.yaml"),
        "collector": (COLLECTORS, "clusters/platform/collector.yaml"),
        "sync": (COLLECTORS, "clusters/platform/sync.yaml"),
    }
    listens = f"import http.server; http.server.test(port={PORT}, bind='0.0.0.0')"
    as_user: dict[str, Any] = {"command": ["python3", "-c", listens], "securityContext": CONFINED}
    answers = ["python3", "-c", outside.LISTENER.read_text(), "dns:0.0.0.0:53", f"tcp:0.0.0.0:{PORT}"]
    as_root = {"command": answers, "securityContext": {"runAsUser": 0}}
    pods = [
        _pod(space, name, repository.labels(path), image, as_user) for name, (space, path) in ours.items()
    ]
    pods.append(_pod(NEIGHBOURS, "neighbour", repository.labels(ours["opened"][1]), image, as_user))
    pods.append(_pod("kube-system", "dns", {"k8s-app": "kube-dns"}, image, as_root))
    made.server.apply(manifest("Namespace", NEIGHBOURS))
    spaces = {pod["metadata"]["name"]: pod["metadata"]["namespace"] for pod in pods}
    until("pods have accounts", lambda: _accounts(made.server) >= {*spaces.values()}, seconds=SECONDS)
    made.server.apply(*pods)
    addresses = {name: _address(made.server, space, name) for name, space in spaces.items()}
    _translate(addresses["dns"])
    hosts = {"service": box.SERVICE, "node": box.ADDRESS}
    return Network(made, repository, spaces, {**addresses, **hosts})


def _pod(
    space: str, name: str, labels: Mapping[str, str], image: str, container: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": space, "labels": dict(labels)},
        "spec": {
            "automountServiceAccountToken": False,
            "containers": [{"name": "only", "image": image, **container}],
        },
    }


def _accounts(server: Server) -> set[str]:
    """Name the namespaces whose pods have an account."""
    document = server.ask("/api/v1/serviceaccounts?fieldSelector=metadata.name=default")
    assert document is not None
    return {item["metadata"]["namespace"] for item in document["items"]}


def _address(server: Server, space: str, name: str) -> str:
    def listens() -> bool:
        address = _status(server, space, name).get("podIP")
        if address is None:
            return False
        with suppress(OSError):
            socket.create_connection((address, PORT), timeout=SECONDS).close()
            return True
        return False

    until(f"the pod {name} listens", listens, seconds=SECONDS, pause=0.5)
    address: str = _status(server, space, name)["podIP"]
    return address


def _status(server: Server, space: str, name: str) -> dict[str, Any]:
    document = server.ask(f"/api/v1/namespaces/{space}/pods/{name}")
    assert document is not None
    status: dict[str, Any] = document["status"]
    return status


def _translate(dns: str) -> None:
    """Translate the address that pods know of DNS, as a proxy for Services does: policies judge what comes of it."""
    for protocol in ("udp", "tcp"):
        chosen = ("-d", box.SERVICE, "-p", protocol, "--dport", "53")
        target = ("-j", "DNAT", "--to-destination", f"{dns}:53")
        box.do("iptables", "-t", "nat", "-A", "PREROUTING", *chosen, *target)
