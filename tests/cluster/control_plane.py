"""etcd, API server, controller manager and scheduler as a cluster has them, in the order that works."""

import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster import box, building
from tests.cluster.apiserver import Server, apiserver_flags, etcd_flags, kubeconfig, make_keys, tool
from tests.cluster.children import Children, until

ETCD_CLIENT, ETCD_PEER = 2379, 2380
"""Fixed: the box has all ports to itself."""
READY_SECONDS = 180
AUTHORITY = "authority"
"""Of the client certificates that the API server and the node show each other."""


@dataclass(frozen=True)
class Tuning:
    """What differs between a test and a measurement."""

    controllers: Sequence[str] = ()
    """Further options of the controller manager; its own limit is 20 requests a second."""
    scheduler: Sequence[str] = ()


@dataclass
class ControlPlane:
    """The four processes; each may be ended and started by itself."""

    folder: Path
    children: Children
    tuning: Tuning = field(default_factory=Tuning)
    address: str = box.ADDRESS
    """Of its machine."""
    endpoint: str = box.SERVICE
    """Address by which all but pods reach the API server."""

    @property
    def server(self) -> Server:
        return Server(self.folder, self.folder / "kubeconfig")

    def start(self) -> None:
        """Start all four and wait until they answer. Raises NoClusterToolsError."""
        self.folder.mkdir(parents=True)
        make_keys(self.folder)
        _make_certificates(self.folder)
        (self.folder / "kubeconfig").write_text(kubeconfig(self.folder, f"{self.endpoint}:443"))
        self.resume()

    def start_etcd(self) -> None:
        self._start("etcd", *etcd_flags(self.folder, ETCD_CLIENT, ETCD_PEER))

    def resume(self) -> None:
        """Start all four with what the store holds."""
        self.start_etcd()
        self.start_apiserver()
        self.start_controllers()
        self.start_scheduler()

    def start_apiserver(self) -> None:
        """Start the API server and wait until it is ready."""
        flags = [
            *apiserver_flags(self.folder, ETCD_CLIENT, 443),
            "--bind-address=0.0.0.0",  # of the box, which is no one's network
            f"--advertise-address={self.address}",
            f"--client-ca-file={self.folder / AUTHORITY}.crt",
            f"--kubelet-client-certificate={self.folder / 'apiserver-client'}.crt",
            f"--kubelet-client-key={self.folder / 'apiserver-client'}.key",
            "--kubelet-preferred-address-types=InternalIP",  # nobody here knows the name of a node
            "--profiling=false",
        ]
        self._start("kube-apiserver", *flags)
        until("the API server is ready", self._is_ready, seconds=READY_SECONDS, pause=0.3)

    def start_controllers(self) -> None:
        """Start the controller manager, each controller with an account of its own as in a real cluster."""
        flags = [
            f"--kubeconfig={self.folder / 'kubeconfig'}",
            f"--root-ca-file={self.folder / 'certificates/apiserver.crt'}",
            f"--service-account-private-key-file={self.folder / 'accounts.key'}",
            "--use-service-account-credentials=true",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            "--node-monitor-period=2s",
            "--node-monitor-grace-period=10s",
            *self.tuning.controllers,
        ]
        self._start("kube-controller-manager", *flags)

    def start_scheduler(self) -> None:
        flags = [
            f"--kubeconfig={self.folder / 'kubeconfig'}",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            *self.tuning.scheduler,
        ]
        self._start("kube-scheduler", *flags)

    def back_up(self, target: Path) -> None:
        """Keep what the store holds now: its folder, copied while it is down."""
        self._without_store(lambda: shutil.copytree(self.folder / "etcd", target))

    def restore(self, source: Path) -> None:
        """Put the store back to what it held."""

        def put() -> None:
            shutil.rmtree(self.folder / "etcd")
            shutil.copytree(source, self.folder / "etcd")

        self._without_store(put)

    def _without_store(self, action: Callable[[], object]) -> None:
        for name in ("kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd"):
            self.children.end(name)
        action()
        self.resume()

    def _start(self, name: str, *flags: str) -> None:
        self.children.start(name, [str(tool(building.CONTROL_PLANE, name)), *flags])

    def _is_ready(self) -> bool:
        for name in ("etcd", "kube-apiserver"):
            assert self.children.is_alive(name), f"{name} ended:\n{self.children.tail(name)}"
        return self.server.kubectl("get", "--raw", "/readyz", check=False).returncode == 0


def make_client(path: Path, subject: str, *, plane: Path) -> None:
    """Make a client certificate `<path>.crt` and its key; the cluster's authority in `plane` signs it."""
    request = ["openssl", "req", "-newkey", "rsa:2048", "-nodes", "-subj", subject]
    _run(*request, "-keyout", f"{path}.key", "-out", f"{path}.csr")
    signed_by = ["-CA", f"{plane / AUTHORITY}.crt", "-CAkey", f"{plane / AUTHORITY}.key", "-CAcreateserial"]
    made = ["-in", f"{path}.csr", "-out", f"{path}.crt", "-days", "2"]
    _run("openssl", "x509", "-req", *made, *signed_by)


def _make_certificates(folder: Path) -> None:
    made = ["-keyout", f"{folder / AUTHORITY}.key", "-out", f"{folder / AUTHORITY}.crt", "-days", "2"]
    _run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=clients", *made)
    make_client(folder / "apiserver-client", "/O=system:masters/CN=kube-apiserver", plane=folder)


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True, capture_output=True)
