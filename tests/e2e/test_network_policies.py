"""Hazard: on a network that enforces NetworkPolicies, a pod reaches what nobody opened, or not what the settings open.

The policies are those of `sweep bootstrap`; kube-router's firewall enforces them. Connections are tried from inside the
pods of trials and of the collector, first without the firewall: then each of them succeeds.
"""

import json
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from sweepledger.structs.kubernetes import EGRESS_LABEL
from sweepledger.structs.settings import GIT_EGRESS, PEERS_EGRESS
from tests.cluster import box, kube_router, listener, outside
from tests.cluster.children import until
from tests.cluster.machine import Machine
from tests.e2e.connections import OPEN
from tests.e2e.controllers import Controller
from tests.e2e.founding import Ground
from tests.e2e.stores import change_store
from tests.e2e.team import COLLECTORS, NAMESPACE, PATIENCE, Batch, Team

pytestmark = pytest.mark.full

SCRIPT = (Path(__file__).parent / "connections.py").read_text()
PORT = 8080
LISTEN = f"import http.server; http.server.test(port={PORT}, bind='0.0.0.0')"
STORE, NAME = listener.ADDRESS, listener.NAME
BESIDE = "203.0.113.8"
"""The address beside the one that the settings open."""
INTERNET, METADATA = "198.51.100.9", "169.254.169.254"
PROXY, RESOLVER = "203.0.113.9", "198.51.100.53"
"""What other settings open."""
HOSTS = (
    *(f"tcp:{STORE}:443", f"tcp:{STORE}:8443", f"tcp:{BESIDE}:443", f"tcp:{BESIDE}:8443"),
    *(f"tcp:{INTERNET}:443", f"tcp:{INTERNET}:8443", f"dns:{INTERNET}:53", f"tcp:{METADATA}:80"),
    *(f"tcp:{PROXY}:3128", f"dns:{RESOLVER}:5353"),
)
EGRESS = f"egress:\n  store: {{cidrs: ['{STORE}/32'], ports: [443]}}\n"
"""How the settings begin to say what is open."""
MORE_EGRESS = f"""{EGRESS}  proxy: {{cidrs: ['{PROXY}/32'], ports: [3128]}}
"""
MORE = f"""dns: {{cidrs: ['{RESOLVER}/32'], port: 5353}}
proxy: {{address: 'http://{PROXY}:3128', egress: proxy, except: ['10.0.0.0/8']}}
"""
NEIGHBOURS = "neighbours"
"""The namespace of others, without a policy."""

BARE = "bare"
OTHER_SETTINGS = f"""version: 1
namespace: {BARE}
controller: none
defaults: {{image: trainer}}
images: {{trainer: {{repository: registry.example/trainer, digest: 'sha256:{"a" * 64}'}}}}
results:
  claim: results
  keep: 30d
  sync: {{mlflow: {{to: 'http://{STORE}:8443', egress: mlflow}}}}
egress:
  mlflow: {{cidrs: ['{STORE}/32'], ports: [8443]}}
  api-server: {{cidrs: ['{box.SERVICE}/32'], ports: [443]}}
"""

CLOSED, OTHER, OPENED, COLLECTOR, NEIGHBOUR = "closed", "other", "opened", "collector", "neighbour"
"""The pods: a trial whose spec requests nothing, and another one; one that clones and may reach the store; …"""

