"""A node: containerd, runc and a kubelet in the box, which run real containers without any Docker engine.

A box has room for several: they share its network and its programs, and nothing else.
"""

import ipaddress
import json
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster import box, building
from tests.cluster.apiserver import Server, tool
from tests.cluster.children import Children, until
from tests.cluster.control_plane import AUTHORITY, make_client

PLUGINS = "/usr/lib/cni"
PAUSE = "localhost/pause:1"
MOST_PROCESSES = 512
"""Of a pod: what forks without end meets this, not the machine's limit."""
READY_SECONDS = 120

CONTAINERD = """version = 3
root = '{folder}/containerd'
state = '{state}'

[grpc]
  address = '{socket}'

[plugins.'io.containerd.cri.v1.images']
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = '{pause}'

[plugins.'io.containerd.cri.v1.runtime']
  # Without CAP_SYS_RESOURCE no process may be given a better score than its parent's.
  restrict_oom_score_adj = true
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ['{plugins}']
    conf_dir = '{folder}/cni'
  [plugins.'io.containerd.cri.v1.runtime'.containerd]
    default_runtime_name = 'runc'
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
      runtime_type = 'io.containerd.runc.v2'
      [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
        BinaryName = '{runc}'
        SystemdCgroup = false
"""


@dataclass(frozen=True)
class Place:
    """What nodes of one box must not have in common, by their number."""

    number: int = 1
    has_machine: bool = False
    """Whether the node is the only one of another machine of the box, not a further one of the first."""

    @property
    def name(self) -> str:
        return f"node-{self.number}"

    @property
    def address(self) -> str:
        """Give its address: kubelets listen on one port."""
        return str(ipaddress.IPv4Address(box.ADDRESS) + self.number - 1)

    @property
    def state(self) -> Path:
        """Give containerd's folder, in the box's own /run: the name of a socket has at most 107 letters."""
        return Path("/run/containerd" if self.number == 1 else f"/run/{self.name}")

    @property
    def socket(self) -> Path:
        return self.state / "containerd.sock"

    @property
    def cgroup(self) -> str:
        """Name the folder below which its kubelet makes cgroups."""
        return box.cgroup() if self.number == 1 else f"{box.cgroup()}/{self.name}"

    def process(self, name: str) -> str:
        """Say what one of its processes is called among the cluster's."""
        return name if self.number == 1 else f"{name}-{self.number}"

    @property
    def pods(self) -> str:
        return f"10.210.{self.number}.0/24"

    @property
    def network(self) -> dict[str, object]:
        """Say by which plugins its pods reach others."""
        return {
            "cniVersion": "1.0.0",
            "name": f"pods-{self.number}",
            "plugins": [
                {
                    "type": "bridge",
                    "bridge": f"pods{self.number}",
                    "isGateway": True,
                    "ipMasq": False,
                    "ipam": {
                        "type": "host-local",
                        "dataDir": "/run/cni",
                        "ranges": [[{"subnet": self.pods}]],
                        "routes": [{"dst": "0.0.0.0/0"}],
                    },
                },
                {"type": "loopback"},
            ],
        }


