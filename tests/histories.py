"""Random histories of a team: clones, a fork, pushes, merges, rebases, runs, and commands that plan batches meanwhile.

Each step is a real git command or a command of the product; nothing is run: trials leave records as their launchers
would. After each step, `History` looks for recorded batches that are gone and finished trials that are requested again.
"""

import json
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from subprocess import CalledProcessError
from subprocess import run as run_program

from sweepledger.errors import GeneratorError, IdleError, RepositoryError, UsageError
from sweepledger.operations.collection.record_store import on_volume
from sweepledger.operations.collection.results_commit import commit_results
from sweepledger.operations.generation.next_batch import Generated
from sweepledger.operations.generation.next_batch import generate_batches as generate
from sweepledger.operations.repository.workspace import Target, Workspace
from sweepledger.operations.run import SweepRun
from sweepledger.problems import Problem, Severity
from sweepledger.repo import batches
from sweepledger.repo.batches import StoredBatch
from sweepledger.repo.git import Repository, rebased_commit
from sweepledger.verbs.check import check_change
from sweepledger.verbs.cluster.next_ import write_next
from sweepledger.verbs.generate import generate_changed
from sweepledger.verbs.plan import plan_sweeps
from sweepledger.verbs.retry import retry_trials
from sweepledger.verbs.verify import verify_results
from tests.repository import Sandbox, cancelled, copy_repositories, temporary_folder
from tests.searches import hill, leave

REFUSALS = ("no commit has all results of", "several remotes have a branch main")
"""What a command may answer in an honest history: it says which way out there is, and writes nothing."""
HINTED = {"batch-moved", "batch-vanished", "program-not-shown"}
"""Problems of an honest proposal, whose hint leads out."""
STEPS = 16
LAST_KEY = "timeout: 1m\n"
"""The end of a spec before `cancel` and `retry` add to it."""
FAILING = 7
"""Of 16 batches, those whose trials fail."""
FAILED: dict[str, object] = {"status": "failed", "reason": "exit-1", "metrics": {}}
SWEEPS = ("peak", "hill")


OF_A_FORK = ("upstream/main", "upstream/main", "origin/main")