FORBIDDEN: Mapping[str, tuple[str, str]] = {
    "a trial to the API server": (CLOSED, "tcp:{service}:443"),
    "a trial to the kubelet of its node": (CLOSED, "tcp:{node}:10250"),
    "a trial that does not clone to the git server": (CLOSED, "tcp:{node}:{git}"),
    "a trial to the internet": (CLOSED, f"tcp:{INTERNET}:443"),
    "a trial to the metadata server of a cloud": (CLOSED, f"tcp:{METADATA}:80"),
    "a trial to another trial": (CLOSED, f"tcp:{{other}}:{PORT}"),
    "a trial to the collector": (CLOSED, f"tcp:{{collector}}:{PORT}"),
    "a trial to a pod in the namespace of others": (CLOSED, f"tcp:{{neighbour}}:{PORT}"),
    "a trial to an egress that its spec does not name": (CLOSED, f"tcp:{STORE}:443"),
    "a trial to a server of DNS outside": (CLOSED, f"udp:{INTERNET}:53"),
    "a trial to a server of DNS outside by TCP": (CLOSED, f"tcp:{INTERNET}:53"),
    "a trial to another port of the servers of DNS": (CLOSED, f"tcp:{{dns}}:{PORT}"),
    "a trial to another port of its egress": (OPENED, f"tcp:{STORE}:8443"),
    "a trial to the address beside its egress": (OPENED, f"tcp:{BESIDE}:443"),
    "a trial with an egress to the internet": (OPENED, f"tcp:{INTERNET}:443"),
    "a trial that clones to the API server": (OPENED, "tcp:{service}:443"),
    "a trial that clones to the kubelet": (OPENED, "tcp:{node}:10250"),
    "the collector to the internet": (COLLECTOR, f"tcp:{INTERNET}:443"),
    "the collector to the metadata server": (COLLECTOR, f"tcp:{METADATA}:80"),
    "the collector to an egress of trials": (COLLECTOR, f"tcp:{STORE}:443"),
    "the collector to a trial": (COLLECTOR, f"tcp:{{closed}}:{PORT}"),
    "the collector to the kubelet": (COLLECTOR, "tcp:{node}:10250"),
    "a pod of others to a trial": (NEIGHBOUR, f"tcp:{{closed}}:{PORT}"),
    "a pod of others to a trial with an egress": (NEIGHBOUR, f"tcp:{{opened}}:{PORT}"),
    "a pod of others to the collector": (NEIGHBOUR, f"tcp:{{collector}}:{PORT}"),
}
ALLOWED: Mapping[str, tuple[str, str]] = {
    "a trial to the cluster's DNS": (CLOSED, "udp:{service}:53"),
    "a trial to the cluster's DNS by TCP": (CLOSED, "tcp:{service}:53"),
    "a trial to its egress": (OPENED, f"tcp:{STORE}:443"),
    "a trial to its egress by name": (OPENED, f"name:{NAME}:443"),
    "a trial that clones to the git server": (OPENED, "tcp:{node}:{git}"),
    "the collector to the API server": (COLLECTOR, "tcp:{service}:443"),
    "the collector to the git server": (COLLECTOR, "tcp:{node}:{git}"),
    "the collector to the cluster's DNS": (COLLECTOR, "udp:{service}:53"),
    "a pod of others to the internet": (NEIGHBOUR, f"tcp:{INTERNET}:443"),
    "a pod of others to the metadata server": (NEIGHBOUR, f"tcp:{METADATA}:80"),
    "a pod of others to the API server": (NEIGHBOUR, "tcp:{service}:443"),
    "a pod of others to the kubelet": (NEIGHBOUR, "tcp:{node}:10250"),
    "a pod of others to the egress of trials": (NEIGHBOUR, f"tcp:{STORE}:443"),
}

EARLY = '''"""A trial that connects from its first moment on, until it is refused."""
import json, os, socket, time
began = time.monotonic()
count = 0
while time.monotonic() - began < 200:
    try:
        socket.create_connection(("{address}", 443), timeout=30).close()
        count += 1
        time.sleep(0.2)
    except OSError as error:
        print(f"refused after {{time.monotonic() - began:.1f}} s and {{count}} connections: {{error}}", flush=True)
        break
else:
    count = -1
with open(os.environ["SWEEP_RESULT"], "w") as file:
    json.dump({{"score": count}}, file)
'''


@dataclass(frozen=True)
class Pod:
    """A pod that listens and that connections are tried from."""

    namespace: str
    name: str
    container: str
    address: str


