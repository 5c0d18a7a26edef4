"""A real etcd and kube-apiserver on loopback: nothing runs there, but what it says a cluster says, too.

    python -m tests.cluster.apiserver up|down|status      what `make apiserver` does

Each server has a folder of its own below `.tools/state/`, and in it the process that it lives for: what a
crash leaves behind is ended and removed by the next one that starts.
"""

import http
import itertools
import json
import os
import shutil
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster import building, processes
from tests.cluster.children import until
from tests.manifests import manifest

STATE = building.BUILT / "state"
FOR_A_PERSON = STATE / "apiserver"
TOKEN = "admin-of-the-test-server"  # noqa: S105 - of a server that listens on loopback, for a test
READY_SECONDS = 600
"""Seconds where nothing else runs; a machine full of other tests takes its time."""
KINDS = (
    *("application-crd", "applicationset-crd", "appproject-crd"),
    *("_kustomizations", "_gitrepositories", "_receivers"),
    *("_jobsets", "_mpijobs", "_pytorchjobs", "_tfjobs", "_trainingruntimes", "_trainjobs"),
    *("_clusterqueues", "_localqueues", "_resourceflavors", "_workloadpriorityclasses"),
)
"""Of the names of the CRDs' files that are needed: each takes the server half a second."""
ADMISSION = "NodeRestriction,PodSecurity,ResourceQuota,LimitRanger,ServiceAccount,ValidatingAdmissionPolicy"

_LAST = itertools.count()
"""The numbers of policies that were applied only to see when all earlier ones are in force."""


class NoClusterToolsError(Exception):
    """What the server is made of cannot be had here."""


