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
SWEEP = "mnist-grid"
BRANCH = f"ask-for-{SWEEP}"

ADA = {
    f"GIT_{role}_{key}": value
    for role in ("AUTHOR", "COMMITTER")
    for key, value in (("NAME", "Ada"), ("EMAIL", "ada@example.org"))
}
"""The person of the story. The results commit is the tool's own."""

COLORS = sys.stdout.isatty() and "NO_COLOR" not in os.environ


def main() -> int:
    """Play the story from wherever it was left."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fresh", action="store_true", help="start over: forget remote, clone and results")
    parser.add_argument("--folder", type=Path, default=CHECKOUT / ".demo", help="where it all lives")
    arguments = parser.parse_args()
    story = Story(arguments.folder.absolute())
    try:
        if arguments.fresh or not story.work.is_dir():
            story.set_up()
        story.play()
    except subprocess.CalledProcessError as error:
        print(
            f"\nthe demo stopped: {shlex.join(error.cmd)!r} ended with exit code {error.returncode}",
            file=sys.stderr,
        )
        print("`make demo` goes on from here, `make demo FRESH=1` starts over", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted: `make demo` goes on from here", file=sys.stderr)
        return 130
    return 0


class Story:
    """One remote, one clone, one sweep."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.remote = folder / "remote.git"
        self.work = folder / "work"

    def set_up(self) -> None:
        """Make a bare remote that holds this checkout's last commit, and clone it."""
        say("A remote, and a clone to work in")
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        seed = self.folder / "seed"
        run(["git", "clone", "--quiet", str(CHECKOUT), str(seed)], self.folder)
        shutil.rmtree(seed / ".git")
        forget_sweeps(seed)
        run(["git", "init", "--quiet", "--initial-branch=main"], seed)
        run(["git", "add", "--all"], seed)
        run(["git", "commit", "--quiet", "--message", "Start from sweepledger"], seed, ADA)
        run(["git", "clone", "--quiet", "--bare", str(seed), str(self.remote)], self.folder)
        run(["git", "clone", "--quiet", str(self.remote), "clone"], self.folder)
        shutil.rmtree(seed)
        (self.folder / "clone").rename(self.work)

    def play(self) -> None:
        """Ask, review, merge, run, record, look."""
        self.show("git pull --quiet --ff-only origin main")
        if not (self.work / "sweeps" / f"{SWEEP}.yaml").exists():
            self.ask()
        say("The cluster syncs and trains; the collector records")
        self.show("sweep cluster local --once")
        self.show("git pull --quiet --ff-only origin main")
        say("What git holds now")
        self.show("git --no-pager log --graph --oneline --decorate")
        self.show(f"sweep results {SWEEP} --top 5")
        results = self.work / "results" / SWEEP
        print(f"\nsummary  {results / 'summary.csv'}")
        print(f"figures  {results / 'figures'}")
        print(f"report   {results / 'README.md'}")

    def ask(self) -> None:
        """Put the spec and what follows from it on a branch, and merge it: the approval to spend."""
        say("A person asks for a sweep, on a branch")
        self.show(f"git switch --quiet --force-create {BRANCH} origin/main")
        shutil.copyfile(CHECKOUT / "sweeps" / f"{SWEEP}.yaml", self.work / "sweeps" / f"{SWEEP}.yaml")
        self.show(f"sweep validate {SWEEP}")
        self.show("git add sweeps")
        self.show("git commit --quiet --message 'Ask how far learning rate and batch size carry a small CNN'")
        say("The generator writes the batch; CI checks it")
        self.show(f"sweep generate {SWEEP}")
        self.show("git add overlays")
        self.show(f"git commit --quiet --message 'generate({SWEEP}): 16 trials'")
        self.show("sweep check")
        say("Merging is the approval to spend")
        self.show("git switch --quiet main")
        self.show(f"git merge --quiet --no-ff --message 'Merge the sweep {SWEEP}' {BRANCH}")
        self.show("git push --quiet origin main")

    def show(self, command: str) -> None:
        """Run a command of the story as a person would type it."""
        print(f"\033[2m$ {command}\033[0m" if COLORS else f"$ {command}", flush=True)
        run(shlex.split(command), self.work, ADA if command.startswith("git ") else {})


def forget_sweeps(repository: Path) -> None:
    """Leave nothing that has ever been asked for: this checkout has sweeps of its own."""
    for folder in ("sweeps", "overlays/active", "overlays/archive", "results"):
        for path in (repository / folder).glob("*"):
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != ".gitkeep":
                path.unlink()


def say(text: str) -> None:
    """Announce a chapter."""
    print(f"\n\033[1m== {text}\033[0m" if COLORS else f"\n== {text}", flush=True)


def run(argv: list[str], folder: Path, variables: dict[str, str] | None = None) -> None:
    """Run a command with the tools of this environment first on PATH."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    subprocess.run(argv, cwd=folder, check=True, env={**os.environ, "PATH": path, **(variables or {})})


if __name__ == "__main__":
    sys.exit(main())