@dataclass(frozen=True)
class Network:
    """The pods and what they may try to reach."""

    machine: Machine
    pods: Mapping[str, Pod]
    places: Mapping[str, str]

    def verdict(self, source: str, place: str) -> str:
        """Say what comes of a connection."""
        return self._try(source, [place])[place.format(**self.places)]

    def verdicts(self) -> dict[tuple[str, str], str]:
        """Try all connections, from each pod at once."""
        attempts = [*FORBIDDEN.values(), *ALLOWED.values()]
        results: dict[tuple[str, str], str] = {}
        for source in dict.fromkeys(source for source, _ in attempts):
            wanted = [place for name, place in attempts if name == source]
            answers = self._try(source, wanted)
            results |= {(source, place): answers[place.format(**self.places)] for place in wanted}
        return results

    def _try(self, source: str, places: Sequence[str]) -> dict[str, str]:
        pod = self.pods[source]
        inside = ("exec", pod.name, f"--namespace={pod.namespace}", f"--container={pod.container}", "--")
        real = [place.format(**self.places) for place in places]
        done = self.machine.server.kubectl(*inside, "python3", "-c", SCRIPT, *real)
        answers: dict[str, str] = json.loads(done.stdout)
        return answers


@pytest.fixture(scope="module")
def network(ground: Ground, team: Team, controller: Controller) -> Iterator[Network]:
    """Hosts outside, servers of DNS, trials, a collector and a pod of others: all of them listen, none is confined."""
    if reason := kube_router.why_not():
        pytest.skip(f"skipped: {reason}")
    machine = ground.machine
    with ExitStack() as stack:
        outside.start(machine.children, *HOSTS)
        stack.callback(outside.stop, machine.children)
        stack.enter_context(_egress(team, controller))
        pods = {
            "dns": stack.enter_context(_servers_of_dns(team)),
            NEIGHBOUR: stack.enter_context(_neighbour(team)),
            COLLECTOR: stack.enter_context(_collector(team)),
            **stack.enter_context(_trials(team)),
        }
        stack.enter_context(_translated(pods["dns"]))
        addresses = {name: pod.address for name, pod in pods.items()}
        hosts = {"service": box.SERVICE, "node": box.ADDRESS, "git": str(team.forge.port)}
        yield Network(machine, pods, {**addresses, **hosts})


@pytest.fixture(scope="module")
def unconfined(network: Network) -> dict[tuple[str, str], str]:
    """What comes of each connection where nothing enforces the policies."""
    return network.verdicts()


@pytest.fixture(scope="module")
def firewall(network: Network, unconfined: dict[tuple[str, str], str]) -> Iterator[None]:
    """A firewall that enforces them."""
    kube_router.start(network.machine)
    try:
        kube_router.until_it_knows(pod.address for pod in network.pods.values())
        yield
    finally:
        kube_router.stop(network.machine)


@pytest.fixture(scope="module")
def confined(network: Network, firewall: None) -> dict[tuple[str, str], str]:
    """What comes of each connection then."""
    return network.verdicts()


def test_where_nothing_enforces_the_policies_every_connection_succeeds(
    unconfined: dict[tuple[str, str], str],
) -> None:
    assert {key: text for key, text in unconfined.items() if text != OPEN} == {}


@pytest.mark.parametrize("attempt", FORBIDDEN)
def test_what_nobody_opened_is_not_reached(confined: dict[tuple[str, str], str], attempt: str) -> None:
    assert "refused" in confined[FORBIDDEN[attempt]]


@pytest.mark.parametrize("attempt", ALLOWED)
def test_what_is_open_is_reached(confined: dict[tuple[str, str], str], attempt: str) -> None:
    assert confined[ALLOWED[attempt]] == OPEN


def test_trials_clone_and_the_collector_records_and_a_new_trial_is_soon_confined(
    team: Team, firewall: None
) -> None:
    team.have_program("code/early.py", EARLY.format(address=INTERNET))
    team.write_spec("early", parameters={"x": [1, 2]}, command=("python3", "code/early.py"), timeout="10m")
    (batch,) = team.merge_specs("early")

    team.until_recorded(batch)

    rows = team.summary("early")
    counts = [float(row["metrics.score"]) for row in rows]
    print(f"connections of new trials before they were confined: {counts}")
    assert [row["status"] for row in rows] == ["ok", "ok"]
    assert min(counts) >= 0, "a trial was not confined"


