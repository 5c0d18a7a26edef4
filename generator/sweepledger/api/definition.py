"""A sweep that a Python program or a notebook defines: the spec that it writes, and its run."""

import inspect
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from threading import Thread
from typing import TYPE_CHECKING, Any, SupportsFloat, TextIO

from sweepledger import storage
from sweepledger.api.repository import SweepRepository, open_repository
from sweepledger.engine.local import trial_loop
from sweepledger.errors import UsageError
from sweepledger.structs.metric import DEFAULT_METRIC, Goal, usual_goal
from sweepledger.structs.names import SPECS, SUFFIX

if TYPE_CHECKING:
    from sweepledger.api.sweep import RecordedSweep

WRITTEN = "sweepledger.sweep() wrote this file"
MARK = f"# {WRITTEN}, and writes it again.\n"
"""First line of a spec, which a person removes to keep it as it is."""


@dataclass(frozen=True)
class SweepDefinition:
    """A sweep with its spec, which `run` runs on this machine."""

    name: str
    spec: Path
    """The file of the spec."""
    repository: SweepRepository = field(repr=False)

    def run(
        self, *, parallel: int | None = None, commit_code: bool = True, without_gpu: bool = False
    ) -> "RecordedSweep":
        """Run the trials that no batch has, commit their results, and return them; show the progress.

        Uncommitted code is committed first, unless `commit_code` is false. If it changed since the last run, all trials
        run with it. Raises GeneratorError.
        """
        (recorded,) = self.repository.run(
            self.name,
            parallel=parallel,
            commit_code=commit_code,
            without_gpu=without_gpu,
            update=True,
            progress=_show_progress,
        )
        return recorded

    def ask(self) -> Iterator["AskedTrial"]:
        """Run the sweep in the background, and yield its trials, one after the other, for the caller to evaluate.

        For a sweep without a command. A trial whose result is not told before the next one is asked for has failed, and
        so have all that are left when the loop ends early. Raises GeneratorError.
        """
        outcome: Future[object] = Future()

        def run() -> None:
            try:
                outcome.set_result(self.run())
            except BaseException as error:  # noqa: BLE001 - raised again in the thread of the loop
                outcome.set_exception(error)

        # A daemon: a program that ends within its loop leaves the trials for the next one.
        running = Thread(target=run, daemon=True)
        try:
            with trial_loop.listen(self.name, self.repository.state) as requests:
                running.start()
                while not outcome.done():
                    with trial_loop.accept(requests) as trial:
                        # Empty if the trial has ended, as after its timeout, before its turn came.
                        if trial is not None and (values := trial.readline()):
                            yield AskedTrial(json.loads(values), trial)
            outcome.result()
        finally:
            if running.ident is not None and not sys.is_finalizing():
                running.join()  # trials that are left after the loop find no socket, and end

    def _repr_html_(self) -> str:
        return f"<pre>{inspect.cleandoc(self.spec.read_text(encoding='utf-8'))}</pre>"


@dataclass(frozen=True)
class AskedTrial:
    """A trial that a loop evaluates."""

    values: Mapping[str, Any]
    """Its hyperparameters, by name."""
    _reply: TextIO = field(repr=False)

    def tell(self, **metrics: SupportsFloat) -> None:
        """Give its result. Raises UsageError for a second one, OSError if the trial has ended, as after its timeout."""
        result = json.dumps({name: float(value) for name, value in metrics.items()})
        if self._reply.closed:
            raise UsageError(
                "this trial has a result, or the next one was asked for", hint="tell each trial's result once"
            )
        with self._reply:
            self._reply.write(f"{result}\n")


Command = str | Sequence[str] | Callable[..., Any] | None


def sweep(
    name: str,
    command: Command,
    parameters: Mapping[str, Any],
    *,
    metric: str = DEFAULT_METRIC,
    goal: str | None = None,
    method: str | None = None,
    trials: int | None = None,
    path: str | Path = ".",
) -> SweepDefinition:
    """Write the spec of a sweep to `sweeps/NAME.yaml`, as `sweep new` does, and return the sweep.

    `command` starts a program that prints the metric as `NAME=number`; or it is a function of the parameters that
    returns it, or a dictionary of several. Without a command, `ask` yields the trials, and the caller tells their
    results. A parameter has a list of values, a pair of bounds to search between, a single value, or the keys of a
    spec. A spec that this function wrote is written again; one that a person wrote is refused. Raises GeneratorError.
    """
    from sweepledger.operations.repository.workspace import Workspace
    from sweepledger.operations.scaffold.init import new_spec, refuse_name
    from sweepledger.operations.scaffold.starter import PARALLELISM, Starter, WrittenParameter

    refuse_name(name)
    repository = open_repository(path)
    workspace = Workspace.find(repository.root)
    spec = repository.root / SPECS / f"{name}{SUFFIX}"
    if spec.is_file() and not spec.read_text(encoding="utf-8").startswith(MARK):
        raise UsageError(
            f"{SPECS}/{name}{SUFFIX} exists, and was not written from Python",
            hint="choose another name; or `sweepledger.open().run(...)` runs it",
        )
    if not parameters or not all(isinstance(key, str) for key in parameters):
        raise UsageError(f"parameters must have a name and values each, got {parameters!r}")
    written = tuple(WrittenParameter(key, _keys(key, value)) for key, value in parameters.items())
    if goal not in {None, *Goal}:
        raise UsageError(f"goal must be one of {', '.join(Goal)}, got {goal!r}")
    chosen = usual_goal(metric) if goal is None else Goal(goal)
    program = f"{name.replace('-', '_')}_trial.py"
    with _restored(spec, repository.root / program):
        words, only_file = _command(name, command, metric, repository.root / program)
        spec.unlink(missing_ok=True)
        starter = Starter(
            *(words, written, metric, chosen, method, trials),
            # In a file of its own, no line that the function prints can be taken for its result.
            writes_result=command is None or callable(command),
            only_file=only_file,  # another change of the repository is none of its code
            parallelism=1 if command is None else PARALLELISM,  # a loop evaluates one trial after the other
        )
        new_spec(workspace, name, starter)
        storage.write_file(spec, f"{MARK}{spec.read_text(encoding='utf-8')}".encode())
    return SweepDefinition(name, spec, repository)


