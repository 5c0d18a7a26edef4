"""Builds the cluster's programs from pinned Go modules, once, into an ignored folder named after the pins.

    python -m tests.cluster.building [GROUP]...     all if none is named; says what it does and how long

Nothing is fetched but what `tests/cluster/tools/*/go.sum` has the checksum of.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
PINS = Path(__file__).parent / "tools"
BUILT = ROOT / ".tools"
REQUIRED = re.compile(r"^\t?(?:require )?([a-z][^ ]*/[^ ]*) (v[^ \n]+)$", re.MULTILINE)

KUBERNETES = "1.36.3"
"""As in tools/control-plane/go.mod; the binaries say it only if told at link time."""

_VERSION = "k8s.io/component-base/version.git"
_MAJOR, _MINOR, _ = KUBERNETES.split(".")


@dataclass(frozen=True)
class Group:
    """Programs of one Go module, pinned together."""

    name: str
    programs: Mapping[str, str]
    """File → package."""
    takes: str
    """With a cold cache on two cores; with a warm one it is seconds."""
    link: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        return BUILT / f"{self.name}-{_key(self.name)}"

    def build(self, into: Path) -> None:
        flags = ["-ldflags", " ".join(("-s", "-w", *self.link))]
        for program, package in self.programs.items():
            _go(self.name, "build", *flags, "-o", str(into / program), package)


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
        return BUILT / f"{self.name}-{_key(self.name)}"

    def build(self, into: Path) -> None:
        wanted = dict(REQUIRED.findall((PINS / self.name / "go.mod").read_text()))
        pins = [f"{module}@{version}" for module, version in wanted.items()]
        found = json.loads(
            "[" + _go(self.name, "mod", "download", "-json", *pins).replace("}\n{", "},{") + "]"
        )
        for module in found:
            for path in sorted(Path(module["Dir"], self.folders[module["Path"]]).glob("*.yaml")):
                text = path.read_text()
                is_wanted = f"{module['Path'].rpartition('/')[2]}/{path.name}" not in self.left_out
                if is_wanted and "\nkind: CustomResourceDefinition\n" in f"\n{text}":
                    (into / path.name).write_text(text)


CONTROL_PLANE = Group(
    "control-plane",
    {"etcd": "go.etcd.io/etcd/server/v3", "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver"},
    "6 minutes",
    (f"-X {_VERSION}Version=v{KUBERNETES}", f"-X {_VERSION}Major={_MAJOR}", f"-X {_VERSION}Minor={_MINOR}"),
)
_KUSTOMIZE = {"kustomize": "sigs.k8s.io/kustomize/kustomize/v5"}
NEWEST_KUSTOMIZE = Group("kustomize", _KUSTOMIZE, "20 seconds")
OLDEST_KUSTOMIZE = Group(
    "kustomize-5.5", _KUSTOMIZE, "20 seconds", ("-X sigs.k8s.io/kustomize/api/provenance.version=v5.5.0",)
)
FLUX = "config/crd/bases"
CRDS = Definitions(
    "crds",
    {
        "github.com/argoproj/argo-cd/v3": "manifests/crds",
        "github.com/fluxcd/kustomize-controller": FLUX,
        "github.com/fluxcd/notification-controller": FLUX,
        "github.com/fluxcd/source-controller": FLUX,
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

GROUPS = (CRDS, NEWEST_CRDS, OLDEST_KUSTOMIZE, NEWEST_KUSTOMIZE, CONTROL_PLANE)


def built(group: Group | Definitions) -> Path | None:
    """Give the folder of a group that was built from today's pins."""
    return group.folder if group.folder.is_dir() else None


def build(group: Group | Definitions) -> Path:
    """Build a group unless it was; a build that is cut off leaves nothing behind that counts."""
    if group.folder.is_dir():
        return group.folder
    BUILT.mkdir(exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f"{group.name}-building-", dir=BUILT))
    try:
        group.build(scratch)
        scratch.rename(group.folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return group.folder


def _key(name: str) -> str:
    pins = (PINS / name / file for file in ("go.mod", "go.sum"))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in pins)).hexdigest()[:12]


def _go(name: str, *arguments: str) -> str:
    done = subprocess.run(
        ["go", *arguments],
        cwd=PINS / name,
        env={**os.environ, "GOFLAGS": "-mod=readonly -buildvcs=false", "GOTOOLCHAIN": "local"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


def main(arguments: list[str]) -> int:
    """Build what is not there yet; without Go say so and leave: the tests skip by name what they miss."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.building")
    parser.add_argument("groups", nargs="*", metavar="GROUP", choices=[*(group.name for group in GROUPS), []])
    chosen = parser.parse_args(arguments).groups
    missing = [group for group in GROUPS if group.name in (chosen or [group.name]) and built(group) is None]
    if missing and shutil.which("go") is None:
        print("==> no Go: the tests against a real API server are skipped (install Go 1.26 or newer)")
        return 0
    for group in missing:
        print(
            f"==> building {group.name} into .tools (once; about {group.takes} where nothing is cached)",
            flush=True,
        )
        began = time.monotonic()
        try:
            build(group)
        except subprocess.CalledProcessError as error:
            print(
                f"==> {group.name} cannot be built (go ended with {error.returncode}): its tests are skipped"
            )
            continue
        print(f"    {time.monotonic() - began:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
