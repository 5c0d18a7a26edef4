"""The jobs of image.yaml, in order, from the YAML: real builds, real registries, a branch with the digests.

    python benchmarks/workflows_image.py     as root; needs buildah, docker-registry, mmdebstrap and openssl

Everything but fetching wheels and a Debian happens in a box without a network, whose hosts file leads
ghcr.io and Docker Hub to registries on its loopback, with certificates that the box trusts. `gh`, which lends
git the host's token, is a program that does nothing: the remote is a folder.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.workflows import git, published, tools
from tests.cluster import base_system, box, images
from tests.cluster.image_store import Store, base_name
from tests.workflows.runner import OURS, ROOT, Host

TOKEN = "canary-8d02"  # noqa: S105 - found nowhere afterwards
REPOSITORY = "Lab/Sweeps"
"""Of a host that allows capitals, which no registry does."""
LOCKS = ("sweep", "release")
HUB = "docker.io/library/python:3.13-slim"
"""The base's name is the one that base.txt has; the digest is of a Debian that is made here."""
FLAGS = {"collector": "--volume {wheels}:/mnt:ro", "trainer": "--build-arg LOCK=none"}
REGISTRY = """version: 0.1
log: {{level: error}}
storage: {{filesystem: {{rootdirectory: {folder}/blobs}}}}
http: {{addr: '{address}:443', tls: {{certificate: {tls}/cert.pem, key: {tls}/key.pem}}}}
{auth}
"""
NAMES = ("ghcr.io", "docker.io", "registry-1.docker.io")


def main() -> int:
    if sys.argv[1:2] == ["--inside"]:
        return inside(Path(sys.argv[2]))
    reason = why_not()
    if reason:
        print(f"skipped: image.yaml: {reason}")
        return 0
    images.build()
    with tempfile.TemporaryDirectory(prefix="sweep-image-workflow-") as scratch:
        for lock in LOCKS:
            argv = [sys.executable, "-m", "pip", "download", "--quiet", "--require-hashes"]
            argv += ["--requirement", f"locks/{lock}.lock", "--dest", f"{scratch}/wheels"]
            subprocess.run(argv, cwd=ROOT, check=True)
        Path(scratch, "wheels/pip.conf").write_text("[global]\nno-index = true\nfind-links = /mnt\n")
        argv = [sys.executable, "-m", "tests.cluster.box", sys.executable, __file__, "--inside", scratch]
        return subprocess.run(argv, cwd=ROOT, check=False).returncode


def why_not() -> str:
    missing = [name for name in ("docker-registry", "openssl", "perl") if shutil.which(name) is None]
    return base_system.missing() or box.why_not() or (f"{missing[0]} not found" if missing else "")


def inside(scratch: Path) -> int:
    """Do all of it, where nothing can be reached but what is started here."""
    tls = certified(scratch / "tls")
    (scratch / "hosts").write_text("127.0.0.1 localhost ghcr.io\n127.0.0.2 docker.io registry-1.docker.io\n")
    box.do("mount", "--bind", str(scratch / "hosts"), "/etc/hosts")
    environment = settings(scratch, tls)
    os.environ |= environment
    with ExitStack() as stack:
        stack.enter_context(registry(scratch / "ghcr", "127.0.0.1", tls, secret=TOKEN))
        stack.enter_context(registry(scratch / "hub", "127.0.0.2", tls))
        bases = {recipe.name: based(recipe) for recipe in images.RECIPES if recipe.base}
        remote = published(scratch / "remote.git")
        host = Host(remote, scratch / "host", (*tools(), gh(scratch / "gh")), environment=environment)
        return not did(host, bases, scratch)