def test_settings_for_dns_and_a_proxy_open_these_and_close_the_usual_servers_of_dns(
    team: Team, controller: Controller, network: Network, firewall: None
) -> None:
    other, usual = f"udp:{RESOLVER}:5353", "udp:{service}:53"
    assert "refused" in network.verdict(CLOSED, other)
    assert "refused" in network.verdict(COLLECTOR, f"tcp:{PROXY}:3128")

    with _changed(team, controller, EGRESS, f"{MORE}{MORE_EGRESS}"):
        _until(network, CLOSED, other, is_open=True)
        _until(network, CLOSED, usual, is_open=False)

        assert network.verdict(COLLECTOR, f"tcp:{PROXY}:3128") == OPEN
        assert "refused" in network.verdict(CLOSED, f"tcp:{PROXY}:3128"), "its spec does not name it"
    _until(network, CLOSED, usual, is_open=True)
    _until(network, CLOSED, other, is_open=False)


def test_without_addresses_of_git_and_api_server_the_collector_reaches_every_host_on_their_ports_only(
    team: Team, controller: Controller, network: Network, firewall: None
) -> None:
    text = (team.root / "sweepledger.yaml").read_text()
    begin = text.index(EGRESS) + len(EGRESS)
    named = "".join(f"{line}\n" for line in text[begin:].splitlines()[:2])
    assert named.split()[0] == "git:"

    with _changed(team, controller, named, ""):
        _until(network, COLLECTOR, f"tcp:{INTERNET}:443", is_open=True)

        assert network.verdict(COLLECTOR, "tcp:{node}:{git}") == OPEN
        assert network.verdict(COLLECTOR, "tcp:{service}:443") == OPEN
        assert "refused" in network.verdict(COLLECTOR, f"tcp:{INTERNET}:8443")
        # The page of the settings: it is for the collector only.
        assert "refused" in network.verdict(CLOSED, f"tcp:{INTERNET}:443")
        _until(network, OPENED, "tcp:{node}:{git}", is_open=False)
    _until(network, OPENED, "tcp:{node}:{git}", is_open=True)
    _until(network, COLLECTOR, f"tcp:{INTERNET}:443", is_open=False)


def test_pods_of_distributed_trials_reach_each_other_and_nobody_else_reaches_them(bare: Network) -> None:
    assert bare.verdict("peer", f"tcp:{{second}}:{PORT}") == OPEN
    for source, place in (
        ("peer", f"tcp:{{alone}}:{PORT}"),
        ("alone", f"tcp:{{peer}}:{PORT}"),
        ("peer", f"tcp:{{neighbour}}:{PORT}"),
        (NEIGHBOUR, f"tcp:{{peer}}:{PORT}"),
        ("peer", f"tcp:{INTERNET}:443"),
        ("peer", "tcp:{service}:443"),
    ):
        assert "refused" in bare.verdict(source, place), (source, place)


def test_jobs_for_stores_and_for_old_results_reach_these_and_the_port_of_the_git_server(
    bare: Network,
) -> None:
    assert bare.verdict("sync", f"tcp:{STORE}:8443") == OPEN
    assert bare.verdict("expiry", f"tcp:{INTERNET}:443") == OPEN
    assert bare.verdict("sync", f"tcp:{INTERNET}:443") == OPEN
    for source, place in (
        ("sync", f"tcp:{BESIDE}:8443"),
        ("sync", f"tcp:{INTERNET}:8443"),
        ("sync", "tcp:{node}:10250"),
        ("sync", f"tcp:{{peer}}:{PORT}"),
        ("expiry", f"tcp:{STORE}:8443"),
        ("expiry", "tcp:{node}:10250"),
        ("expiry", f"tcp:{{peer}}:{PORT}"),
    ):
        assert "refused" in bare.verdict(source, place), (source, place)


