"""Command line: `python -m trainer mnist --name=value …` trains, `python -m trainer prepare mnist` gets data.

Values come as arguments, paths and seed from the environment; see `contract`. Exit codes: 0 done,
42 these values cannot be trained, 43 every trial of the sweep would fail like this one, 71 and 74 the
machine refused.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from trainer import data, files, hyperparameters, prepare
from trainer.contract import BAD_SWEEP, Problem, Surroundings, TrialError, surroundings

if TYPE_CHECKING:
    from trainer.train import Epoch

DATASET = "mnist"
ENVIRONMENT = f"""       python -m trainer {prepare.USAGE}

  SWEEP_DATA       folder of the data; without it, the digits of an installed package
  SWEEP_RESULT     file for the result; without it, standard output
  SWEEP_SEED       0 if not set
  OMP_NUM_THREADS  1 if not set"""


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
        case ["-h" | "--help", *_] | [_, "-h" | "--help", *_]:
            _say(_usage())
        case ["prepare", *rest]:
            _say(f"prepare: {prepare.command(rest, surroundings(environ).data)}")
        case [dataset, *rest] if dataset == DATASET:
            _train(hyperparameters.parse(rest), surroundings(environ))
        case _:
            raise TrialError([_misused(arguments)])


def _train(knobs: hyperparameters.Hyperparameters, given: Surroundings) -> None:
    dataset = data.load(DATASET, given.data)
    # Here, because torch takes 1.5 s to load: a wrong knob or a damaged file is told before that.
    from trainer import result, trial  # noqa: PLC0415

    _say(
        f"{dataset.name}: {dataset.train.count} images to train with, {dataset.test.count} to test with; "
        f"seed {given.seed}, {given.threads} thread(s)"
    )

    def report(epoch: "Epoch") -> None:
        _say(
            f"epoch {epoch.number}/{knobs.epochs}: loss {epoch.loss:.4f}, accuracy {epoch.accuracy:.4f}, "
            f"{epoch.images / epoch.seconds:.0f} images/s"
        )

    document = trial.run(knobs, dataset, given, report)
    metrics = document["metrics"]
    _say(f"test: loss {metrics['test_loss']:.4f}, accuracy {metrics['test_accuracy']:.4f}")
    if given.result is None:
        sys.stdout.write(result.text(document))
    else:
        files.write(given.result, result.text(document).encode())


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    # Whoever follows a trial through a pipe sees each epoch when it ends.
    sys.stdout.flush()


def _usage() -> str:
    knobs = (
        f"  --{name}={knob.default}\n      {knob.metadata['meaning']}; {knob.metadata['rule'].words}"
        for name, knob in hyperparameters.KNOBS.items()
    )
    return "\n".join([f"usage: python -m trainer {DATASET} [--name=value …]", ENVIRONMENT, "", *knobs])


def _misused(arguments: Sequence[str]) -> Problem:
    expected = f"{DATASET} or prepare"
    found = " ".join(arguments)[:80] or "nothing"
    nearest = hyperparameters.suggestion(arguments[-1] if arguments else "", (DATASET, "prepare"))
    hint = f"did you mean {nearest}?" if nearest else "python -m trainer --help lists the hyperparameters"
    return Problem("python -m trainer", f"expected {expected}, got {found}", BAD_SWEEP, hint)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