@dataclass(frozen=True)
class Server:
    """A running server, and how to speak to it."""

    folder: Path
    kubeconfig: Path

    @property
    def address(self) -> str:
        return str(self._cluster["server"])

    @property
    def authority(self) -> Path:
        """Give the certificate that those who reach it trust."""
        return Path(self._cluster["certificate-authority"])

    @property
    def _cluster(self) -> dict[str, str]:
        (one,) = json.loads(self.kubeconfig.read_text())["clusters"]
        cluster: dict[str, str] = one["cluster"]
        return cluster

    def kubectl(
        self, *arguments: str, given: object = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as the administrator; `given` is its standard input: one manifest or several."""
        if given is not None and not isinstance(given, str):
            items = list(given) if isinstance(given, Sequence) else [given]
            given = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
        done = subprocess.run(
            [kubectl(), "--kubeconfig", str(self.kubeconfig), *arguments],
            input=given,
            env={"PATH": os.environ["PATH"], "HOME": str(self.folder), "KUBECTL_KUBERC": "false"},
            capture_output=True,
            text=True,
            check=False,
            timeout=READY_SECONDS,
        )
        if check and done.returncode:
            raise AssertionError(f"kubectl {' '.join(arguments)}\n{done.stdout}{done.stderr}")
        return done

    def ask(self, path: str) -> dict[str, Any] | None:
        """Get what the API has at a path; None where there is nothing. A hundredth of what kubectl costs."""
        trusted = ssl.create_default_context(cafile=self.authority)
        request = urllib.request.Request(  # noqa: S310 - the address is our own server's
            self.address + path, headers={"Authorization": f"Bearer {TOKEN}"}
        )
        try:
            with urllib.request.urlopen(request, timeout=READY_SECONDS, context=trusted) as answer:  # noqa: S310
                document: dict[str, Any] = json.load(answer)
                return document
        except urllib.error.HTTPError as error:
            if error.code != http.HTTPStatus.NOT_FOUND:
                raise
            return None

    def apply(self, *manifests: object) -> None:
        """Apply for real, as a controller would."""
        self.kubectl("apply", "--server-side", "--validate=strict", "-f", "-", given=list(manifests))

    def define(self, crds: Path, kinds: Iterable[str] = KINDS) -> None:
        """Let the server know kinds: those of a folder whose files have one of these words in their names."""
        files = [path for path in sorted(crds.glob("*.yaml")) if any(kind in path.name for kind in kinds)]
        named = [argument for path in files for argument in ("-f", str(path))]
        self.kubectl("apply", "--server-side", "--force-conflicts", *named)
        self.until_served(*named)

    def until_served(self, *kinds: str) -> None:
        """Wait until the server knows kinds, by the arguments that tell kubectl of their definitions."""
        # It takes one that has no condition yet for a fault, and ends.
        wait = ("wait", "--for=condition=Established", "--timeout=60s", *kinds)
        served = lambda: not self.kubectl(*wait, check=False).returncode  # noqa: E731
        until("the kinds are served", served, seconds=READY_SECONDS, pause=0.2)

    def refuses(self, *manifests: object, user: str = "admin") -> str:
        """Give what the server says against manifests of a user in a dry run; empty where it accepts them."""
        arguments = ("--server-side", "--dry-run=server", "--validate=strict", "-f", "-")
        identity = (f"--as={user}", "--as-group=system:masters")
        done = self.kubectl("apply", *arguments, *identity, given=list(manifests), check=False)
        return done.stderr.strip() or "refused without a word" if done.returncode else ""

    def until_in_force(self) -> None:
        """Wait until all policies that were applied before are in force: the server takes some time to read them.

        It reads policies, and their bindings, in the order of their creation. So once a last one refuses what only it
        forbids, all earlier ones judge, too.
        """
        name = f"last-{os.getpid()}-{next(_LAST)}"
        policy = _policy_against(name)
        self.apply(*policy)
        forbidden = manifest("ConfigMap", name, "default")
        until("the policies are in force", lambda: self.refuses(forbidden), seconds=READY_SECONDS, pause=0.2)
        self.kubectl("delete", "--wait=false", "-f", "-", given=list(policy))

    def until_refused(self, manifest: object) -> None:
        """Wait until a manifest is refused by a policy that was just applied."""
        self.until_in_force()
        until("the policy refuses it", lambda: self.refuses(manifest), seconds=READY_SECONDS, pause=0.2)


def _policy_against(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Give a policy, with its binding, that forbids ConfigMaps of that name, and nothing else."""
    named = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    constraints = {"resourceRules": [named | {"resourceNames": [name]}]}
    validations = [{"expression": "false", "message": f"{name} is forbidden"}]
    rules = {"matchConstraints": constraints, "validations": validations}
    bound = {"policyName": name, "validationActions": ["Deny"]}
    api, kind = "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"
    return manifest(kind, name, api=api, spec=rules), manifest(f"{kind}Binding", name, api=api, spec=bound)


def tool(group: building.Group | building.Definitions, name: str = "") -> Path:
    """Find what was built: a program or file of a group, or the folder of all. Raises NoClusterToolsError."""
    path = building.built(group)
    if path is None or not (path / name).exists():
        raise NoClusterToolsError("no cluster tools (run `make cluster-tools`)")
    return path / name


def kubectl() -> str:
    """Find the client that comes with the wheel; one on PATH may be older than the server allows."""
    beside = Path(sys.executable).parent / "kubectl"
    text = str(beside) if beside.is_file() else shutil.which("kubectl")
    if text is None:
        raise NoClusterToolsError("kubectl not found")
    return text


@contextmanager
def running(folder: Path | None = None) -> Iterator[Server]:
    """Run a server for as long as the block; it and its state are gone afterwards."""
    chosen = folder or STATE / f"for-{os.getpid()}"
    try:
        yield start(chosen, owner=os.getpid())
    finally:
        stop(chosen)


def start(folder: Path, *, owner: int | None) -> Server:
    """Start etcd and kube-apiserver, and wait until they answer. Raises NoClusterToolsError."""
    programs, crds = tool(building.CONTROL_PLANE), tool(building.CRDS)
    if shutil.which("openssl") is None:
        raise NoClusterToolsError("no cluster tools (openssl)")
    sweep_out()
    stop(folder)
    # With its owner at once: another clone's tests, which share the state, sweep out what has none.
    made = folder.with_name(f"new-{folder.name}")
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    (made / "owner").write_text(str(owner or ""))
    made.rename(folder)
    server = Server(folder, folder / "kubeconfig")
    peer, client, secure = processes.free_ports(3)
    try:
        processes.spawn(folder, "etcd", [str(programs / "etcd"), *etcd_flags(folder, client, peer)])
        make_keys(folder)
        serving = [str(programs / "kube-apiserver"), *apiserver_flags(folder, client, secure)]
        processes.spawn(folder, "kube-apiserver", serving)
        server.kubeconfig.write_text(kubeconfig(folder, f"127.0.0.1:{secure}"))
        _wait(server)
        server.define(crds)
    except BaseException:  # Ctrl-C, too: nothing runs on that nobody knows of
        stop(folder)
        raise
    return server


def stop(folder: Path) -> None:
    """End a server's processes, by the ids in its folder, and remove what it kept."""
    for path in sorted(folder.glob("*.pid"), reverse=True):
        processes.end(int(path.read_text()), folder)
    shutil.rmtree(folder, ignore_errors=True)


def is_up(folder: Path) -> bool:
    """Tell whether every process of a server lives."""
    values = [int(path.read_text()) for path in folder.glob("*.pid")]
    return len(values) == 2 and all(processes.is_ours(pid, folder) for pid in values)


def sweep_out() -> None:
    """End what was left by owners that are no more."""
    for folder in STATE.glob("for-*"):
        owner = (folder / "owner").read_text() if (folder / "owner").is_file() else ""
        if not owner or not processes.lives(int(owner)):
            stop(folder)


def etcd_flags(folder: Path, client: int, peer: int) -> list[str]:
    """Give etcd's options: on loopback, and nothing that outlives the folder."""
    return [
        f"--data-dir={folder / 'etcd'}",
        "--unsafe-no-fsync",
        f"--listen-client-urls=http://127.0.0.1:{client}",
        f"--advertise-client-urls=http://127.0.0.1:{client}",
        f"--listen-peer-urls=http://127.0.0.1:{peer}",
        f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
        f"--initial-cluster=default=http://127.0.0.1:{peer}",
        "--log-level=warn",
    ]


def apiserver_flags(folder: Path, etcd: int, port: int) -> list[str]:
    """Give kube-apiserver's options; a later option of the same name wins."""
    return [
        f"--etcd-servers=http://127.0.0.1:{etcd}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={folder / 'certificates'}",
        f"--token-auth-file={folder / 'tokens.csv'}",
        "--authorization-mode=Node,RBAC",
        f"--enable-admission-plugins={ADMISSION}",
        "--allow-privileged=true",  # as in every real cluster, where Pod Security has the say
        "--service-cluster-ip-range=10.0.0.0/24",
        "--endpoint-reconciler-type=none",  # a loopback address is no valid endpoint
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={folder / 'accounts.key'}",
        f"--service-account-signing-key-file={folder / 'accounts.key'}",
    ]


def make_keys(folder: Path) -> None:
    """Make the administrator's token, and the key that service accounts' tokens are signed with."""
    (folder / "tokens.csv").write_text(f'{TOKEN},admin,admin,"system:masters"\n')
    key = ["openssl", "genrsa", "-out", str(folder / "accounts.key"), "2048"]
    subprocess.run(key, check=True, capture_output=True)


def kubeconfig(folder: Path, address: str) -> str:
    """Write how the administrator reaches a server."""
    server = {
        "server": f"https://{address}",
        "certificate-authority": str(folder / "certificates/apiserver.crt"),
    }
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": server}],
            "users": [{"name": "admin", "user": {"token": TOKEN}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
            "current-context": "test",
        },
        indent=1,
    )


def _wait(server: Server) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while server.kubectl("get", "--raw", "/readyz", check=False).returncode:
        if time.monotonic() > deadline or not is_up(server.folder):
            messages = (server.folder / "kube-apiserver.log").read_text().splitlines()[-20:]
            stop(server.folder)
            raise AssertionError("the server does not get ready:\n" + "\n".join(messages))
        time.sleep(0.2)


def main(arguments: list[str]) -> int:
    """Start, stop or show the server that is for a person."""
    verb = arguments[0] if arguments else "up"
    if verb == "down":
        stop(FOR_A_PERSON)
        print("the API server is stopped, and what it held is gone")
        return 0
    if verb == "up" and not is_up(FOR_A_PERSON):
        began = time.monotonic()
        print("==> starting etcd and kube-apiserver on loopback (some seconds)", flush=True)
        try:
            start(FOR_A_PERSON, owner=None)
        except NoClusterToolsError as error:
            print(f"cannot start the API server: {error}", file=sys.stderr)
            return 3
        except KeyboardInterrupt:
            print("stopped: nothing runs on", file=sys.stderr)
            return 130
        print(f"kube-apiserver {building.KUBERNETES} is ready after {time.monotonic() - began:.1f} s")
    if not is_up(FOR_A_PERSON):
        print("no API server is running; start it by: make apiserver")
        return 3
    shown = os.path.relpath(FOR_A_PERSON / "kubeconfig")
    print(f"use it:   export KUBECONFIG={shown}; kubectl get namespaces")
    print(f"its logs: {os.path.relpath(FOR_A_PERSON)}/*.log")
    print("stop it:  make apiserver-down")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