@pytest.fixture(scope="module")
def bare(
    team: Team, network: Network, firewall: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Network]:
    """Policies of another team, for plain pods with the labels of pods that this cluster does not run."""
    written = _other_platform(team, tmp_path_factory.mktemp("other"))
    spaces = [item["metadata"]["name"] for item in written if item["kind"] == "Namespace"]
    team.server.apply(*(item for item in written if item["kind"] == "Namespace"))
    team.server.apply(*(item for item in written if item["kind"] == "NetworkPolicy"))
    peers = {f"{EGRESS_LABEL}{PEERS_EGRESS}": "true"}
    labels = {
        "peer": (BARE, peers),
        "second": (BARE, peers),
        "alone": (BARE, {}),
        "expiry": (BARE, {f"{EGRESS_LABEL}{GIT_EGRESS}": "true"}),
        "sync": (f"{BARE}-collector", {"app.kubernetes.io/component": "sweep-sync"}),
    }
    resources = {"requests": {"cpu": "10m"}}
    made = [_pod(team, space, name, own, resources=resources) for name, (space, own) in labels.items()]
    team.server.apply(*made)
    try:
        pods = {name: _started(team, space, f"app={name}", "only") for name, (space, _) in labels.items()}
        kube_router.until_it_knows(pod.address for pod in pods.values())
        addresses = {name: pod.address for name, pod in pods.items()}
        yield Network(network.machine, {**network.pods, **pods}, {**network.places, **addresses})
    finally:
        team.server.kubectl("delete", "namespace", *spaces)


def _other_platform(team: Team, folder: Path) -> list[dict[str, Any]]:
    """Write the platform of a team with distributed trials, a store and results that expire; read it."""
    other = replace(team, root=folder / "clone", namespace=BARE)
    other.root.mkdir()
    other.run([team.python, "-m", "sweepledger.cli", "init", str(other.root)])
    other.write("sweepledger.yaml", OTHER_SETTINGS)
    source = ("--repo", "https://git.example/other.git", "--branch", "main", "--shape", "job-set")
    other.sweep("bootstrap", team.controller, *source)
    paths = [other.root / f"clusters/platform/{name}.yaml" for name in ("namespaces", "network")]
    return [item for path in paths for item in yaml.safe_load_all(path.read_text())]


def _until(network: Network, source: str, place: str, *, is_open: bool) -> None:
    """Wait until the firewall has read what was applied."""
    wanted = "open" if is_open else "closed"
    until(
        f"{source} finds {place} {wanted}",
        lambda: (network.verdict(source, place) == OPEN) == is_open,
        seconds=kube_router.READY_SECONDS,
    )


@contextmanager
def _changed(team: Team, controller: Controller, before: str, after: str) -> Iterator[None]:
    """Change the settings and the platform for a block."""
    unchanged = (team.root / "sweepledger.yaml").read_text()
    change_store(team, controller, before, after)
    try:
        yield
    finally:
        team.pull()
        change_store(team, controller, (team.root / "sweepledger.yaml").read_text(), unchanged)


@contextmanager
def _egress(team: Team, controller: Controller) -> Iterator[None]:
    team.until_idle()
    team.pull()
    with _changed(team, controller, "egress:\n", EGRESS):
        yield


@contextmanager
def _trials(team: Team) -> Iterator[dict[str, Pod]]:
    """Trials that listen until they are cancelled: two whose specs request nothing, and one that may do more."""
    command = ("python3", "-c", LISTEN, "${args}")
    team.write_spec(CLOSED, parameters={"x": [1, 2]}, command=command, parallelism=2, timeout="2h")
    path = team.root / f"sweeps/{CLOSED}.yaml"
    path.write_text(path.read_text().replace(", mode: clone", ""))
    team.write_spec(OPENED, parameters={"x": [1]}, command=command, timeout="2h", egress=["store"])
    closed, opened = team.merge_specs(CLOSED, OPENED)
    first, second = _running(team, closed, 2)
    (third,) = _running(team, opened, 1)
    try:
        yield {CLOSED: first, OTHER: second, OPENED: third}
    finally:
        team.pull()
        for name in (CLOSED, OPENED):
            team.sweep("cancel", name)
        team.push()
        for batch in (closed, opened):
            team.until_recorded(batch)


def _running(team: Team, batch: Batch, count: int) -> list[Pod]:
    def are_running() -> bool:
        pods = team.pods(batch)
        return len(pods) == count and all(pod["status"]["phase"] == "Running" for pod in pods)

    until(f"the trials of {batch.name} run", are_running, seconds=PATIENCE, pause=1)
    pods = [
        Pod(NAMESPACE, document["metadata"]["name"], "trial", document["status"]["podIP"])
        for document in team.pods(batch)
    ]
    for pod in pods:
        _until_it_listens(pod)
    return pods


