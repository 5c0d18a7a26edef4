"""Command line: `python -m trainer mnist --name=value …` trains, with `--describe` it only says what.

Values come as arguments, paths and seed from the environment; see `contract`. Exit codes: 0 done,
42 these values cannot be trained, 43 every trial of the sweep would fail like this one, 71 and 74 the
machine refused, 143 ended when asked to.
"""

import json
import os
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

from trainer import data, files, prepare
from trainer.contract import BAD_SWEEP, Problem, Surroundings, TrialError, surroundings
from trainer.hyperparameters import NETWORKS, WORKLOADS, Knobs, knobs_of, parse
from trainer.knobs import shown, suggestion

if TYPE_CHECKING:
    from trainer.progress import Epoch

WIDE = 80
"""Columns of a terminal."""
USAGE = f"""usage: python -m trainer WORKLOAD [--name=value …]
       python -m trainer WORKLOAD [--name=value …] --describe [--format json]
       python -m trainer prepare WORKLOAD [--from FOLDER]

  WORKLOAD           {", ".join(WORKLOADS)}

  SWEEP_DATA         folder of the data; without it, the digits of a package
  SWEEP_RESULT       file for the result, which standard output shows as well
  SWEEP_SEED         0 if not set; --seed=N does the same
  SWEEP_CHECKPOINTS  folder that all attempts share; without it, none is kept
  SWEEP_PARENT       folder of another trial's checkpoint, to go on from
  OMP_NUM_THREADS    the container's limit if not set, 1 if there is none
"""


def main(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Do what the arguments ask for. Returns the exit code; what is wrong goes to standard error."""
    try:
        _dispatch(arguments, environ)
    except TrialError as error:
        sys.stderr.writelines(f"trainer: {problem}\n" for problem in error.problems)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


def _dispatch(arguments: Sequence[str], environ: Mapping[str, str]) -> None:
    match arguments:
        case ["-h" | "--help", *_]:
            _say(_usage(*WORKLOADS))
        case [workload, *rest] if workload in WORKLOADS and {"-h", "--help"} & set(rest):
            _say(_usage(workload))
        case ["prepare", *rest]:
            _say(f"prepare: {prepare.command(rest, surroundings(environ).data)}")
        case [workload, *rest] if workload in WORKLOADS and "--describe" in rest:
            _describe(workload, rest)
        case [workload, *rest] if workload in WORKLOADS:
            seeds = [word for word in rest if word.startswith("--seed=")]
            knobs = parse(workload, [word for word in rest if word not in seeds])
            seed = {"SWEEP_SEED": seeds[-1].removeprefix("--seed=")} if seeds else {}
            _train(knobs, surroundings({**environ, **seed}), environ)
        case _:
            raise TrialError([_misused(arguments)])


def _describe(workload: str, arguments: Sequence[str]) -> None:
    rest = [word for word in arguments if word != "--describe"]
    form = "text"
    for at, word in enumerate(rest):
        if word.partition("=")[0] == "--format":
            joined = word.partition("=")[2]
            form = joined or "".join(rest[at + 1 : at + 2])
            del rest[at : at + (1 if joined else 2)]
            break
    if form not in {"text", "json"}:
        raise TrialError([Problem("--format", f"must be text or json, got {form!r}", BAD_SWEEP)])
    knobs = parse(workload, rest)
    from trainer import describe  # noqa: PLC0415 torch takes its time, as below

    content = describe.description(knobs)
    sys.stdout.write(json.dumps(content, indent=2) + "\n" if form == "json" else describe.text(content))


def _train(knobs: Knobs, given: Surroundings, environ: Mapping[str, str]) -> None:
    dataset = data.load(knobs.workload, given.data)
    # OpenMP reads it when torch is loaded. Threads that spin while they wait take the core from those they
    # wait for: beside busy neighbours, two that spin were sixteen times slower than two that sleep.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    # Here, because torch takes 1.5 s to load: a wrong knob or a damaged file is told before that.
    from trainer import group, result, trial  # noqa: PLC0415

    company = group.join(environ, given.checkpoints)

    def report(epochs: list["Epoch"]) -> None:
        if company.speaks:
            _say(result.line(epochs))

    if company.speaks:
        processes = f"{company.size} processes, " if company.size > 1 else ""
        _say(
            f"{dataset.name}: {dataset.train.count} images to train with, {dataset.test.count} to test with; "
            f"network {knobs.name}, seed {given.seed}, {processes}{given.threads} thread(s)"
        )
    try:
        document = trial.run(knobs, dataset, given, company, report)
    finally:
        company.leave()
    if company.speaks:
        _say(result.text(document).rstrip())
        if given.result:
            files.write(given.result, result.text(document).encode())


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    # Whoever follows a trial through a pipe sees each epoch when it ends.
    sys.stdout.flush()


def _usage(*workloads: str) -> str:
    lines = [USAGE]
    for name in sorted({name for workload in workloads for name in WORKLOADS[workload]}):
        of = ", ".join(workload for workload, able in WORKLOADS.items() if name in able)
        about = (NETWORKS[name].__doc__ or "").partition("\n")[0]
        lines.append(textwrap.fill(f"--network={name} ({of}): {about}", WIDE, subsequent_indent="  "))
    if len(workloads) == 1:
        first = WORKLOADS[workloads[0]][0]
        lines.append(f"\nknobs of {workloads[0]}, network {first}; --describe has those of any")
        for knob in knobs_of(workloads[0], first).values():
            about = f"{knob.unit}: {knob.meaning}; {knob.allowed}"
            indent = " " * 6
            lines.append(f"  --{knob.name}={shown(knob.default)}")
            lines.append(textwrap.fill(about, WIDE, initial_indent=indent, subsequent_indent=indent))
    return "\n".join(lines)


def _misused(arguments: Sequence[str]) -> Problem:
    expected = f"{', '.join(WORKLOADS)} or prepare"
    found = " ".join(arguments)[:80] or "nothing"
    nearest = suggestion(arguments[-1] if arguments else "", (*WORKLOADS, "prepare"))
    hint = f"did you mean {nearest}?" if nearest else "python -m trainer --help lists the hyperparameters"
    return Problem("python -m trainer", f"expected {expected}, got {found}", BAD_SWEEP, hint)


def _end(code: int) -> NoReturn:
    """End the process here, with all of it written, and not by Python's own end.

    That waits 0.3 CPU s for torch, and threads of torch that are still there abort it now and then: one
    finished training of two processes in thirty (https://github.com/pytorch/pytorch/issues/190489).
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    _end(main(sys.argv[1:], os.environ))