@dataclass
class Node:
    """The container runtime and the kubelet; each may be ended and started by itself."""

    folder: Path
    children: Children
    server: Server
    place: Place = field(default_factory=Place)
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Mapping[str, str] = field(default_factory=dict)
    """Effects by key."""

    def start(self) -> None:
        """Start both and wait until the node is ready. Raises NoClusterToolsError."""
        self.folder.mkdir(parents=True)
        (self.folder / "cni").mkdir()
        (self.folder / "cni/10-pods.conflist").write_text(json.dumps(self.place.network))
        if self.place.number > 1:
            if not self.place.has_machine:
                box.do("ip", "address", "add", f"{self.place.address}/24", "dev", box.BRIDGE)
            box.make_cgroups(self.place.cgroup)
        self.start_containerd()
        self.start_kubelet()
        until("the node is ready", self._is_ready, seconds=READY_SECONDS, pause=0.3)

    def start_containerd(self) -> None:
        programs = tool(building.CONTAINERS)
        config = self.folder / "containerd.toml"
        config.write_text(
            CONTAINERD.format(
                folder=self.folder,
                state=self.place.state,
                socket=self.place.socket,
                pause=PAUSE,
                plugins=PLUGINS,
                runc=programs / "runc",
            )
        )
        # The shim is looked for beside containerd's PATH.
        path = {"PATH": f"{programs}:{os.environ['PATH']}"}
        argv = [str(programs / "containerd"), "--config", str(config)]
        self.place.socket.unlink(missing_ok=True)  # of one that was killed
        self.children.start(self.place.process("containerd"), argv, env=path)
        until("containerd answers", self.place.socket.exists, seconds=READY_SECONDS, pause=0.3)

    def start_kubelet(self) -> None:
        """Start the kubelet, with a certificate of its own: it has a node's rights and no more."""
        if not (self.folder / "kubelet.yaml").is_file():
            self._configure()
        flags = [
            f"--config={self.folder / 'kubelet.yaml'}",
            f"--kubeconfig={self.folder / 'kubelet.kubeconfig'}",
            f"--root-dir={self.folder / 'kubelet'}",
            f"--cert-dir={self.folder / 'certificates'}",
            f"--hostname-override={self.place.name}",
            f"--node-ip={self.place.address}",
            f"--node-labels={','.join(f'{key}={value}' for key, value in self.labels.items())}",
        ]
        kubelet = str(tool(building.CONTROL_PLANE, "kubelet"))
        self.children.start(self.place.process("kubelet"), [kubelet, *flags])

    def load(self, archive: Path) -> None:
        ctr = str(tool(building.CONTAINERS, "ctr"))
        where = (f"--address={self.place.socket}", "--namespace=k8s.io")
        box.do(ctr, *where, "images", "import", "--local", str(archive))

    def lose(self) -> None:
        """End at once and without a word all that runs on the node, as when its power is cut."""
        for name in map(self.place.process, ("kubelet", "containerd")):
            self.children.kill(name)
        for _ in range(2):  # what a shim was about to start is there at the second look
            for pid in [*self._shims(), *self._members()]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def _shims(self) -> list[int]:
        """Find the processes that hold containers; each is told where its containerd is."""
        wanted = str(self.place.socket).encode()
        return [
            int(folder.name)
            for folder in Path("/proc").glob("[0-9]*")
            if (words := _words(folder)) and b"containerd-shim" in words[0] and wanted in words
        ]

    def _members(self) -> set[int]:
        """Find the processes of the node's pods."""
        tops = [*box.CGROUPS.glob(self.place.cgroup), *box.CGROUPS.glob(f"*/{self.place.cgroup}")]
        values: set[int] = set()
        for file in (path for top in tops for path in box.below(top, "**/cgroup.procs")):
            with suppress(OSError):  # it has ended
                values |= set(map(int, file.read_text().split()))
        return values

    def _configure(self) -> None:
        plane = self.server.folder
        make_client(self.folder / "kubelet", f"/O=system:nodes/CN=system:node:{self.place.name}", plane=plane)
        (self.folder / "kubelet.yaml").write_text(json.dumps(self._settings()))
        config = json.loads((plane / "kubeconfig").read_text())
        files = {
            "client-certificate": f"{self.folder}/kubelet.crt",
            "client-key": f"{self.folder}/kubelet.key",
        }
        config["users"][0]["user"] = files
        (self.folder / "kubelet.kubeconfig").write_text(json.dumps(config))

    def _settings(self) -> dict[str, object]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": self.place.address,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": False},
                "x509": {"clientCAFile": f"{self.server.folder / AUTHORITY}.crt"},
            },
            "authorization": {"mode": "Webhook"},
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{self.place.cgroup}",
            "cgroupsPerQOS": True,
            "clusterDNS": [box.SERVICE],
            "clusterDomain": "cluster.local",
            "containerRuntimeEndpoint": f"unix://{self.place.socket}",
            "enforceNodeAllocatable": [],
            "evictionHard": {
                "memory.available": "100Mi",
                "nodefs.available": "1%",
                "imagefs.available": "1%",
            },
            "failCgroupV1": False,
            "failSwapOn": False,
            "fileCheckFrequency": "0s",
            "healthzPort": 0,
            "imageGCHighThresholdPercent": 100,
            "nodeStatusUpdateFrequency": "2s",
            "volumeStatsAggPeriod": "10s",  # else a minute passes before it sees what a pod has written
            "podLogsDir": f"{self.folder / 'logs'}",
            "podPidsLimit": MOST_PROCESSES,
            "registerNode": True,
            "registerWithTaints": [{"key": key, "effect": effect} for key, effect in self.taints.items()],
            "resolvConf": "",
            "syncFrequency": "10s",
        }

    def _is_ready(self) -> bool:
        for name in map(self.place.process, ("containerd", "kubelet")):
            assert self.children.is_alive(name), f"{name} ended:\n{self.children.tail(name)}"
        path = '{.status.conditions[?(@.type=="Ready")].status}'
        completed = self.server.kubectl(
            "get", "node", self.place.name, f"--output=jsonpath={path}", check=False
        )
        return completed.stdout == "True"


def _words(process: Path) -> list[bytes]:
    with suppress(OSError):  # it has ended
        return (process / "cmdline").read_bytes().split(b"\0")
    return []
