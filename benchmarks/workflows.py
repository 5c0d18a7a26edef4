"""The long form of tests/workflows: this repository's own workflows, from their YAML, with real installs.

    python benchmarks/workflows.py [check | suite | image]...

A bare clone plays the host. `check` looks at one pull request with a mistake in its spec, and one with none;
`suite` is all of `make test`, of whose tests $TESTFLAGS chooses, and for whose programs it waits $DEADLINE
minutes; `image` builds, pushes and pins both images (as root, with buildah and docker-registry).
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.workflows.runner import OURS, ROOT, Host, Ran

JOBS = (("check", "check"), ("test", "suite"), ("image", "build"), ("image", "propose"))
"""What is run here, and nowhere else."""
SPEC = """name: first
method: grid
metric: {name: score, goal: maximize, source: stdout}
parameters: {x: {values: [1, 2]}}
command: [python, examples/ten_lines.py, "${args}"]
run: {code: {path: examples}, resources: {cpu: 1, memory: 256Mi}, timeout: 5m}
"""
WHO = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
SUITE = {
    name: os.environ.get(name, given) for name, given in (("TESTFLAGS", "tests/structs"), ("DEADLINE", "1"))
}


def main() -> int:
    names = sys.argv[1:] or ["check", "suite", "image"]
    good = True
    with tempfile.TemporaryDirectory(prefix="sweep-workflows-") as scratch:
        remote = published(Path(scratch) / "remote.git")
        host = Host(remote, Path(scratch) / "host", tools(), environment={**settings(), **SUITE})
        if "check" in names:
            good &= check(host, Path(scratch) / "clone")
        if "suite" in names:
            good &= suite(host)
    if "image" in names:
        argv = [sys.executable, str(ROOT / "benchmarks/workflows_image.py")]
        good &= not subprocess.run(argv, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False).returncode
    return not good


def published(remote: Path) -> Path:
    """Make a bare clone of what is committed here, as a host has it."""
    git(ROOT, "clone", "--quiet", "--bare", "--single-branch", ".", str(remote))
    git(remote, "update-ref", "refs/heads/main", "HEAD")
    git(remote, "symbolic-ref", "HEAD", "refs/heads/main")
    return remote


def settings() -> dict[str, str]:
    """Give what pip knows here: behind an index of one's own it has to be told, and fetches nothing twice."""
    messages = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    home = Path.home()
    files = [file for file in (home / ".config/pip/pip.conf", home / ".pip/pip.conf") if file.is_file()]
    named = {"PIP_CONFIG_FILE": str(files[0])} if files else {}
    return {"PIP_CACHE_DIR": str(home / ".cache/pip"), "PIP_NO_COMPILE": "1", **named, **messages}


def tools() -> tuple[Path, ...]:
    """Give the folders of this Python and of Go, where there is one."""
    paths = [Path(sys.executable).parent]
    return tuple(paths + [place for place in (Path("/usr/local/go/bin"),) if place.is_dir()])


def check(host: Host, clone: Path) -> bool:
    git(ROOT, "clone", "--quiet", "--branch", "main", str(host.remote), str(clone))
    (clone / "sweeps/first.yaml").write_text(SPEC.replace("[1, 2]", "[1, 1]"), encoding="utf-8")
    wrong = checked(host, clone)
    (clone / "sweeps/first.yaml").write_text(SPEC, encoding="utf-8")
    right = checked(host, clone)
    for ran in (wrong, right):
        print(ran.steps)
        print(*ran.annotations, sep="\n")
    print(right.summary[:400] if right.is_green else right.output)
    return right.is_green and not wrong.is_green


def suite(host: Host) -> bool:
    sha = git(host.remote, "rev-parse", "main")
    ran = host.run(OURS / "test.yaml", {"sha": sha}, job="suite", matrix={"python": "3.11"})
    print(ran.steps)
    print(ran.output[-2000:])
    return ran.is_green


def checked(host: Host, clone: Path) -> Ran:
    """Open a pull request of what lies in the clone, and run the workflow on its merge."""
    base = git(clone, "rev-parse", "origin/main")
    git(clone, "add", "--all")
    tree = git(clone, "write-tree")
    merge = git(clone, "commit-tree", tree, "-p", base, "-m", "Merge the proposal")
    git(clone, "push", "--quiet", "--force", "origin", f"{merge}:refs/pull/1/merge")
    event = {"pull_request": {"base": {"ref": "main", "sha": base}}}
    return host.run(OURS / "check.yaml", {"sha": merge, "ref": "refs/pull/1/merge", "event": event})


def git(folder: Path, *arguments: str) -> str:
    argv = ["git", *WHO, *arguments]
    done = subprocess.run(argv, cwd=folder, env=os.environ, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
