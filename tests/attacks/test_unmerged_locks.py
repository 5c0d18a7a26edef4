"""The lock of a new batch claims what its spec leaves open: an image, data, an environment."""

from collections.abc import Callable
from dataclasses import dataclass
from unittest import mock

import pytest
from msgspec.structs import replace

from sweepledger.operations.repository import programs
from sweepledger.structs.program import ConfigFile, Data, EnvironmentLock, Program
from tests.repository import Sandbox, append_to

SETTINGS = """version: 1
defaults: {{image: train}}
images: {{train: registry.example.org/train@sha256:{image}}}
datasets: {{mnist: {{claim: mnist, digest: 'sha256:{data}'}}}}
"""
LOCK_FILE = "code/requirements.txt"
REQUIREMENTS = f"numpy==2.0.0 --hash=sha256:{'a' * 64}\n"
OTHER = f"sha256:{'e' * 64}"


def with_settings(sandbox: Sandbox, *, image: str = "1", data: str = "2") -> None:
    sandbox.write("sweepledger.yaml", SETTINGS.format(image=image * 64, data=data * 64))


def asked(sandbox: Sandbox, xs: str, run: str) -> None:
    append_to(sandbox.spec(xs=xs), f"  {run}\n")


def problems(sandbox: Sandbox) -> list[tuple[str, str]]:
    return [(one.code, one.path) for one in sandbox.check(base="origin/main").problems]


@dataclass(frozen=True)
class Forgery:
    """A part of a program that only the lock of a batch has, and the claim about it."""

    part: str
    run: str
    forge: Callable[[Program], Program]


def image(reference: str) -> Forgery:
    return Forgery("image", "retries: 0", lambda program: replace(program, image=reference))


FORGERIES = {
    "an image of another registry": image(f"evil.example/train@{OTHER}"),
    "another image of the same repository": image(f"registry.example.org/train@{OTHER}"),
    "no image": image("local"),
    "less disk than the code takes": Forgery(
        "code.disk", "retries: 0", lambda program: replace(program, code=replace(program.code, disk=1 << 12))
    ),
    "no disk for the code": Forgery(
        "code.disk", "retries: 0", lambda program: replace(program, code=replace(program.code, disk=0))
    ),
    "other data": Forgery("data", "data: mnist", lambda program: replace(program, data=Data("mnist", OTHER))),
    "another environment": Forgery(
        "environment",
        f"environment_lock: {LOCK_FILE}",
        lambda program: replace(program, environment=EnvironmentLock(LOCK_FILE, OTHER)),
    ),
    "another configuration file": Forgery(
        "config",
        "retries: 0",
        lambda program: replace(program, config=ConfigFile(LOCK_FILE, text="{}", add=True)),
    ),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("first", [True, False], ids=["a first batch", "a further one"])
@pytest.mark.parametrize("forgery", FORGERIES.values(), ids=FORGERIES)
def test_a_new_batch_runs_what_its_spec_gives(sandbox: Sandbox, forgery: Forgery, *, first: bool) -> None:
    with_settings(sandbox)
    sandbox.commit("Settings", {LOCK_FILE: REQUIREMENTS})
    asked(sandbox, "1, 2", forgery.run)
    if not first:
        sandbox.generate()
    sandbox.publish("Start")
    asked(sandbox, "1, 2, 3", forgery.run)
    real = programs.current_program

    with (
        mock.patch.object(programs, "current_program", lambda *given: forgery.forge(real(*given))),
        mock.patch.object(programs, "_reusable_program", return_value=None),
    ):
        sandbox.generate()
    sandbox.commit("Ask for a sweep")

    # The policy knows an image, too, and with another configuration file it is another trial.
    others = {"image-not-listed", *(["drift"] if forgery.part == "config" else [])}
    shown = [problem for problem in problems(sandbox) if problem[0] not in others]
    assert shown == [("program-not-shown", f"program.{forgery.part}")]
    sandbox.generate("peak", update=True)
    assert problems(sandbox) == []


def test_an_environment_whose_file_no_commit_has_is_refused(sandbox: Sandbox) -> None:
    with_settings(sandbox)
    sandbox.publish("Start")
    asked(sandbox, "1, 2", f"environment_lock: {LOCK_FILE}")
    claimed = EnvironmentLock(LOCK_FILE, OTHER)
    with mock.patch.object(programs, "_environment_lock", return_value=claimed):
        sandbox.generate()
    sandbox.commit("Ask for a sweep")

    assert problems(sandbox) == [("program-not-shown", "program")]


def test_further_trials_run_the_image_and_data_of_the_merged_batch(sandbox: Sandbox) -> None:
    with_settings(sandbox)
    asked(sandbox, "1, 2", "data: mnist")
    sandbox.generate()
    with_settings(sandbox, image="3", data="4")
    sandbox.publish("Ask, and change the defaults")

    asked(sandbox, "1, 2, 3", "data: mnist")
    sandbox.commit_batches("Ask for more")

    assert problems(sandbox) == []
