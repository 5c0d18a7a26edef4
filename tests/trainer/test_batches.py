import itertools

import pytest
import torch

from trainer.batches import Changes, Epochs, ImageTensors, to_tensors
from trainer.files import Dataset, Images
from trainer.hyperparameters import Eidf, Resnet9, Small

CPU = torch.device("cpu")
COLORS = Images(bytes(range(256)) * 60, bytes(range(5)), channels=3, side=32)
UNCHANGED = Resnet9(crop_padding=0, data_aug_cutout_size=0, flip=0.0, batch_size=2)


def some(count: int = 5, side: int = 32) -> ImageTensors:
    return to_tensors(
        Images(bytes(count * side**2), bytes(count), channels=1, side=side), "mnist", side=32, device=CPU
    )


def test_a_smaller_image_gets_a_black_frame(few: Dataset) -> None:
    framed, plain = (to_tensors(few.train, "mnist", side=side, device=CPU).pixels for side in (32, 28))

    assert framed.shape == (200, 1, 32, 32)
    assert framed.sum() == plain.sum()
    assert (framed[:, :, 2:30, 2:30] == plain).all()


def test_fewer_images_lie_evenly_among_all(few: Dataset) -> None:
    tensors = to_tensors(few.train, "mnist", side=28, device=CPU, limit=20)

    assert sorted(tensors.labels.tolist()) == sorted(list(range(10)) * 2)  # the file is sorted by class
    assert to_tensors(few.train, "mnist", side=28, device=CPU, limit=900).count == 200


def test_an_epoch_sees_every_image_once_and_the_next_in_another_order() -> None:
    first, second = itertools.islice(Epochs(some(), Small(batch_size=2).recipe, seed=1), 2)

    assert sorted(first.order.tolist()) == [0, 1, 2, 3, 4]
    assert first.order.tolist() != second.order.tolist()
    assert [len(first.batch(step)[1]) for step in range(3)] == [2, 2, 1]


@pytest.mark.parametrize(
    ("network", "steps"), [(Small(batch_size=2), 3), (Eidf(batch_size=2), 3), (UNCHANGED, 2)], ids=str
)
def test_only_the_resnet_drops_the_last_partial_batch(network: Small | Eidf | Resnet9, steps: int) -> None:
    assert Epochs(some(), network.recipe, seed=0).steps == steps


def padded_and_cut(image: torch.Tensor, top: int, left: int) -> torch.Tensor:
    """Crop as the example does: pad by reflection, then cut out."""
    padded = torch.nn.functional.pad(image[None].float(), (4, 4, 4, 4), mode="reflect")[0]
    return padded[:, 4 + top : 36 + top, 4 + left : 36 + left]


@pytest.mark.parametrize(("top", "left"), [(0, 0), (-4, 4), (-2, -3)])
@pytest.mark.parametrize("mirrored", [False, True])
def test_a_crop_is_that_of_an_image_padded_by_reflection(top: int, left: int, *, mirrored: bool) -> None:
    tensors = to_tensors(COLORS, "cifar10", side=32, device=CPU)
    offsets = torch.tensor([[top], [left]]).expand(2, 5)
    changes = Changes(offsets, torch.full((5,), mirrored), torch.zeros(2, 5, dtype=torch.long), 0)

    inputs = changes.apply(tensors, torch.tensor([3]))

    expected = padded_and_cut(tensors.pixels[3], top, left)
    expected = expected.flip(2) if mirrored else expected
    torch.testing.assert_close(inputs[0], tensors.normalized(expected[None].byte())[0], rtol=0, atol=0)


def test_a_hole_has_the_mean_color_and_lies_within_the_image() -> None:
    tensors = to_tensors(COLORS, "cifar10", side=32, device=CPU)
    holes = torch.tensor([[2] * 5, [27] * 5])
    changes = Changes(torch.zeros(2, 5, dtype=torch.long), torch.zeros(5, dtype=torch.bool), holes, 5)

    inputs = changes.apply(tensors, torch.tensor([1]))[0]

    expected = tensors.normalized(tensors.pixels[1:2])[0]
    expected[:, 2:7, 27:32] = 0.0
    torch.testing.assert_close(inputs, expected, rtol=0, atol=0)


def test_changes_are_drawn_once_an_epoch_within_their_limits() -> None:
    epochs = iter(Epochs(some(2000), Resnet9(data_aug_cutout_size=12).recipe, seed=0))
    first, second = (images.changes for images in itertools.islice(epochs, 2))

    assert first is not None
    assert second is not None
    assert (first.offsets.min().item(), first.offsets.max().item()) == (-4, 4)
    assert (first.holes.min().item(), first.holes.max().item()) == (0, 20)
    assert 0.45 < first.mirrored.float().mean().item() < 0.55
    assert (first.offsets != second.offsets).any()
