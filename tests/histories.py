"""Random histories of a team: clones, a fork, pushes, merges, rebases, runs, and commands that plan batches meanwhile.

Each step is a real git command or a command of the product; nothing is run: trials leave records as their launchers
would. After each step, `History` looks for recorded batches that are gone and finished trials that are requested again.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CalledProcessError

from sweepledger.commands.check import check
from sweepledger.commands.collection.results_commit import commit_results
from sweepledger.commands.generate import generate, generate_changed
from sweepledger.commands.generation.next_batch import Generated
from sweepledger.commands.next_ import next_
from sweepledger.commands.plan import plan
from sweepledger.commands.repository.batch_records import records_file
from sweepledger.commands.repository.workspace import Target, Workspace
from sweepledger.commands.run import SweepRun
from sweepledger.commands.verify import verify
from sweepledger.errors import GeneratorError, RepositoryError, UsageError
from sweepledger.problems import Problem, Severity
from sweepledger.repo import batches
from sweepledger.repo.batches import StoredBatch
from sweepledger.repo.git import Repository
from tests.repository import Sandbox
from tests.searches import hill, leave

REFUSALS = ("no commit has all results of", "several remotes have a branch main")
"""What a command may answer in an honest history: it says which way out there is, and writes nothing."""
STEPS = 16
SWEEPS = ("peak", "hill")


@dataclass(frozen=True)
class Machine(Sandbox):
    """A clone, and what its trials have left."""

    name: str = ""
    has_hook: bool = False
    """Whether each commit generates batches first."""
    bases: tuple[str, ...] = ("origin/main",)

    @property
    def volume(self) -> Path:
        return self.root.parent / f"{self.name}.volume"

    def is_clean(self) -> bool:
        return not self.git("status", "--porcelain")

    def try_git(self, *arguments: str) -> bool:
        """Run git; return whether it succeeded."""
        try:
            self.git(*arguments)
        except CalledProcessError:
            return False
        return True

    def save(self, message: str) -> None:
        """Commit everything, as `git commit` does with the hook of the page."""
        if self.has_hook:
            with suppress(RepositoryError, UsageError):
                generate_changed(self.workspace)
        self.git("add", "--all")
        if not self.is_clean():
            self.git("commit", "-q", "-m", message)


@dataclass
class History:
    """A team's repository, its clones, and what was wrong after a step."""

    folder: Path
    seed: int
    wrong: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    _recorded: dict[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    """Recorded batches of each branch of each repository."""
    _recorded_of: dict[str, frozenset[str]] = field(default_factory=dict)
    """The same, by commit."""
    _trials: dict[str, frozenset[str]] = field(default_factory=dict)

    def play(self, steps: int = STEPS) -> list[str]:
        """Make a history; return what was wrong, in words."""
        self.chance = random.Random(self.seed)  # noqa: S311 - histories that can be had again
        self._begin()
        moves: list[Callable[[Machine], None]] = [
            *[self.run, self.generate, self.synchronize] * 4,
            *[self.edit, self.go_on, self.push, self.propose] * 2,
            *[
                self.collect,
                self.save,
                self.update,
                self.revert,
                self.leave_merge_unfinished,
                self.switch,
                self.plan,
            ],
        ]
        machine = self.chance.choice(self.machines)
        for _ in range(steps):
            if self.chance.random() < 0.4:  # people take several steps in a row
                machine = self.chance.choice(self.machines)
            move = self.chance.choice(moves)
            self.steps.append(f"{machine.name} {move.__name__}")
            try:
                move(machine)
            except GeneratorError as error:
                if not any(words in str(error) for words in REFUSALS):
                    self._say(f"{type(error).__name__}: {error}")
            self._look()
            if self.wrong:
                return self.wrong
        self._verify()
        return self.wrong

    def _begin(self) -> None:
        team = Sandbox.create(self.folder)
        team.write("sweepledger.yaml", "version: 1\n")
        team.spec(xs="1, 2")
        hill(team, size=2, rounds=2)
        team.publish("Ask")
        self.team, self.fork = team.remote, self.folder / "fork.git"
        team.git("clone", "-q", "--bare", str(self.team), str(self.fork))
        self.collector = team
        hook = self.chance.randrange(3)
        self.machines = [
            self._clone("laptop", self.team, has_hook=hook == 0),
            self._clone("desktop", self.team, has_hook=hook == 1),
            self._clone("author", self.fork, has_hook=hook == 2),
        ]
        author = self.machines[-1]
        author.git("remote", "add", "upstream", str(self.team))
        author.git("fetch", "-q", "upstream")

    def _clone(self, name: str, remote: Path, *, has_hook: bool) -> Machine:
        bases = ("origin/main",) if remote == self.team else ("upstream/main", "upstream/main", "origin/main")
        machine = Machine(remote, self.folder / name, name=name, has_hook=has_hook, bases=bases)
        self.collector.git("clone", "-q", str(remote), str(machine.root))
        for key, value in (("user.name", "Ada"), ("user.email", "ada@example.org")):
            machine.git("config", key, value)
        return machine

    # What people do.

    def edit(self, machine: Machine) -> None:
        if self.chance.random() < 0.3:
            hill(machine, size=2, rounds=self.chance.randint(2, 4))
        else:
            values = self.chance.sample(range(1, 7), self.chance.randint(1, 4))
            machine.spec(xs=", ".join(map(str, sorted(values))))

    def revert(self, machine: Machine) -> None:
        machine.git("checkout", "-q", "HEAD", "--", "sweeps")

    def generate(self, machine: Machine) -> None:
        if self.chance.random() < 0.5:
            self.edit(machine)
        if self.chance.random() < 0.5:
            made = generate(machine.workspace)
        else:
            generation = generate_changed(machine.workspace)
            made = generation.generated
            for failure in generation.failures:
                if not any(words in str(failure) for words in REFUSALS):
                    self._say(str(failure))
        self._judge(machine, made)

    def go_on(self, machine: Machine) -> None:
        steps = next_(machine.workspace, ["hill"])
        self._judge(machine, [step.generated for step in steps if step.generated])

    def update(self, machine: Machine) -> None:
        machine.save("Before the code changes")
        with (machine.root / "code/train.py").open("a") as program:
            program.write(f"# {self.chance.random()}\n")
        machine.save("Change the code")
        self._judge(machine, generate(machine.workspace, ["peak"], update=True))

    def plan(self, machine: Machine) -> None:
        reviews = {review.sweep.name: review for review in plan(machine.workspace).reviews}
        made = generate(machine.workspace, ["peak"], check=True)[0]
        planned = reviews["peak"].counts.new if "peak" in reviews else 0
        if planned != (0 if made.batch is None else made.batch.lock.trials):
            self._say(f"plan requests {planned} trials, generate {made}")

    def save(self, machine: Machine) -> None:
        machine.save("Save")

    def run(self, machine: Machine) -> None:
        """Commit what a sweep needs, and record it, unless the team's collector is about to record it."""
        name = self.chance.choice(SWEEPS)
        if not machine.git("branch", "--show-current").strip():
            return
        if self.chance.random() < 0.7:
            self.edit(machine)
        machine.save("Before a run")
        run = SweepRun.prepare(machine.workspace, (name,))
        here = batches.in_commit(machine.workspace.repository, "HEAD")
        finished = self._finished(here, machine.workspace.repository, "HEAD")
        planned = run.commit_batches().generated
        asked = {row.trial for batch in _overlays(planned) for row in batch.rows}
        if again := asked & finished:
            self._say(f"run requests {sorted(again)} again")
        repository = machine.workspace.repository
        merged = {batch.name for batch in batches.in_commit(Repository(self.team), "refs/heads/main")}
        active = [batch for batch in batches.active_in_commit(repository, "HEAD") if batch.sweep == name]
        if any(batch.name in merged for batch in active):
            return
        for batch in active:
            leave(machine.volume, batch)
        target = Target(repository, branch=machine.git("branch", "--show-current").strip(), is_laptop=True)
        commit_results(target, machine.volume, ())

    def push(self, machine: Machine) -> None:
        machine.try_git("push", "-q", "origin", "HEAD:main")

    def synchronize(self, machine: Machine) -> None:
        machine.save("Before a pull")
        machine.git("fetch", "-q", "--all")
        base = self.chance.choice(machine.bases)
        if self.chance.random() < 0.4:
            if not machine.try_git("rebase", "-q", base):
                with suppress(RepositoryError, UsageError):
                    self._judge(machine, generate_changed(machine.workspace).generated)
                machine.git("rebase", "--abort")
        elif not machine.try_git("merge", "-q", "--no-edit", base):
            machine.git("merge", "--abort")

    def leave_merge_unfinished(self, machine: Machine) -> None:
        """Generate while a merge is under way, then finish or abort it."""
        machine.save("Before a merge")
        machine.git("fetch", "-q", "--all")
        if machine.try_git("merge", "-q", "--no-ff", "--no-commit", self.chance.choice(machine.bases)):
            with suppress(RepositoryError, UsageError):
                self._judge(machine, generate_changed(machine.workspace).generated)
            machine.save("Merge")
        else:
            machine.git("merge", "--abort")

    def switch(self, machine: Machine) -> None:
        machine.save("Before a branch")
        if machine.git("branch", "--show-current").strip() != "main":
            machine.git("switch", "-q", "main")
        elif not machine.try_git("switch", "-q", "-c", "ask"):
            machine.git("switch", "-q", "ask")

    def propose(self, machine: Machine) -> None:
        """Open a pull request on top of the team's main: the check accepts it, and it is merged."""
        machine.save("Before a pull request")
        machine.git("fetch", "-q", "--all")
        base = machine.bases[0]
        if not machine.try_git("merge", "-q", "--no-edit", base):
            machine.git("merge", "--abort")
            return
        repository = machine.workspace.repository
        if self._recorded_at(repository, "HEAD") - self._recorded_at(repository, base):
            return  # results are pushed by who recorded them
        made = generate_changed(machine.workspace, base=base)
        self._judge(machine, made.generated)
        machine.git("add", "--all")
        if not machine.is_clean():
            machine.git("commit", "-q", "-m", "Propose")
        errors = self._errors(machine, base)
        if errors and {problem.code for problem in errors} <= {"batch-vanished", "code-not-shown"}:
            for (
                problem
            ) in errors:  # it was merged, or the code changed, since it was proposed: the hint helps
                program, *words = (problem.hint or "").split("`")[1].split()
                if program == "git":
                    machine.git(*words)
                else:
                    self._judge(machine, generate(machine.workspace, [words[1]], base=base, update=True))
            self._judge(machine, generate_changed(machine.workspace, base=base).generated)
            machine.save("Follow the hints")
            errors = self._errors(machine, base)
        if errors:
            self._say(f"check refuses: {[str(problem) for problem in errors]}")
            return
        machine.git("push", "-q", str(self.team), "HEAD:main")

    def _errors(self, machine: Machine, base: str) -> list[Problem]:
        problems = check(machine.workspace, base=base).problems
        return [problem for problem in problems if problem.severity is Severity.ERROR]

    def collect(self, _: Machine) -> None:
        """Let every merged batch end and the team's collector record it."""
        self.collector.git("fetch", "-q", "origin")
        repository = self.collector.workspace.repository
        volume = self.folder / "volume"
        for batch in batches.active_in_commit(repository, "refs/remotes/origin/main"):
            leave(volume, batch)
        commit_results(Target(repository, "origin", "main"), volume, ())

    # What must hold.

    def _look(self) -> None:
        """Compare the recorded batches of each branch with those before, and the work trees with HEAD."""
        for machine in self.machines:
            repository = machine.workspace.repository
            for branch in (machine.root / ".git/refs/heads").iterdir():
                self._compare(machine.name, repository, f"refs/heads/{branch.name}")
            present = {batch.name for batch in batches.in_work_tree(machine.root) if not batch.is_active}
            if gone := self._recorded_at(repository, "HEAD") - present:
                self._say(f"{sorted(gone)} gone from the work tree of {machine.name}")
        for name, remote in (("team", self.team), ("fork", self.fork)):
            self._compare(name, Repository(remote), "refs/heads/main")

    def _compare(self, name: str, repository: Repository, branch: str) -> None:
        now = self._recorded_at(repository, branch)
        if gone := self._recorded.get((name, branch), frozenset()) - now:
            self._say(f"{sorted(gone)} gone from {branch} of {name}")
        self._recorded[name, branch] = now

    def _recorded_at(self, repository: Repository, revision: str) -> frozenset[str]:
        commit = repository.commit(revision)
        if commit is not None and commit not in self._recorded_of:
            files = repository.files(commit, "results")
            stored = batches.archived_in_commit(repository, commit)
            names = (batch.name for batch in stored if records_file(batch) in files)
            self._recorded_of[commit] = frozenset(names)
        return self._recorded_of.get(commit or "", frozenset())

    def _finished(
        self, stored: tuple[StoredBatch, ...], repository: Repository, revision: str
    ) -> frozenset[str]:
        recorded = self._recorded_at(repository, revision)
        return frozenset().union(*(self._ids(batch) for batch in stored if batch.name in recorded))

    def _ids(self, batch: StoredBatch) -> frozenset[str]:
        if batch.name not in self._trials:
            self._trials[batch.name] = frozenset(row.trial for row in batch.rows)
        return self._trials[batch.name]

    def _judge(self, machine: Machine, made: object) -> None:
        """Compare the proposed batches of the planned sweeps with what is finished in HEAD and the base commit."""
        workspace = machine.workspace
        repository, base = workspace.repository, self._base(workspace)
        planned = {generated.sweep.name for generated in made if isinstance(generated, Generated)}  # type: ignore[attr-defined]
        merged = {batch.name for batch in batches.in_commit(repository, base)}
        finished = frozenset[str]()
        for commit in (repository.commit("HEAD"), base):
            finished |= self._finished(
                batches.archived_in_commit(repository, commit), repository, commit or ""
            )
        for batch in batches.in_work_tree(machine.root):
            is_proposed = batch.is_active and batch.name not in merged and batch.sweep in planned
            if is_proposed and (again := self._ids(batch) & finished):
                self._say(f"{batch.name} requests {sorted(again)} again")

    def _base(self, workspace: Workspace) -> str | None:
        try:
            return workspace.base_commit(None)
        except UsageError:
            return None

    def _verify(self) -> None:
        for machine in self.machines:
            machine.save("End")
            for sweep in verify(machine.workspace).sweeps if (machine.root / "results").is_dir() else ():
                for difference in sweep.differences:
                    self._say(f"verify on {machine.name}: {difference}")

    def _say(self, message: str) -> None:
        self.wrong.append(f"seed {self.seed}, after {', '.join(self.steps)}: {message}")


def _overlays(planned: tuple[Generated, ...]) -> Iterator[StoredBatch]:
    for generated in planned:
        if generated.batch is not None:
            yield StoredBatch(f"{batches.ACTIVE}/{generated.batch.name}", generated.batch.tree)
