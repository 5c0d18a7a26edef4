"""`make demo`: a sweep becomes git history, on one machine, with real commands that are shown as they run.

A fresh bare remote and a clone of it live under `.demo/`. The second run finds everything recorded.
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parent
DEMO = CHECKOUT / ".demo"
REMOTE = DEMO / "remote.git"
WORK = DEMO / "work"
SWEEP = "mnist-grid"

IDENTITY = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
}
"""The person of the story; the results commit is the tool's own."""

COLORS = sys.stdout.isatty() and "NO_COLOR" not in os.environ


def main() -> int:
    """Play the story from wherever it was left."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fresh", action="store_true", help="start over: forget the remote, the clone and the results")
    if parser.parse_args().fresh and DEMO.exists():
        shutil.rmtree(DEMO)
    try:
        if not (WORK / ".git").is_dir():
            set_up()
        play()
    except subprocess.CalledProcessError as error:
        print(f"\nthe demo stopped: `{shlex.join(error.cmd)}` ended with exit code {error.returncode}", file=sys.stderr)
        print("run `make demo` to go on, or `make demo FRESH=1` to start over", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted: `make demo` goes on from here", file=sys.stderr)
        return 130
    return 0


def set_up() -> None:
    """Make a bare remote that holds this checkout's last commit, and clone it."""
    say("A remote, and a clone to work in")
    shutil.rmtree(DEMO, ignore_errors=True)
    seed = DEMO / "seed"
    seed.mkdir(parents=True)
    quiet("git", "-C", str(CHECKOUT), "archive", "--format=tar", f"--output={DEMO / 'seed.tar'}", "HEAD")
    shutil.unpack_archive(DEMO / "seed.tar", seed, filter="tar")
    quiet("git", "init", "--quiet", "--initial-branch=main", cwd=seed)
    quiet("git", "add", "--all", cwd=seed)
    quiet("git", "commit", "--quiet", "-m", "Start from sweepledger", cwd=seed, identity=True)
    quiet("git", "clone", "--quiet", "--bare", str(seed), str(REMOTE))
    show("git", "clone", "--quiet", str(REMOTE), str(WORK), cwd=DEMO)
    shutil.rmtree(seed)
    (DEMO / "seed.tar").unlink()


def play() -> None:
    """Ask, review, merge, run, record, look."""
    show("git", "pull", "--quiet", "--ff-only", "origin", "main")
    if not (WORK / "sweeps" / f"{SWEEP}.yaml").exists():
        ask()
    say("The cluster syncs and trains; the collector records")
    show("sweep", "local", "--once")
    show("git", "pull", "--quiet", "--ff-only", "origin", "main")
    say("What git holds now")
    show("git", "log", "--graph", "--oneline", "--decorate")
    show("sweep", "results", SWEEP, "--top", "5")
    results = WORK / "results" / SWEEP
    print(f"summary  {results / 'summary.csv'}")
    print(f"figure   {results / 'figure.svg'}")
    print(f"report   {results / 'README.md'}")


def ask() -> None:
    """Put the spec and what follows from it on a branch, and merge it: the approval to spend."""
    say("A person asks for a sweep, on a branch")
    quiet("git", "switch", "--quiet", "--force-create", "ask-for-mnist-grid", "origin/main")
    shutil.copyfile(HERE / f"{SWEEP}.yaml", WORK / "sweeps" / f"{SWEEP}.yaml")
    show("sweep", "validate", SWEEP)
    show("git", "add", "sweeps")
    show("git", "commit", "--quiet", "-m", "Ask how far learning rate and batch size carry a small CNN", identity=True)
    say("The generator writes the batch; CI checks it")
    show("sweep", "generate", SWEEP)
    show("git", "add", "overlays")
    show("git", "commit", "--quiet", "-m", f"generate({SWEEP}): 16 trials", identity=True)
    show("sweep", "check")
    say("Merging is the approval to spend")
    quiet("git", "switch", "--quiet", "main")
    show("git", "merge", "--quiet", "--no-ff", "-m", "Merge the sweep of learning rate and batch size",
         "ask-for-mnist-grid", identity=True)
    show("git", "push", "--quiet", "origin", "main")
    quiet("git", "branch", "--quiet", "--delete", "ask-for-mnist-grid")


def say(text: str) -> None:
    """Announce a chapter."""
    print(f"\n\033[1m== {text}\033[0m" if COLORS else f"\n== {text}", flush=True)


def show(*argv: str, cwd: Path = WORK, identity: bool = False) -> None:
    """Run a command as a person would type it."""
    typed = shlex.join(word.replace(str(DEMO) + os.sep, "") for word in argv)
    print(f"\033[2m$ {typed}\033[0m" if COLORS else f"$ {typed}", flush=True)
    quiet(*argv, cwd=cwd, identity=identity)


def quiet(*argv: str, cwd: Path | None = None, identity: bool = False) -> None:
    """Run a command with the tools of this environment first on PATH."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    environment = {**os.environ, "PATH": path, **(IDENTITY if identity else {})}
    subprocess.run(argv, cwd=cwd or WORK if WORK.is_dir() else cwd, check=True, env=environment)


if __name__ == "__main__":
    sys.exit(main())
