"""How trials run: numbers, images, code, data at their bounds."""

from typing import Any

import pytest

from generator.spec import parse
from generator.structs.settings import Settings
from generator.structs.sweep import Sweep
from tests.written_specs import DIGEST, a_spec, bad, good, hints, messages, parsed, written


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("parallelism", 1),
        ("parallelism", 100_000),
        ("retries", 0),
        ("retries", 10),
        ("seed_base", 0),
        ("seed_base", 2**31 - 1),
    ],
)
def test_numbers_of_a_run_are_taken_at_their_bounds(key: str, value: int) -> None:
    assert getattr(good(run={key: value}).run, key) == value


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("parallelism", 0, "must be at least 1, got 0"),
        ("parallelism", 100_001, "must be at most 100000, got 100001"),
        ("retries", -1, "must be at least 0, got -1"),
        ("retries", 11, "must be at most 10, got 11"),
        ("seed_base", -1, "must be at least 0, got -1"),
        ("seed_base", 2**31, "must be at most 2147483647, got 2147483648"),
        ("retries", True, "must be an integer, got true"),
        ("retries", 0.5, "must be an integer, got 0.5"),
        ("retries", None, "must be an integer, got null"),
    ],
)
def test_numbers_of_a_run_are_refused_beyond_their_bounds(key: str, value: Any, message: str) -> None:
    assert messages(run={key: value}) == [message]


@pytest.mark.parametrize(("gpu", "accepted"), [(0, True), (64, True), (-1, False), (65, False), (0.5, False)])
def test_gpus_are_whole_and_bounded(gpu: Any, accepted: bool) -> None:  # noqa: FBT001
    assert isinstance(parsed(a_spec(run={"resources": {"gpu": gpu}})), Sweep) is accepted


@pytest.mark.parametrize("cpu", [True, None, [1]])
def test_cores_are_a_number_or_text(cpu: Any) -> None:
    assert bad(run={"resources": {"cpu": cpu}}) == [("run.resources.cpu", "wrong-type")]


IMAGES = [
    "local",
    f"train@{DIGEST}",
    f"train:1.4@{DIGEST}",
    f"host.example/train@{DIGEST}",
    f"host.example:5000/a/b_c/d-e.f/g__h:v1_2.3-rc@{DIGEST}",
    f"localhost/x@{DIGEST}",
]


@pytest.mark.parametrize("image", IMAGES)
def test_images_have_a_digest_or_are_local(image: str) -> None:
    assert good(run={"image": image}).run.image == image


@pytest.mark.parametrize(
    "image",
    [
        "",
        "train",
        "train:latest",
        "Local",
        f"Train@{DIGEST}",
        f"tr ain@{DIGEST}",
        f"-train@{DIGEST}",
        f"train@{DIGEST}0",
        f"train@{DIGEST[:-1]}",
        f"train@{DIGEST.upper()}",
        f"train:@{DIGEST}",
        f"a//b@{DIGEST}",
        f"/train@{DIGEST}",
        f"user:pass@host/train@{DIGEST}",
        f"{'a' * 500}@{DIGEST}",
        f"train@{DIGEST}\n",
    ],
)
def test_other_images_are_refused(image: str) -> None:
    assert bad(run={"image": image}) == [("run.image", "image-reference")]


def test_credentials_in_an_image_are_not_repeated() -> None:
    (found,) = messages(run={"image": "user:hunter2@host/train"})

    assert "hunter2" not in found


@pytest.mark.parametrize("image", ["train:1.4", f"x train@{DIGEST}"])
def test_only_an_image_without_digest_is_told_to_have_one(image: str) -> None:
    hint = None if DIGEST in image else "a tag can be moved: add the image's digest"

    assert hints(run={"image": image}) == [hint]


def test_an_image_is_taken_up_to_the_longest_length() -> None:
    rest = f"@{DIGEST}"

    assert good(run={"image": "a" * (512 - len(rest)) + rest})
    assert bad(run={"image": "a" * (513 - len(rest)) + rest})


@pytest.mark.parametrize(
    "path", ["trainer", "trainer/", "src/a-b_c.d", ".hidden", "a/b/c", "overlays2", "a/results"]
)
def test_code_is_a_folder_inside_the_repository(path: str) -> None:
    assert good(run={"code": {"path": path}}).run.code_path == path.removesuffix("/")


@pytest.mark.parametrize(
    "path", ["", "/", "/abs", "..", "a/../b", ".", "./a", "a//b", "a b", "-x", "a/-x", "a//", "ä"]
)
def test_other_code_folders_are_refused(path: str) -> None:
    assert messages(run={"code": {"path": path}}) == [
        f"must be a folder inside the repository, relative to it, got {path!r}"
    ]


@pytest.mark.parametrize("path", ["overlays", "overlays/active", "results/", ".git/hooks"])
def test_code_is_not_where_batches_and_results_are_written(path: str) -> None:
    assert messages(run={"code": {"path": path}}) == [
        f"must not be in {path.partition('/')[0]}, which changes with every batch, got {path!r}"
    ]


@pytest.mark.parametrize(
    "name", ["python", "python3.11", "/opt/conda/bin/python", "./venv/bin/python", "c++", "a" * 255]
)
def test_an_interpreter_is_a_name_or_a_path(name: str) -> None:
    assert good(run={"interpreter": name}).run.interpreter == name


@pytest.mark.parametrize("name", ["", "python -u", "-x", "a;b", "a" * 256, "+a"])
def test_other_interpreters_are_refused(name: str) -> None:
    assert bad(run={"interpreter": name}) == [("run.interpreter", "interpreter")]


def test_a_dataset_is_one_of_the_settings() -> None:
    assert good(run={"data": "mnist"}).run.data == "mnist"
    assert hints(run={"data": "mnits"}) == ["did you mean 'mnist'?"]
    assert hints(run={"data": "x"}) == ["known: 'cifar', 'mnist'"]


def test_without_datasets_the_settings_are_named() -> None:
    found = parse(written(a_spec(run={"data": "x"})), "sweeps/lr.yaml", Settings())

    assert isinstance(found, tuple)
    assert found[0].hint == "the settings name none: add it to datasets in sweepledger.yaml"
