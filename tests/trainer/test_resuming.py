import json
import os
import random
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.trainer.trainings import a_training, numbers, run
from trainer import __main__ as command
from trainer.checkpoint import FILE, StoppedError
from trainer.contract import BAD_HYPERPARAMETERS, STOPPED, STORAGE_FAILED, Environment, TrialError
from trainer.files import Dataset
from trainer.hyperparameters import Eidf, Network, Resnet9, Small
from trainer.train import Training

SMALL = Small(learning_rate=0.05, batch_size=30, epochs=3, width=2)
EIDF = Eidf(batch_size=50, epochs=2, width=2, hidden=8)
RESNET = Resnet9(batch_size=40, epochs=2, width=2)
NETWORKS = pytest.mark.parametrize("network", [SMALL, EIDF, RESNET], ids=["small", "eidf", "resnet9"])


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    """Restore the handler of SIGTERM, which a training replaces."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


class Killed(BaseException):
    """Simulates kill -9: nothing in the trainer may handle it."""


def kill_after(training: Training, steps: int) -> None:
    due, left = training.saver.is_due, iter(range(steps))

    def dies() -> bool:
        if next(left, None) is None:
            raise Killed
        return due()

    training.saver.is_due = dies  # type: ignore[method-assign]


def in_pieces(network: Network, dataset: Dataset, environment: Environment, pieces: list[int]) -> Training:
    """Train, killed after each of the pieces, saving after every step; then train to the end."""
    for steps in pieces:
        training = a_training(network, dataset, environment=environment, checkpoint_every=0)
        kill_after(training, steps)
        with pytest.raises(Killed):
            training.run(lambda _: None)
    training = a_training(network, dataset, environment=environment)
    training.run(lambda _: None)
    return training


@pytest.mark.sampled(1)
@NETWORKS
def test_a_training_killed_at_random_ends_alike(few: Dataset, tmp_path: Path, network: Network) -> None:
    uninterrupted = run(network, few, environment=Environment(seed=1))
    chance = random.Random(7)  # noqa: S311

    environment = Environment(seed=1, checkpoints=tmp_path)
    training = in_pieces(network, few, environment, [chance.randint(1, 4) for _ in range(2)])

    assert numbers(training.progress.epochs) == numbers(uninterrupted)
    assert training.history.resumed == 2
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


@pytest.mark.sampled(2)
@NETWORKS
@pytest.mark.parametrize("stopped_at", ["a step", "a test"])
def test_a_stopped_training_resumes(few: Dataset, tmp_path: Path, network: Network, stopped_at: str) -> None:
    uninterrupted = run(network, few)
    environment = Environment(checkpoints=tmp_path)
    stopped = a_training(network, few, environment=environment, checkpoint_every=1e9)
    if stopped_at == "a step":
        step = stopped._step  # noqa: SLF001

        def stop_at_two(images: Any, number: int) -> Any:
            if number == 2:
                os.kill(os.getpid(), signal.SIGTERM)
            return step(images, number)

        stopped._step = stop_at_two  # type: ignore[assignment, method-assign]  # noqa: SLF001
    else:
        stopped.model.register_forward_pre_hook(
            lambda module, _: None if module.training else os.kill(os.getpid(), signal.SIGTERM)
        )

    with pytest.raises(StoppedError) as caught:
        stopped.run(lambda _: None)
    epochs = run(network, few, environment=environment)

    assert caught.value.exit_code == STOPPED
    assert "saved after 0 epochs" in str(caught.value)
    assert numbers(epochs) == numbers(uninterrupted)


"""The trainer, which sends itself a signal: one from another process might come when it has ended."""


def test_a_stopped_trial_ends_with_its_own_exit_code_and_resumes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    arguments = ["mnist", "--train_images=100", "--test_images=100", "--epochs=2", "--width=1"]
    environ = {"SWEEP_CHECKPOINTS": str(tmp_path)}
    printed = command.print_line

    def stop_after_an_epoch(line: str) -> None:
        printed(line)
        if line.startswith('{"step": 1,'):
            os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(command, "print_line", stop_after_an_epoch)
        code = command.main(arguments, environ)

    assert code == STOPPED
    assert capsys.readouterr().err.startswith("trainer: SIGTERM: saved after 1 epochs and 1 steps; ")
    assert command.main(arguments, environ) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["running"]["resumed"] == 1


@pytest.mark.parametrize(
    ("network", "seed"), [(replace(SMALL, momentum=0.8), 0), (SMALL, 1)], ids=["values", "seed"]
)
def test_another_checkpoint_is_ignored(few: Dataset, tmp_path: Path, network: Network, seed: int) -> None:
    run(SMALL, few, environment=Environment(checkpoints=tmp_path))

    epochs = run(network, few, environment=Environment(seed=seed, checkpoints=tmp_path))

    assert numbers(epochs) == numbers(run(network, few, environment=Environment(seed=seed)))


def test_saving_waits_for_its_interval(few: Dataset, tmp_path: Path) -> None:
    training = a_training(SMALL, few, environment=Environment(checkpoints=tmp_path), checkpoint_every=1e9)
    kill_after(training, 5)

    with pytest.raises(Killed):
        training.run(lambda _: None)

    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04" + bytes(100)], ids=["empty", "zip"])
def test_a_damaged_checkpoint_is_one_sentence(few: Dataset, tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)

    with pytest.raises(TrialError) as caught:
        a_training(SMALL, few, environment=Environment(checkpoints=tmp_path))

    assert str(caught.value).startswith(f"{tmp_path / FILE}: must be a checkpoint of this trainer, but ")
    assert caught.value.exit_code == STORAGE_FAILED


def test_a_checkpoint_cannot_run_code(few: Dataset, tmp_path: Path) -> None:
    class Harm:
        def __reduce__(self) -> tuple[Any, ...]:
            return (os.mkdir, (str(tmp_path / "harm"),))

    torch.save({"about": Harm()}, tmp_path / FILE)

    with pytest.raises(TrialError, match="must be a checkpoint of this trainer"):
        a_training(SMALL, few, environment=Environment(checkpoints=tmp_path))
    assert not (tmp_path / "harm").exists()


@NETWORKS
def test_a_promoted_trial_continues_its_parent(few: Dataset, tmp_path: Path, network: Network) -> None:
    parent = run(network, few, environment=Environment(checkpoints=tmp_path))
    longer = replace(network, epochs=network.epochs + 2)

    child = a_training(longer, few, environment=Environment(parent=tmp_path))
    reported: list[int] = []
    child.run(lambda epochs: reported.append(epochs[-1].number))

    assert reported == [network.epochs + 1, network.epochs + 2]
    assert child.progress.epochs[: network.epochs] == parent


def test_a_trial_without_more_epochs_starts_from_its_parent(few: Dataset, tmp_path: Path) -> None:
    environment = Environment(checkpoints=tmp_path)
    parent = run(SMALL, few, environment=environment)

    child = a_training(replace(SMALL, learning_rate=0.02), few, environment=Environment(parent=tmp_path))
    order = next(iter(child.epochs)).order
    child.run(lambda _: None)

    assert [epoch.number for epoch in child.progress.epochs] == [1, 2, 3]
    assert child.progress.epochs[0].loss < parent[0].loss * 0.75
    assert child.history.leg == 1
    assert not torch.equal(order, next(iter(a_training(SMALL, few).epochs)).order)


def test_a_parent_of_another_network_is_a_bad_value(few: Dataset, tmp_path: Path) -> None:
    run(SMALL, few, environment=Environment(checkpoints=tmp_path))

    with pytest.raises(TrialError, match="holds the weights of a different network") as caught:
        a_training(replace(SMALL, width=3), few, environment=Environment(parent=tmp_path))

    assert caught.value.exit_code == BAD_HYPERPARAMETERS


def test_a_parent_without_a_checkpoint_is_an_error(few: Dataset, tmp_path: Path) -> None:
    with pytest.raises(TrialError, match="must hold the parent's checkpoint, but has none") as caught:
        a_training(SMALL, few, environment=Environment(parent=tmp_path))

    assert caught.value.exit_code == STORAGE_FAILED


def test_a_retry_of_a_child_resumes_from_its_own_checkpoint(few: Dataset, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("parent", "child")]
    run(SMALL, few, environment=Environment(checkpoints=folders[0]))
    uninterrupted = run(SMALL, few, environment=Environment(parent=folders[0]))

    training = in_pieces(SMALL, few, Environment(checkpoints=folders[1], parent=folders[0]), [4, 3])

    assert numbers(training.progress.epochs) == numbers(uninterrupted)


def test_a_finished_training_is_not_trained_again(few: Dataset, tmp_path: Path) -> None:
    environment = Environment(checkpoints=tmp_path)
    first = run(SMALL, few, environment=environment)
    again = a_training(SMALL, few, environment=environment)
    again._step = None  # type: ignore[method-assign, assignment]  # noqa: SLF001

    again.run(lambda _: None)

    assert again.progress.epochs == first