@cache
def _beginning() -> Path:
    """Return a folder with a team's repository, a fork of it, the collector's clone, and those of three machines."""
    folder = temporary_folder()
    team = Sandbox.create(folder)
    team.spec(xs="1, 2")
    hill(team, size=2, rounds=2)
    team.publish("Ask")
    fork = folder / "fork.git"
    team.git("clone", "-q", "--bare", str(team.remote), str(fork))
    for name, remote in (("laptop", team.remote), ("desktop", team.remote), ("author", fork)):
        team.git("clone", "-q", str(remote), str(folder / name))
        machine = Sandbox(remote, folder / name)
        for key, value in (("user.name", "Ada"), ("user.email", "ada@example.org")):
            machine.git("config", key, value)
    machine.git("remote", "add", "upstream", str(team.remote))
    machine.git("fetch", "-q", "upstream")
    return folder


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
    _recorded: dict[str, frozenset[str]] = field(default_factory=dict)
    """Recorded batches of each branch of each repository."""
    _recorded_of: dict[str, frozenset[str]] = field(default_factory=dict)
    """The same, by commit."""
    _ok: dict[str, frozenset[str]] = field(default_factory=dict)
    """Trials that ended ok, by the id of a file of records."""

    def play(self, steps: int = STEPS) -> list[str]:
        self.chance = random.Random(self.seed)  # noqa: S311 - histories that can be had again
        self._begin()
        moves: list[Callable[[Machine], None]] = [
            *[self.run, self.generate, self.synchronize] * 4,
            *[self.edit, self.go_on, self.push, self.propose, self.retry, self.cancel] * 2,
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
        """Copy the repositories that every history begins with, which each process makes once."""
        copy_repositories(_beginning(), self.folder)
        self.team, self.fork = self.folder / "remote.git", self.folder / "fork.git"
        self.collector = Sandbox(self.team, self.folder / "work tree")
        hook = self.chance.randrange(3)
        self.machines = [
            Machine(self.team, self.folder / "laptop", name="laptop", has_hook=hook == 0),
            Machine(self.team, self.folder / "desktop", name="desktop", has_hook=hook == 1),
            Machine(self.fork, self.folder / "author", name="author", has_hook=hook == 2, bases=OF_A_FORK),
        ]

    # What people do.

    def edit(self, machine: Machine) -> None:
        """Write another spec, with the batches that the former one cancels or retries."""
        name = "hill" if self.chance.random() < 0.3 else "peak"
        before = (machine.root / f"sweeps/{name}.yaml").read_text()
        if name == "hill":
            path = hill(machine, size=2, rounds=self.chance.randint(2, 4))
        else:
            values = self.chance.sample(range(1, 7), self.chance.randint(1, 4))
            path = machine.spec(xs=", ".join(map(str, sorted(values))))
        path.write_text(path.read_text() + before[before.index(LAST_KEY) + len(LAST_KEY) :])

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
        steps = write_next(machine.workspace, ["hill"])
        self._judge(machine, [step.generated for step in steps if step.generated])

    def update(self, machine: Machine) -> None:
        machine.save("Before the code changes")
        with (machine.root / "code/train.py").open("a") as program:
            program.write(f"# {self.chance.random()}\n")
        machine.save("Change the code")
        self._judge(machine, generate(machine.workspace, ["peak"], update=True))

    def retry(self, machine: Machine) -> None:
        """Request failed and cancelled trials again; with the current code, as other trials."""
        if self.chance.random() < 0.5:
            self.run(machine)
        machine.save("Before a retry")
        finished = self._finished(machine.workspace.repository, "HEAD")
        with suppress(IdleError, UsageError, RepositoryError):
            made = retry_trials(machine.workspace, "peak", update=self.chance.random() < 0.2).generated
            asked = {row.trial for batch in _overlays((made,)) for row in batch.rows}
            if again := asked & finished:
                self._say(f"retry requests {sorted(again)} again")

    def cancel(self, machine: Machine) -> None:
        machine.save("Before a cancellation")
        before = self._recorded_at(machine.workspace.repository, "HEAD")
        with suppress(IdleError, UsageError, RepositoryError):
            made = cancelled(
                machine.workspace, self.chance.choice(SWEEPS), replace=self.chance.random() < 0.5
            )
            if ended := before.intersection(made.batches):
                self._say(f"cancel ends {sorted(ended)}, which are recorded")

    def plan(self, machine: Machine) -> None:
        reviews = {review.sweep.name: review for review in plan_sweeps(machine.workspace).reviews}
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
        finished = self._finished(machine.workspace.repository, "HEAD")
        planned = run.commit_batches().generated
        asked = {row.trial for batch in _overlays(planned) for row in batch.rows}
        if again := asked & finished:
            self._say(f"run requests {sorted(again)} again")
        repository = machine.workspace.repository
        merged = {batch.name for batch in batches.in_commit(Repository(self.team), "refs/heads/main")}
        active = [
            batch for batch in batches.in_commit(repository, "HEAD", batches.ACTIVE) if batch.sweep == name
        ]
        if any(batch.name in merged for batch in active):
            return
        for batch in active:
            self._leave(machine.volume, batch)
        target = Target(repository, branch=machine.git("branch", "--show-current").strip(), is_laptop=True)
        commit_results(target, on_volume(machine.volume), ())

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
            machine.try_git("commit", "-q", "-m", "Merge")  # where both sides have the same files
        else:
            machine.git("merge", "--abort")

    def switch(self, machine: Machine) -> None:
        machine.save("Before a branch")
        if machine.git("branch", "--show-current").strip() != "main":
            machine.git("switch", "-q", "main")
        elif self.chance.random() < 0.3:
            machine.git("switch", "-q", "--detach")
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
        if errors and {problem.code for problem in errors} <= HINTED:
            hints = "".join(problem.hint or "" for problem in errors)
            commands = dict.fromkeys(hints.split("`")[1::2])
            for program, *words in map(str.split, commands):  # merged, or other code, since it was proposed
                if [program, *words[:1]] == ["sweep", "generate"]:
                    update = "--update" in words
                    self._judge(machine, generate(machine.workspace, [words[1]], base=base, update=update))
                elif program in {"git", "rm"}:
                    run_program([program, *words], cwd=machine.root, check=True, capture_output=True)
                    machine.git("commit", "-q", "-a", "--allow-empty", "-m", "Follow a hint")
            self._judge(machine, generate_changed(machine.workspace, base=base).generated)
            machine.git("add", "--all")
            if not machine.is_clean():  # without the hook, whose base is that of the clone
                machine.git("commit", "-q", "-m", "Follow the hints")
            errors = self._errors(machine, base)
        if errors:
            self._say(f"check refuses: {[str(problem) for problem in errors]}")
            return
        machine.git("push", "-q", str(self.team), "HEAD:main")

    def _errors(self, machine: Machine, base: str) -> list[Problem]:
        problems = check_change(machine.workspace, base=base).problems
        return [problem for problem in problems if problem.severity is Severity.ERROR]

    def collect(self, _: Machine) -> None:
        """Let every merged batch end and the team's collector record it."""
        self.collector.git("fetch", "-q", "origin")
        repository = self.collector.workspace.repository
        volume = self.folder / "volume"
        for batch in batches.in_commit(repository, "refs/remotes/origin/main", batches.ACTIVE):
            self._leave(volume, batch)
        commit_results(Target(repository, "origin", "main"), on_volume(volume), (), alive=())

    def _leave(self, volume: Path, batch: StoredBatch) -> None:
        """Leave a record of every trial of a batch: in some, all failed."""
        fails = batch.sweep == "peak" and int(batch.name[-1], 16) < FAILING
        leave(volume, batch, **(FAILED if fails else {}))

    # What must hold.

    def _look(self) -> None:
        """Compare the recorded batches of each branch with those before, and the work trees with HEAD."""
        for machine in self.machines:
            repository = Repository(machine.root)
            for branch in (machine.root / ".git/refs/heads").iterdir():
                now = self._recorded_at(repository, branch.read_text().strip())
                self._compare(f"{branch.name} of {machine.name}", now)
            present = {batch.name for batch in batches.in_work_tree(machine.root) if not batch.is_active}
            if gone := self._recorded_at(repository, "HEAD") - present:
                self._say(f"{sorted(gone)} gone from the work tree of {machine.name}")
        for name, remote in (("team", self.team), ("fork", self.fork)):
            loose = remote / "refs/heads/main"
            tip = loose.read_text().strip() if loose.is_file() else "refs/heads/main"
            self._compare(f"main of {name}", self._recorded_at(Repository(remote), tip))

    def _compare(self, branch: str, now: frozenset[str]) -> None:
        if gone := self._recorded.get(branch, frozenset()) - now:
            self._say(f"{sorted(gone)} gone from {branch}")
        self._recorded[branch] = now

    def _recorded_at(self, repository: Repository, revision: str) -> frozenset[str]:
        commit = revision if revision in self._recorded_of else repository.commit(revision)
        if commit is not None and commit not in self._recorded_of:
            files = repository.files(commit, "results", batches.ARCHIVE)
            stored = batches.of_entries(repository, files)
            names = (batch.name for batch in stored if batch.records_file() in files)
            self._recorded_of[commit] = frozenset(names)
        return self._recorded_of.get(commit or "", frozenset())

    def _finished(self, repository: Repository, revision: str) -> frozenset[str]:
        """Return the trials that a commit has records of which say ok."""
        files = repository.files(repository.commit(revision), "results")
        records = [entry.id for path, entry in files.items() if "/records/" in path]
        new = [identity for identity in records if identity not in self._ok]
        for identity, content in repository.blobs(new).items():
            lines = (json.loads(line) for line in content.splitlines())
            self._ok[identity] = frozenset(line["trial"] for line in lines if line.get("status") == "ok")
        return frozenset().union(*(self._ok[identity] for identity in records))

    def _judge(self, machine: Machine, made: object) -> None:
        """Compare the proposed batches of the planned sweeps with what is finished in HEAD and the base commit."""
        workspace = machine.workspace
        repository, base = workspace.repository, self._base(workspace)
        planned = {generated.sweep.name for generated in made if isinstance(generated, Generated)}  # type: ignore[attr-defined]
        merged = {batch.name for batch in batches.in_commit(repository, base)}
        # A rebase that is stopped brings recorded batches back as they were requested, and moves them afterwards.
        repeated = batches.in_commit(repository, rebased_commit(repository), batches.ARCHIVE)
        merged |= {batch.name for batch in repeated}
        finished = frozenset[str]()
        for commit in (repository.commit("HEAD"), base):
            finished |= self._finished(repository, commit or "")
        for batch in batches.in_work_tree(machine.root):
            is_proposed = batch.is_active and batch.name not in merged and batch.sweep in planned
            if is_proposed and (again := finished & {row.trial for row in batch.rows}):
                self._say(f"{batch.name} requests {sorted(again)} again")

    def _base(self, workspace: Workspace) -> str | None:
        try:
            return workspace.base_commit(None)
        except UsageError:
            return None

    def _verify(self) -> None:
        for machine in self.machines:
            machine.save("End")
            for sweep in (
                verify_results(machine.workspace).sweeps if (machine.root / "results").is_dir() else ()
            ):
                for difference in sweep.differences:
                    self._say(f"verify on {machine.name}: {difference}")

    def _say(self, message: str) -> None:
        self.wrong.append(f"seed {self.seed}, after {', '.join(self.steps)}: {message}")


def _overlays(planned: tuple[Generated, ...]) -> Iterator[StoredBatch]:
    for generated in planned:
        if generated.batch is not None:
            yield StoredBatch(f"{batches.ACTIVE}/{generated.batch.name}", generated.batch.tree)
