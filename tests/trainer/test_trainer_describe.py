import json

import pytest

from trainer.__main__ import main
from trainer.contract import BAD_SWEEP
from trainer.hyperparameters import WORKLOADS, knobs_of

Capture = pytest.CaptureFixture[str]
ALL = [(workload, network) for workload, able in WORKLOADS.items() for network in able]


def described(capsys: Capture, *arguments: str) -> str:
    assert main([*arguments, "--describe"], {}) == 0
    return capsys.readouterr().out


def test_a_description_tells_layers_shapes_and_sizes(capsys: Capture) -> None:
    lines = described(capsys, "cifar10").splitlines()

    assert lines[0] == "cifar10, network resnet9: 6,573,120 parameters"
    assert "residual3.second.conv   Conv2d       512 x 4 x 4     2,359,296" in lines
    assert "max_learning_rate     0.4        per step     peak of the schedule, for a mean" in lines


def test_a_description_is_of_the_values_that_are_given(capsys: Capture) -> None:
    said = described(capsys, "mnist", "--network=resnet9", "--width=1", "--batch_norm=off")

    assert "BatchNorm2d" not in said
    assert "1 x 32 x 32" in said


@pytest.mark.parametrize(("workload", "network"), ALL)
def test_every_training_is_described_for_people_and_for_programs(
    capsys: Capture, workload: str, network: str
) -> None:
    said = described(capsys, workload, f"--network={network}")
    data = json.loads(described(capsys, workload, f"--network={network}", "--format=json"))

    knobs = knobs_of(workload, network)
    assert all(len(line) <= 80 for line in said.splitlines())
    assert all(any(line.startswith(f"{name} ") for line in said.splitlines()) for name in knobs)
    assert [knob["name"] for knob in data["knobs"]] == list(knobs)
    assert all(knob["unit"] and knob["meaning"] and knob["rule"] for knob in data["knobs"])
    assert data["parameters"] == sum(layer["parameters"] for layer in data["layers"])
    assert data["layers"][-1]["output"] == [10]


def test_the_form_may_stand_apart(capsys: Capture) -> None:
    data = json.loads(described(capsys, "mnist", "--width=2", "--format", "json"))

    assert {knob["name"]: knob["value"] for knob in data["knobs"]}["width"] == 2


def test_another_form_is_refused(capsys: Capture) -> None:
    assert main(["mnist", "--describe", "--format=xml"], {}) == BAD_SWEEP
    assert capsys.readouterr().err == "trainer: --format: must be text or json, got 'xml'\n"