@contextmanager
def _collector(team: Team) -> Iterator[Pod]:
    """A run of the collector whose program is replaced by one that listens."""
    creating = ("create", "job", "listening", "--from=cronjob/sweep-collector", f"--namespace={COLLECTORS}")
    job = json.loads(team.server.kubectl(*creating, "--dry-run=client", "--output=json").stdout)
    # As a run of the CronJob it would keep the collector from running.
    job["metadata"] = {"name": job["metadata"]["name"], "namespace": COLLECTORS}
    job["spec"]["activeDeadlineSeconds"] = 7200
    (container,) = job["spec"]["template"]["spec"]["containers"]
    container["command"] = ["python3", "-c", LISTEN]
    team.server.apply(job)
    try:
        selector = "batch.kubernetes.io/job-name=listening"
        yield _started(team, COLLECTORS, selector, container["name"])
    finally:
        team.server.kubectl("delete", "job", "listening", f"--namespace={COLLECTORS}")


@contextmanager
def _neighbour(team: Team) -> Iterator[Pod]:
    """A pod of others, with labels as ours have."""
    labels = {"sweepledger.dev/egress-store": "true", "app.kubernetes.io/component": "sweep-collector"}
    team.server.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NEIGHBOURS}})
    team.server.apply(_pod(team, NEIGHBOURS, NEIGHBOUR, labels))
    try:
        yield _started(team, NEIGHBOURS, f"app={NEIGHBOUR}", "only")
    finally:
        team.server.kubectl("delete", "namespace", NEIGHBOURS)


@contextmanager
def _servers_of_dns(team: Team) -> Iterator[Pod]:
    """A pod where the policies expect kube-dns."""
    command = ["python3", "-c", outside.LISTENER.read_text(), "dns:0.0.0.0:53", f"tcp:0.0.0.0:{PORT}"]
    root = {"command": command, "securityContext": {"runAsUser": 0}}
    team.server.apply(_pod(team, "kube-system", "kube-dns", {"k8s-app": "kube-dns"}, **root))
    try:
        yield _started(team, "kube-system", "app=kube-dns", "only")
    finally:
        team.server.kubectl("delete", "pod", "kube-dns", "--namespace=kube-system", "--now")


@contextmanager
def _translated(dns: Pod) -> Iterator[None]:
    """Translate the address that pods know of DNS, as a proxy for Services does: policies judge what comes of it."""
    rules = [
        (
            *("PREROUTING", "-d", box.SERVICE, "-p", protocol, "--dport", "53"),
            *("-j", "DNAT", "--to-destination", f"{dns.address}:53"),
        )
        for protocol in ("udp", "tcp")
    ]
    for rule in rules:
        box.do("iptables", "-t", "nat", "-A", *rule)
    try:
        yield
    finally:
        for rule in rules:
            box.do("iptables", "-t", "nat", "-D", *rule)


CONFINED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "runAsUser": 65532,
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""What Pod Security demands in namespaces of ours."""


def _pod(team: Team, namespace: str, name: str, labels: Mapping[str, str], **more: Any) -> dict[str, Any]:
    """Give a pod that listens."""
    container = {
        "name": "only",
        "image": team.image("trainer"),
        "command": ["python3", "-c", LISTEN],
        "securityContext": CONFINED,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": name, **labels}},
        "spec": {"automountServiceAccountToken": False, "containers": [{**container, **more}]},
    }


def _started(team: Team, namespace: str, selector: str, container: str) -> Pod:
    """Wait until the only pod with a label runs and listens."""

    def items() -> list[dict[str, Any]]:
        document = team.server.ask(f"/api/v1/namespaces/{namespace}/pods?labelSelector={selector}")
        assert document is not None
        return [item for item in document["items"] if item["status"]["phase"] == "Running"]

    until(f"a pod runs in {namespace}", items, seconds=PATIENCE, pause=0.5)
    (item,) = items()
    pod = Pod(namespace, item["metadata"]["name"], container, item["status"]["podIP"])
    _until_it_listens(pod)
    return pod


def _until_it_listens(pod: Pod) -> None:
    def listens() -> bool:
        with suppress(OSError):
            socket.create_connection((pod.address, PORT), timeout=PATIENCE).close()
            return True
        return False

    until(f"{pod.name} listens", listens, seconds=PATIENCE, pause=0.5)
