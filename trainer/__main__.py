"""Command line: `python -m trainer WORKLOAD --name=value …` trains; with `--help` it lists the hyperparameters.

Values come from arguments, paths and seed from the environment (see `contract`). Exit codes: 0 success,
42 these values cannot be trained, 43 every trial of the sweep would fail in the same way, 71 and 74 the
machine failed, 143 stopped by SIGTERM.
"""

import os
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

from trainer import data, files
from trainer.contract import (
    BAD_SWEEP,
    Environment,
    Problem,
    TrialError,
    read_environment,
)
from trainer.hyperparameters import (
    NETWORKS,
    WORKLOADS,
    Configuration,
    format_value,
    hyperparameters_of,
    nearest,
    parse,
)

if TYPE_CHECKING:
    from trainer.checkpoint import EpochMetrics

WIDTH = 80
"""Maximum columns of a line of text."""
USAGE = f"""usage: python -m trainer WORKLOAD [--name=value …]
       python -m trainer WORKLOAD [--network=NAME] --help
       python -m trainer prepare WORKLOAD [--from FOLDER]

  WORKLOAD           {", ".join(WORKLOADS)}

  SWEEP_DATA         folder of the data; default: the digits of a package
  SWEEP_RESULT       file for the result, which is printed as well
  SWEEP_SEED         default 0; --seed=N does the same
  SWEEP_CHECKPOINTS  folder that all attempts share; default: no checkpoints
  SWEEP_PARENT       folder with another trial's checkpoint, to continue from
  SWEEP_GPU_FRACTION part of the GPU's memory to use; default: all
  OMP_NUM_THREADS    default: the container's CPU limit, or 1 without a limit
"""


def main(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run the command that the arguments name. Returns the exit code; problems go to standard error."""
    try:
        _run(arguments, environ)
    except TrialError as error:
        sys.stderr.writelines(f"trainer: {problem}\n" for problem in error.problems)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


def _run(arguments: Sequence[str], environ: Mapping[str, str]) -> None:
    match arguments:
        case ["-h" | "--help", *_]:
            print_line(_usage(*WORKLOADS))
        case [workload, *rest] if workload in WORKLOADS and {"-h", "--help"} & set(rest):
            print_line(_usage(workload, network=_named_network(workload, rest)))
        case ["prepare", *rest]:
            print_line(f"prepare: {data.prepare_command(rest, read_environment(environ).data)}")
        case [workload, *rest] if workload in WORKLOADS:
            environment = read_environment({**environ, **_seed(rest)})
            _train(parse(workload, _hyperparameters(rest)), environment, environ)
        case _:
            raise TrialError([_misuse(arguments)])


# Training


def _seed(arguments: Sequence[str]) -> dict[str, str]:
    seeds = [word for word in arguments if word.startswith("--seed=")]
    return {"SWEEP_SEED": seeds[-1].removeprefix("--seed=")} if seeds else {}


def _hyperparameters(arguments: Sequence[str]) -> list[str]:
    return [word for word in arguments if not word.startswith("--seed=")]


def _train(configuration: Configuration, environment: Environment, environ: Mapping[str, str]) -> None:
    dataset = data.load(configuration.workload, environment.data)
    # OpenMP reads it when torch is loaded. Threads that spin while they wait take the core from those they
    # wait for: beside busy neighbors, two spinning threads were sixteen times slower than two sleeping ones.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    # Imported here because torch takes 1.5 s to load: bad values and damaged files are reported before that.
    from trainer import compute, result, train  # noqa: PLC0415

    group = compute.join_group(environ, environment.checkpoints)

    def report(epochs: list["EpochMetrics"]) -> None:
        if group.is_writer:
            print_line(result.line(epochs))

    if group.is_writer:
        processes = f"{group.size} processes, " if group.size > 1 else ""
        print_line(
            f"{dataset.name}: {dataset.train.count} images to train with, {dataset.test.count} to test with; "
            f"network {configuration.network.name}, seed {environment.seed}, "
            f"{processes}{environment.threads} thread(s)"
        )
    try:
        training = train.train(configuration, dataset, environment=environment, group=group, report=report)
    finally:
        group.leave()
    if group.is_writer:
        text = result.text(result.document(training))
        print_line(text.rstrip())
        if environment.result:
            files.write(environment.result, text.encode())


def print_line(line: str) -> None:
    """Print a line at once, so that readers of a pipe see each epoch when it ends."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


# Help


def _named_network(workload: str, arguments: Sequence[str]) -> str:
    names = [word.removeprefix("--network=") for word in arguments]
    return next((name for name in names if name in WORKLOADS[workload]), WORKLOADS[workload][0])


def _usage(*workloads: str, network: str = "") -> str:
    lines = [USAGE]
    for name in sorted({name for workload in workloads for name in WORKLOADS[workload]}):
        accepting = ", ".join(workload for workload, networks in WORKLOADS.items() if name in networks)
        about = (NETWORKS[name].__doc__ or "").partition("\n")[0]
        lines.append(textwrap.fill(f"--network={name} ({accepting}): {about}", WIDTH, subsequent_indent="  "))
    if network:
        lines.append(f"\nhyperparameters of {workloads[0]}, network {network}; for others add --network=NAME")
        for hyperparameter in hyperparameters_of(workloads[0], network).values():
            about = f"{hyperparameter.unit}: {hyperparameter.meaning}; {hyperparameter.allowed}"
            indent = " " * 6
            lines.append(f"  --{hyperparameter.name}={format_value(hyperparameter.default)}")
            lines.append(textwrap.fill(about, WIDTH, initial_indent=indent, subsequent_indent=indent))
    return "\n".join(lines)


def _misuse(arguments: Sequence[str]) -> Problem:
    expected = f"{', '.join(WORKLOADS)} or prepare"
    got = " ".join(arguments)[:80] or "nothing"
    similar = nearest(arguments[-1] if arguments else "", (*WORKLOADS, "prepare"))
    hint = f"did you mean {similar}?" if similar else "python -m trainer --help lists the hyperparameters"
    return Problem("python -m trainer", f"expected {expected}, got {got}", BAD_SWEEP, hint)


def _exit(code: int) -> NoReturn:
    """End the process here, with all output written, not through Python's own shutdown.

    That waits 0.3 CPU s for torch, and threads of torch that are still running occasionally abort it: one
    finished training of two processes in thirty (https://github.com/pytorch/pytorch/issues/190489).
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    _exit(main(sys.argv[1:], os.environ))
