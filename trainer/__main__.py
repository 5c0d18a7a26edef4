"""Command line: `python -m trainer WORKLOAD --name=value …` trains; with `--describe` it only describes.

Values come from arguments, paths and seed from the environment (see `contract`). Exit codes: 0 success,
42 these values cannot be trained, 43 every trial of the sweep would fail in the same way, 71 and 74 the
machine failed, 143 stopped by SIGTERM.
"""

import json
import os
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

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
    Value,
    format_value,
    hyperparameters_of,
    nearest,
    parse,
)

if TYPE_CHECKING:
    from trainer.checkpoint import EpochMetrics

WIDTH = 80
"""Maximum columns of a line of text."""
CHANNELS = {"cifar10": 3}
"""Channels of a workload's images, if not one."""
USAGE = f"""usage: python -m trainer WORKLOAD [--name=value …]
       python -m trainer WORKLOAD [--name=value …] --describe [--format json]
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
            print_line(_usage(workload))
        case ["prepare", *rest]:
            print_line(f"prepare: {data.prepare_command(rest, read_environment(environ).data)}")
        case [workload, *rest] if workload in WORKLOADS and "--describe" in rest:
            _describe(workload, rest)
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


# Description


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
    content = _description(parse(workload, rest))
    sys.stdout.write(json.dumps(content, indent=2) + "\n" if form == "json" else _description_text(content))


def _description(configuration: Configuration) -> dict[str, Any]:
    """Return the network's layers and every hyperparameter with its value; trains nothing."""
    # torch takes time, as above
    import torch  # noqa: PLC0415

    from trainer import model  # noqa: PLC0415

    workload, network, options = configuration.workload, configuration.network, configuration.options
    channels, side = CHANNELS.get(workload, 1), network.recipe.image_size
    layers = model.layers(model.build(network, channels), torch.zeros(1, channels, side, side))
    values = {
        "network": network.name,
        **{name: getattr(network, name) for name in network.__slots__},
        **{name: getattr(options, name) for name in options.__slots__},
    }
    return {
        "workload": workload,
        "network": network.name,
        "about": " ".join((type(network).__doc__ or "").partition("\n\n")[0].split()),
        "input": [channels, side, side],
        "parameters": sum(layer.parameters for layer in layers),
        "layers": [{name: getattr(layer, name) for name in layer.__slots__} for layer in layers],
        "knobs": [
            {
                "name": hyperparameter.name,
                "value": values[hyperparameter.name],
                "default": hyperparameter.default,
                "unit": hyperparameter.unit,
                "meaning": hyperparameter.meaning,
                "rule": hyperparameter.allowed,
            }
            for hyperparameter in hyperparameters_of(workload, network.name).values()
        ],
    }


def _description_text(content: dict[str, Any]) -> str:
    lines = [
        f"{content['workload']}, network {content['network']}: {content['parameters']:,} parameters",
        *textwrap.wrap(content["about"], WIDTH),
        "",
        f"{'layer':<24}{'kind':<13}{'output':<15}{'parameters':>10}",
        f"{'(images)':<37}{' x '.join(map(str, content['input'])):<15}",
    ]
    for layer in content["layers"]:
        shape = " x ".join(map(str, layer["output"]))
        lines.append(f"{layer['name']:<24}{layer['kind']:<13}{shape:<15}{layer['parameters']:>10,}")
    lines += ["", f"{'hyperparameter':<22}{'default':<11}{'unit':<13}meaning"]
    for hyperparameter in content["knobs"]:
        default = _short(hyperparameter["default"])
        head = f"{hyperparameter['name']:<22}{default:<11}{hyperparameter['unit']:<13}"
        first, *others = textwrap.wrap(hyperparameter["meaning"], WIDTH - len(head))
        lines += [head + first, *(" " * len(head) + other for other in others)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _short(value: Value) -> str:
    return f"{value:.6g}" if isinstance(value, float) else format_value(value)


# Help


def _usage(*workloads: str) -> str:
    lines = [USAGE]
    for name in sorted({name for workload in workloads for name in WORKLOADS[workload]}):
        accepting = ", ".join(workload for workload, networks in WORKLOADS.items() if name in networks)
        about = (NETWORKS[name].__doc__ or "").partition("\n")[0]
        lines.append(textwrap.fill(f"--network={name} ({accepting}): {about}", WIDTH, subsequent_indent="  "))
    if len(workloads) == 1:
        first = WORKLOADS[workloads[0]][0]
        lines.append(f"\nhyperparameters of {workloads[0]}, network {first}; for others add --describe")
        for hyperparameter in hyperparameters_of(workloads[0], first).values():
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
