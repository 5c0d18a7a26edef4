"""The long form of tests/workflows: this repository's own check, as its YAML says it, with a real install.

    python benchmarks/workflows.py

A bare clone plays the host; one pull request has a mistake in its spec, the next one none.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.workflows.runner import OURS, ROOT, Host, Ran

SPEC = """name: first
method: grid
metric: {name: score, goal: maximize, source: stdout}
parameters: {x: {values: [1, 2]}}
command: [python, examples/ten_lines.py, "${args}"]
run: {code: {path: examples}, resources: {cpu: 1, memory: 256Mi}, timeout: 5m}
"""
WHO = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="sweep-workflows-") as scratch:
        remote, clone = Path(scratch) / "remote.git", Path(scratch) / "clone"
        git(ROOT, "clone", "--quiet", "--bare", "--single-branch", ".", str(remote))
        git(remote, "update-ref", "refs/heads/main", "HEAD")
        git(ROOT, "clone", "--quiet", "--branch", "main", str(remote), str(clone))
        # Behind an index of one's own pip has to be told of it.
        host = Host(remote, Path(scratch) / "host", (Path(sys.executable).parent,), home=Path.home())
        (clone / "sweeps/first.yaml").write_text(SPEC.replace("[1, 2]", "[1, 1]"), encoding="utf-8")
        wrong = checked(host, clone)
        (clone / "sweeps/first.yaml").write_text(SPEC, encoding="utf-8")
        right = checked(host, clone)
    for ran in (wrong, right):
        print(ran.steps)
        print(*ran.annotations, sep="\n")
    print(right.summary[:400] if right.is_green else right.output)
    return not right.is_green or wrong.is_green


def checked(host: Host, clone: Path) -> Ran:
    """Open a pull request of what lies in the clone, and run the workflow on its merge."""
    base = git(clone, "rev-parse", "origin/main")
    git(clone, "add", "--all")
    tree = git(clone, "write-tree")
    merge = git(clone, "commit-tree", tree, "-p", base, "-m", "Merge the proposal")
    git(clone, "push", "--quiet", "--force", "origin", f"{merge}:refs/pull/1/merge")
    event = {"pull_request": {"base": {"sha": base}}}
    return host.run(OURS / "check.yaml", {"sha": merge, "ref": "refs/pull/1/merge", "event": event})


def git(folder: Path, *arguments: str) -> str:
    argv = ["git", *WHO, *arguments]
    done = subprocess.run(argv, cwd=folder, env=os.environ, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
