"""Builds the cluster's programs from pinned Go modules, once, into ignored folders named after the pins.

    python -m tests.cluster.building [GROUP]... [--deadline MINUTES]     the API server's where none is named

Nothing is fetched but what `tests/cluster/tools/*/go.sum` has the checksum of. What the whole cluster needs
beside these programs, packages and images, belongs to `preparing.py`.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster.deadline import Deadline, DeadlinePassedError, heed_signals

ROOT = Path(__file__).parents[2]
PINS = Path(__file__).parent / "tools"
BUILT = ROOT / ".tools"
NEVER = Deadline()

RELEASES = {"1.30": "1.30.14", "1.36": "1.36.3", "1.37": "1.37.2"}
"""Of Kubernetes, as in tools/control-plane-*/go.mod, oldest first; the binaries say it only if told at link time."""
ARGO_CD = "3.2.11"
"""As in tools/argocd/go.mod, likewise. What the module proxy has of 3.3 and newer lacks a part."""
FLUXES = {"2.7": "1.7.3", "2.8": "1.9.5"}
"""Releases of kustomize-controller, which applies what is merged. The one of Flux 2.10 needs Go 1.27."""


def chosen(variable: str, known: Mapping[str, str], usual: str) -> str:
    """Return the minor version that a variable of the environment chooses. Raises SystemExit with the known ones."""
    minor = os.environ.get(variable) or usual
    if minor not in known:
        sys.exit(f"{variable}: must be one of {', '.join(known)}, got {minor!r}")
    return minor


KUBERNETES = RELEASES[chosen("KUBERNETES", RELEASES, "1.36")]
"""What the clusters of tests run: `make e2e KUBERNETES=1.30`, and so for every target."""
MINOR = int(KUBERNETES.split(".")[1])
"""Of Kubernetes 1.MINOR: tests of what older versions lack are skipped there."""
FLUX_CD = chosen("FLUX", FLUXES, "2.8")
"""Likewise."""

_VERSION = "k8s.io/component-base/version.git"


@dataclass(frozen=True)
class Group:
    """Programs of one Go module, pinned together."""

    name: str
    programs: Mapping[str, str]
    """File → package."""
    takes: str
    """With a cold cache on two cores; with a warm one it is seconds."""
    link: tuple[str, ...] = ()
    with_c: Mapping[str, str] = field(default_factory=dict)
    """Program → tags, for those that C libraries are linked into."""
    module: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    """What comes along with the programs → a YAML file of the module, or a folder of them."""

    @property
    def folder(self) -> Path:
        return _folder(
            self.name, [dict(self.programs), self.link, dict(self.with_c), self.module, dict(self.files)]
        )

    def build(self, into: Path, deadline: Deadline) -> None:
        """Compile each program, and say how long it took; then take the files."""
        flags = ["-ldflags", " ".join(("-s", "-w", *self.link))]
        for program, package in self.programs.items():
            began = time.monotonic()
            tags = self.with_c.get(program)
            c = [] if tags is None else ["-tags", tags]
            env = {} if tags is None else {"CGO_ENABLED": "1"}
            argv = ["build", *flags, *c, "-o", str(into / program), package]
            _go(self.name, argv, deadline=deadline, env=env)
            say(f"    {program}: {time.monotonic() - began:.0f} s")
        for target, source in self.files.items():
            _copy(_sources(self.name, [self.module], deadline)[self.module] / source, into / target)


@dataclass(frozen=True)
class Definitions:
    """CRDs out of modules of which nothing is compiled."""

    name: str
    folders: Mapping[str, str]
    """Module → where its CRDs lie."""
    takes: str = "20 seconds"
    left_out: frozenset[str] = field(default_factory=frozenset)

    @property
    def folder(self) -> Path:
        return _folder(self.name, [dict(self.folders), sorted(self.left_out)])

    def build(self, into: Path, deadline: Deadline) -> None:
        """Take every CRD of the folders, side by side."""
        for module, source in _sources(self.name, [*self.folders], deadline).items():
            for path in sorted((source / self.folders[module]).glob("*.yaml")):
                text = path.read_text()
                is_wanted = f"{module.rpartition('/')[2]}/{path.name}" not in self.left_out
                if is_wanted and "\nkind: CustomResourceDefinition\n" in f"\n{text}":
                    (into / path.name).write_text(text)


FLUX_CRDS = "config/crd/bases"
CRDS = Definitions(
    "crds",
    {
        "github.com/argoproj/argo-cd/v3": "manifests/crds",
        "github.com/fluxcd/kustomize-controller": FLUX_CRDS,
        "github.com/fluxcd/notification-controller": FLUX_CRDS,
        "github.com/fluxcd/source-controller": FLUX_CRDS,
        "github.com/kubeflow/mpi-operator": "manifests/base",
        "github.com/kubeflow/trainer/v2": "manifests/base/crds",
        "github.com/kubeflow/training-operator": "manifests/base/crds",
        "sigs.k8s.io/jobset": "config/components/crd/bases",
        "sigs.k8s.io/kueue": "config/components/crd/bases",
    },
    # v1 of a kind whose v2beta1 comes with its own operator: a cluster has one of them.
    left_out=frozenset({"training-operator/kubeflow.org_mpijobs.yaml"}),
)
NEWEST_CRDS = Definitions("crds-newest", {"github.com/kubeflow/trainer/v2": "manifests/base/crds"})
AUTOSCALER_CRDS = Definitions("crds-autoscaler", {"k8s.io/autoscaler/cluster-autoscaler/apis": "config/crd"})
_KUSTOMIZE = {"kustomize": "sigs.k8s.io/kustomize/kustomize/v5"}
OLDEST_KUSTOMIZE = Group(
    "kustomize-5.5", _KUSTOMIZE, "20 seconds", ("-X sigs.k8s.io/kustomize/api/provenance.version=v5.5.0",)
)
NEWEST_KUSTOMIZE = Group("kustomize", _KUSTOMIZE, "20 seconds")


def _control_plane(minor: str) -> Group:
    major, number = minor.split(".")
    names = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet")
    return Group(
        f"control-plane-{minor}",
        {"etcd": "go.etcd.io/etcd/server/v3"} | {name: f"k8s.io/kubernetes/cmd/{name}" for name in names},
        "7 minutes",
        (
            f"-X {_VERSION}Version=v{RELEASES[minor]}",
            f"-X {_VERSION}Major={major}",
            f"-X {_VERSION}Minor={number}",
        ),
    )


CONTROL_PLANES = {release: _control_plane(minor) for minor, release in RELEASES.items()}
CONTROL_PLANE = CONTROL_PLANES[KUBERNETES]
CONTAINERS = Group(
    "containers",
    {
        program: f"github.com/containerd/containerd/v2/cmd/{program}"
        for program in ("containerd", "containerd-shim-runc-v2", "ctr")
    }
    | {"runc": "github.com/opencontainers/runc"},
    "80 seconds",
    with_c={"runc": "seccomp"},
)
FLUX = Group(
    "flux",
    {
        program: f"github.com/fluxcd/{program}"
        for program in ("source-controller", "kustomize-controller", "notification-controller")
    },
    "5 minutes",
)
OLDEST_KUSTOMIZE_CONTROLLER = Group(
    "kustomize-controller-1.7",
    {"kustomize-controller": "github.com/fluxcd/kustomize-controller"},
    "4 minutes",
)
KUSTOMIZE_CONTROLLER = FLUX if FLUX_CD == "2.8" else OLDEST_KUSTOMIZE_CONTROLLER
ARGOCD = Group(
    "argocd",
    {"argocd": "github.com/argoproj/argo-cd/v3/cmd"},
    "5 minutes",
    (f"-X github.com/argoproj/argo-cd/v3/common.version={ARGO_CD}",),
    module="github.com/argoproj/argo-cd/v3",
    files={"install.yaml": "manifests/install.yaml"},
)
KWOK = Group(
    "kwok",
    {"kwok": "sigs.k8s.io/kwok/cmd/kwok"},
    "60 seconds",
    module="sigs.k8s.io/kwok",
    files={"stage": "kustomize/stage"},
)
KUEUE = Group(
    "kueue",
    {"kueue": "sigs.k8s.io/kueue/cmd/kueue"},
    "3 minutes",
    module="sigs.k8s.io/kueue",
    files={"config/components": "config/components", "config/default": "config/default"},
)
JOBSET = Group(
    "jobset",
    {"jobset": "sigs.k8s.io/jobset"},
    "2 minutes",
    module="sigs.k8s.io/jobset",
    files={"config/components": "config/components", "config/default": "config/default"},
)
TRAINER = Group(
    "trainer",
    {"trainer": "github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager"},
    "3 minutes",
    module="github.com/kubeflow/trainer/v2",
    files={"config/base": "manifests/base"},
)
COREDNS = Group("coredns", {"coredns": "sweepledger.dev/tests/cluster/tools/coredns"}, "3 minutes")
"""From a main package of its own, which takes the plugins of a cluster and none for the services of clouds."""
PROMETHEUS = Group(
    "prometheus",
    {program: f"github.com/prometheus/prometheus/cmd/{program}" for program in ("prometheus", "promtool")},
    "10 minutes",
)
KUBE_STATE_METRICS = Group(
    "kube-state-metrics", {"kube-state-metrics": "k8s.io/kube-state-metrics/v2"}, "5 minutes"
)
VERSITYGW = Group("versitygw", {"versitygw": "github.com/versity/versitygw/cmd/versitygw"}, "3 minutes")
KUBE_ROUTER = Group(
    "kube-router", {"kube-router": "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router"}, "4 minutes"
)
KARPENTER = Group(
    "karpenter",
    {"karpenter": "sigs.k8s.io/karpenter/kwok"},
    "5 minutes",
    module="sigs.k8s.io/karpenter",
    files={"crds/core": "kwok/charts/crds", "crds/provider": "kwok/apis/crds"},
)
"""With the provider whose nodes kwok simulates."""

API = (CRDS, NEWEST_CRDS, OLDEST_KUSTOMIZE, NEWEST_KUSTOMIZE, CONTROL_PLANE)
"""What `make test` needs."""
GROUPS = (*API, CONTAINERS, FLUX, ARGOCD, KWOK, KUEUE)
"""The most needed first: a deadline cuts off the last ones."""
MONITORING = (PROMETHEUS, KUBE_STATE_METRICS)
"""What only the tests of alerts need; those of whole clusters run without them."""
EVERY = (*GROUPS, *MONITORING, VERSITYGW)
"""What `make cluster-tools` builds, with the chosen version of Kubernetes only."""
RARE = (KUBE_ROUTER, KARPENTER, JOBSET, TRAINER, COREDNS, AUTOSCALER_CRDS)
"""What only `make e2e-full` needs."""
KNOWN: Sequence[Group | Definitions] = (
    *EVERY,
    *RARE,
    OLDEST_KUSTOMIZE_CONTROLLER,
    *(group for group in CONTROL_PLANES.values() if group is not CONTROL_PLANE),
)
"""Also what only `make e2e-full` and comparisons of versions build: `python -m tests.cluster.building NAME`."""


def built(group: Group | Definitions) -> Path | None:
    """Give the folder of a group that was built from today's pins."""
    return group.folder if group.folder.is_dir() else None