@contextmanager
def _restored(*files: Path) -> Iterator[None]:
    """Give files their former content, or remove them, if what the block does fails."""
    former = {file: file.read_bytes() if file.is_file() else None for file in files}
    try:
        yield
    except BaseException:
        for file, content in former.items():
            if content is None:
                file.unlink(missing_ok=True)
            else:
                storage.write_file(file, content)
        raise


def _keys(name: str, value: Any) -> dict[str, Any]:
    """Return the keys of a parameter. Raises UsageError for a value that a spec cannot have."""
    try:
        if isinstance(value, Mapping):
            keys = dict(value)
        elif isinstance(value, tuple) and len(value) == len(("low", "high")):
            keys = {"min": value[0], "max": value[1]}
        elif isinstance(value, Iterable) and not isinstance(value, str | bytes):
            keys = {"values": list(value)}
        else:
            keys = {"value": value}
        plain: dict[str, Any] = json.loads(
            json.dumps(keys, allow_nan=False, default=lambda scalar: scalar.item())
        )
    except (TypeError, ValueError, AttributeError) as error:
        raise UsageError(
            f"parameter {name} must have numbers, texts or booleans, got {value!r}",
            hint='[1, 2], (0.1, 1.0) for a range, or keys of a spec, such as {"min": 1, "max": 9}',
        ) from error
    return plain


def _command(name: str, command: Command, metric: str, program: Path) -> tuple[tuple[str, ...], str | None]:
    """Return the words of a command, and the only file of its code if there is one; write a program if it needs one.

    Raises UsageError for a program of a person in its place.
    """
    from sweepledger.operations.scaffold.command_line import split

    if isinstance(command, str):
        return split(command), None
    if isinstance(command, Sequence):
        return tuple(command), None
    is_alone = True
    if command is None:
        text = _template(trial_loop.PROGRAM).replace('SWEEP = "name"', f"SWEEP = {name!r}")
    else:
        function, origin = getattr(command, "__name__", ""), getattr(command, "__module__", None) or ""
        module = sys.modules.get(origin)
        file = Path(getattr(module, "__file__", None) or "").resolve()
        if (
            origin != "__main__"
            and file.is_relative_to(program.parent.resolve())
            and getattr(module, function, None) is command
        ):
            source, is_alone = f"from {origin} import {function} as evaluate", False
        else:
            source = f"{_source(command, function)}\n\nevaluate = {function}"
        text = _template(Path(__file__).with_name("function_trial.py")).replace(
            "from builtins import dict as evaluate\n", ""
        )
        text = text.replace('METRIC = "score"', f"{source}\n\nMETRIC = {metric!r}")
    if program.is_file() and WRITTEN not in program.read_text(encoding="utf-8"):
        raise UsageError(
            f"{program.name} exists, and was not written from Python",
            hint="choose another name for the sweep",
        )
    storage.write_file(program, text.encode())
    return ("python", program.name), program.name if is_alone else None


def _source(command: Callable[..., Any], name: str) -> str:
    """Return the source of a function. Raises UsageError for one that needs more than its source."""
    # A lambda has no name; a method needs its object, and a function within another that one's variables.
    is_whole = inspect.isfunction(command) and name.isidentifier() and not command.__closure__
    with suppress(OSError, TypeError):
        if is_whole:
            return dedent(inspect.getsource(command))
    raise UsageError(
        f"{name or command!r} is no function whose source can run alone",
        hint="write a `def` in a file or in a cell of a notebook, without variables of another function",
    )


def _template(program: Path) -> str:
    return re.sub("  # noqa: .*", "", program.read_text(encoding="utf-8"))


def _show_progress(ended: int, total: int) -> None:
    """Show how many trials have ended: in one line on a terminal and in a notebook."""
    end = "\n" if ended == total else ""
    print(f"\r{ended} of {total} trials", end=end, flush=True)  # noqa: T201 - what the user waits for