def did(host: Host, bases: Mapping[str, str], scratch: Path) -> bool:
    """Run the jobs; tell whether they left what they are for."""
    sha = git(host.remote, "rev-parse", "main")
    github = {"sha": sha, "repository": REPOSITORY, "token": TOKEN}
    ran = []
    for image, base in bases.items():
        more = {"BASE": base, "BUILD_FLAGS": FLAGS[image].format(wheels=scratch / "wheels")}
        machine = Host(host.remote, host.folder, host.tools, environment={**host.environment, **more})
        began = time.monotonic()
        ran.append(machine.run(OURS / "image.yaml", github, job="build", matrix={"image": image}))
        parts = json.loads((ran[-1].artifact(f"sbom-{image}") / f"{image}.json").read_text())["components"]
        print(f"{image}: {time.monotonic() - began:.0f} s, {len(parts)} parts listed")
    ran.append(host.run(OURS / "image.yaml", github, job="propose"))
    for completed in ran:
        print(
            completed.steps, completed.output if not completed.is_green else completed.output[-600:], sep="\n"
        )
    if not all(item.is_green for item in ran):
        return False
    pinned = git(host.remote, "diff", f"main..images/{sha}")
    print(pinned)
    digests = [pushed(scratch / "ghcr", image, sha) for image in bases]
    is_told = any(TOKEN in text for text in (pinned, *(item.output + item.summary for item in ran)))
    is_pinned = all(f"+    digest: {digest}\n" in f"{pinned}\n" for digest in digests)
    print(f"the branch has the registry's digests: {is_pinned}; the token stands somewhere: {is_told}")
    return is_pinned and not is_told


def pushed(folder: Path, image: str, sha: str) -> str:
    """Ask the registry's own store what lies under the commit's name."""
    place = f"blobs/docker/registry/v2/repositories/{REPOSITORY.lower()}/{image}/_manifests/tags/{sha}"
    return (folder / place / "current/link").read_text().strip()


def settings(scratch: Path, tls: Path) -> dict[str, str]:
    """Give what the box's machines set for all programs."""
    storage = scratch / "storage.conf"
    places = f'graphroot = "{scratch}/storage"\nrunroot = "{scratch}/storage-run"\n'
    storage.write_text(f'[storage]\ndriver = "overlay"\n{places}')
    return {
        "SSL_CERT_FILE": str(tls / "ca.pem"),
        "CONTAINERS_STORAGE_CONF": str(storage),
        "BUILDAH_ISOLATION": "chroot",
        "TMPDIR": str(scratch),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(scratch / "wheels"),
        "PIP_NO_COMPILE": "1",
    }


def certified(folder: Path) -> Path:
    """Make an authority, and a certificate for the names of the registries."""
    folder.mkdir()
    sign = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    names = ",".join(f"DNS:{name}" for name in NAMES)
    ours = ["-CA", "ca.pem", "-CAkey", "ca.key", "-addext", f"subjectAltName={names}"]
    ours += ["-addext", "basicConstraints=critical,CA:FALSE"]
    for argv in (
        [*sign, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=box", "-days", "2"],
        [*sign, "-keyout", "key.pem", "-out", "cert.pem", "-subj", "/CN=registry", "-days", "2", *ours],
    ):
        subprocess.run(argv, cwd=folder, check=True, capture_output=True)
    return folder


@contextmanager
def registry(folder: Path, address: str, tls: Path, *, secret: str = "") -> Iterator[None]:
    """Run a registry on port 443 of an address; with a secret it lets in `somebody` alone."""
    folder.mkdir()
    auth = ""
    if secret:
        argv = ["perl", "-e", "print crypt($ARGV[0], q($2b$05$) . q(abcdefghijklmnopqrstuu))", secret]
        done = subprocess.run(argv, check=True, capture_output=True, text=True)
        (folder / "users").write_text(f"somebody:{done.stdout}\n")
        auth = f"auth: {{htpasswd: {{realm: box, path: {folder}/users}}}}"
    config = folder / "config.yml"
    config.write_text(REGISTRY.format(folder=folder, address=address, tls=tls, auth=auth))
    with (folder / "log").open("w") as log:
        argv = ["docker-registry", "serve", str(config)]
        process = subprocess.Popen(argv, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield
        finally:
            process.terminate()
            process.wait()


def based(recipe: images.Recipe) -> str:
    """Put the Debian of an image where Docker Hub is; give its name by digest, as base.txt does."""
    assert recipe.base is not None
    with tempfile.TemporaryDirectory() as scratch:
        store, digest = Store(images.FOLDER / "store", Path(scratch)), Path(scratch) / "digest"
        place = f"docker://{HUB}-{recipe.name}"
        store.run("push", "--quiet", f"--digestfile={digest}", base_name(recipe.base), place)
        return f"{HUB}@{digest.read_text().strip()}"


def gh(folder: Path) -> Path:
    folder.mkdir()
    (folder / "gh").write_text('#!/bin/sh\n[ "$1 $2" = "auth setup-git" ]\n')
    (folder / "gh").chmod(0o755)
    return folder


if __name__ == "__main__":
    sys.exit(main())