def build(group: Group | Definitions, deadline: Deadline = NEVER) -> Path:
    """Build a group unless it was; a build that is cut off leaves nothing behind that counts."""
    if group.folder.is_dir():
        return group.folder
    BUILT.mkdir(exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f"{group.name}-building-", dir=BUILT))
    try:
        group.build(scratch, deadline)
        scratch.rename(group.folder)
    except OSError:
        if not group.folder.is_dir():  # else another build was faster
            raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return group.folder


def build_all(groups: Sequence[Group | Definitions], deadline: Deadline = NEVER) -> tuple[str, ...]:
    """Build what is not there yet, saying what and how long; name what failed. Raises DeadlinePassedError."""
    missing = [group for group in groups if built(group) is None]
    began, failed = time.monotonic(), []
    for number, group in enumerate(missing, start=1):
        if deadline.has_passed:
            raise DeadlinePassedError
        patience = f"once; about {group.takes} where nothing is cached"
        say(f"==> {number} of {len(missing)}: building {group.name} into .tools ({patience})")
        started = time.monotonic()
        try:
            build(group, deadline)
        except subprocess.CalledProcessError as error:
            say(f"==> {group.name} cannot be built (go ended with {error.returncode}): its tests are skipped")
            failed.append(group.name)
            continue
        now = time.monotonic()
        say(f"    {now - started:.0f} s; {(now - began) / 60:.1f} minutes so far")
    return tuple(failed)


