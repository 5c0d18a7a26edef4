"""Networks that are trained as one: each has the numbers that it has alone, but for rounding."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.trainer.trainings import a_training, numbers
from trainer import stack
from trainer.__main__ import main
from trainer.checkpoint import EpochMetrics
from trainer.contract import BAD_SWEEP, Environment, TrialError
from trainer.files import Dataset
from trainer.hyperparameters import Configuration, Eidf, Network, Resnet9, RunOptions, Small

SMALL = Small(learning_rate=0.05, batch_size=30, epochs=2, width=2)
EIDF = Eidf(learning_rate=0.5, batch_size=50, epochs=2, width=2, hidden=8)
RESNET = Resnet9(max_learning_rate=0.1, batch_size=50, epochs=1, width=2)

LOSS_BOUND = 1e-3
"""The largest relative difference between a loss of a stacked network and of one alone, after a few dozen steps."""


def stacked(networks: Sequence[Network], dataset: Dataset, seed: int = 0) -> list[list[EpochMetrics]]:
    options = RunOptions(precision="fp32")
    configurations = [Configuration("mnist", network, options) for network in networks]
    trained = stack.train(
        configurations, dataset, environment=Environment(seed=seed), report=lambda _place, _epochs: None
    )
    return [each.progress.epochs for each in trained]


def alone(network: Network, dataset: Dataset, seed: int = 0) -> list[EpochMetrics]:
    training = a_training(network, dataset, environment=Environment(seed=seed))
    training.run(lambda _: None)
    return training.progress.epochs


@pytest.mark.parametrize(
    "networks",
    [
        [
            SMALL,
            replace(SMALL, learning_rate=0.02, momentum=0.5),
            replace(SMALL, weight_decay=0.01, warmup=0.5),
        ],
        [EIDF, replace(EIDF, learning_rate=0.1, rho=0.8, weight_decay=0.01), replace(EIDF, gamma=0.2)],
        [RESNET, replace(RESNET, max_learning_rate=0.05, weight_decay=0.001)],
    ],
    ids=["small", "eidf", "resnet9"],
)
def test_each_network_of_a_stack_has_the_numbers_that_it_has_alone(
    few: Dataset, networks: list[Network]
) -> None:
    together = stacked(networks, few, seed=3)

    for network, epochs in zip(networks, together, strict=True):
        for mine, its in zip(epochs, alone(network, few, seed=3), strict=True):
            assert mine.images == its.images
            assert mine.loss == pytest.approx(its.loss, rel=LOSS_BOUND)
            assert mine.test_loss == pytest.approx(its.test_loss, rel=LOSS_BOUND)
            assert mine.test_accuracy == pytest.approx(its.test_accuracy, abs=0.02), "one image of 50"


def test_the_same_stack_gives_the_same_bits(few: Dataset) -> None:
    networks = [SMALL, replace(SMALL, learning_rate=0.01)]

    first, again = stacked(networks, few), stacked(networks, few)

    assert [numbers(each) for each in first] == [numbers(each) for each in again]
    assert numbers(first[0]) != numbers(first[1])


def test_a_network_that_diverges_ends_alone(few: Dataset) -> None:
    diverges = replace(SMALL, learning_rate=1e30)

    mine, other, beside = stacked([SMALL, diverges, SMALL], few)

    assert len(other) == 1
    assert other[0].diverged
    assert math.isnan(other[0].test_accuracy or 0)
    assert numbers(mine) == numbers(beside)
    assert mine[-1].loss == pytest.approx(alone(SMALL, few)[-1].loss, rel=LOSS_BOUND)


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (replace(SMALL, width=4), "--width"),
        (replace(SMALL, batch_size=20), "--batch_size"),
        (replace(SMALL, label_smoothing=0.1), "--label_smoothing"),
        (EIDF, "--network"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_stack_refuses_networks_that_differ_in_anything_else(
    few: Dataset, other: Network, named: str
) -> None:
    with pytest.raises(TrialError) as refused:
        stacked([SMALL, other], few)

    assert [problem.location for problem in refused.value.problems] == [named]
    assert refused.value.exit_code == BAD_SWEEP


def a_stack(folder: Path, *arguments: str) -> tuple[list[str], dict[str, str], list[Path]]:
    """Write the file of a stack whose trials differ in these arguments; return command line, variables, results."""
    common = ["mnist", "--train_images=80", "--test_images=20", "--width=2", "--precision=fp32", "--epochs=1"]
    results = [folder / f"{number}.json" for number in range(len(arguments))]
    trials = [
        {
            "trial": f"t{number}",
            "command": ["python", "-m", "trainer", *common, argument],
            "result": str(result),
        }
        for number, (argument, result) in enumerate(zip(arguments, results, strict=True))
    ]
    (folder / "stack.json").write_text(json.dumps({"trials": trials}))
    return [*common, arguments[0]], {"SWEEP_STACK": str(folder / "stack.json")}, results


def test_the_command_writes_a_result_for_each_trial_and_says_whose_each_line_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments, environ, results = a_stack(tmp_path, "--learning_rate=0.1", "--learning_rate=0.2")

    assert main(arguments, environ) == 0

    documents = [json.loads(path.read_text()) for path in results]
    assert [each["hyperparameters"]["learning_rate"] for each in documents] == [0.1, 0.2]
    assert [each["running"]["stacked"] for each in documents] == [2, 2]
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    assert [(line["trial"], line["step"]) for line in lines] == [("t0", 1), ("t1", 1)]
    assert [line["test_accuracy"] for line in lines] == [
        each["metrics"]["test_accuracy"] for each in documents
    ]


def test_a_trial_with_bad_values_is_reported_as_not_a_number_and_the_others_are_trained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments, environ, results = a_stack(tmp_path, "--learning_rate=-1", "--learning_rate=0.2")

    assert main(arguments, environ) == 0

    bad, good = (json.loads(path.read_text())["metrics"] for path in results)
    assert math.isnan(bad["test_accuracy"])
    assert good["test_accuracy"] >= 0
    assert "t0: --learning_rate: must be greater than 0" in capsys.readouterr().err


def test_values_that_no_trial_of_the_stack_can_have_are_bad_values_of_each(tmp_path: Path) -> None:
    arguments, environ, results = a_stack(tmp_path, "--batch_size=100", "--batch_size=100")

    assert main(arguments, environ) == 0

    assert all(math.isnan(json.loads(path.read_text())["metrics"]["test_accuracy"]) for path in results)


@pytest.mark.parametrize("content", ["", "{}", '{"trials": []}', '{"trials": [{"command": 1}]}'])
def test_a_file_that_lists_no_trials_is_a_fault_of_the_sweep(tmp_path: Path, content: str) -> None:
    path = tmp_path / "stack.json"
    path.write_text(content)

    assert main(["mnist"], {"SWEEP_STACK": str(path)}) == BAD_SWEEP