def say(line: str) -> None:
    """Tell the person who waits, at once."""
    print(line, flush=True)


def _folder(name: str, wanted: object) -> Path:
    """Name the folder after the pins and after the programs that are built from them."""
    files = ("go.mod", "go.sum", *sorted(path.name for path in (PINS / name).glob("*.go")))
    parts = [(PINS / name / file).read_bytes() for file in files]
    parts.append(json.dumps(wanted, sort_keys=True).encode())
    digest = hashlib.sha256(b"\0".join(parts)).hexdigest()
    return BUILT / f"{name}-{digest[:12]}"


def _sources(name: str, modules: list[str], deadline: Deadline) -> Mapping[str, Path]:
    shown = _go(name, ["mod", "download", "-json", *modules], deadline=deadline)
    found = json.loads("[" + shown.replace("}\n{", "},{") + "]")
    return {module["Path"]: Path(module["Dir"]) for module in found}


def _copy(source: Path, target: Path) -> None:
    """Copy a file, or the YAML files of a folder: what lies in the cache of modules is read-only."""
    paths = sorted(source.rglob("*.yaml")) if source.is_dir() else [source]
    assert paths, f"{source} holds no YAML"
    for path in paths:
        place = target / path.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(path.read_bytes())


def _go(name: str, arguments: list[str], *, deadline: Deadline, env: Mapping[str, str] | None = None) -> str:
    # Cut off, go leaves hundreds of megabytes where it works.
    with tempfile.TemporaryDirectory(prefix="go-", dir=BUILT) as scratch:
        fixed = {"GOFLAGS": "-mod=readonly -buildvcs=false", "GOTOOLCHAIN": "local", "GOTMPDIR": scratch}
        return deadline.run(["go", *arguments], cwd=PINS / name, env={**fixed, **(env or {})})


def main(arguments: list[str]) -> int:
    """Build what is not there yet; without Go say so and leave: the tests skip by name what they miss."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.building")
    parser.add_argument("groups", nargs="*", metavar="GROUP", choices=[*(group.name for group in KNOWN), []])
    parser.add_argument("--deadline", type=float, metavar="MINUTES", help="end what has not ended by then")
    chosen = parser.parse_args(arguments)
    groups = [group for group in KNOWN if group.name in chosen.groups] or API
    if shutil.which("go") is None and any(built(group) is None for group in groups):
        say("==> no Go: the tests against a real API server are skipped (install Go 1.26 or newer)")
        return 0
    try:
        build_all(groups, Deadline.in_minutes(chosen.deadline))
    except DeadlinePassedError:
        missed = ", ".join(group.name for group in groups if built(group) is None)
        say(f"==> not built within {chosen.deadline:g} minutes: {missed}; the tests that need it are skipped")
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    heed_signals()
    sys.exit(main(sys.argv[1:]))
