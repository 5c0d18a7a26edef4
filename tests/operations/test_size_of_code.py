"""Each trial has a copy of the code: pods have room for it, and code that is too large is refused before they start."""

from pathlib import Path

import pytest

from sweepledger.errors import SpecError
from sweepledger.formats import yaml
from sweepledger.operations.repository import programs
from tests.launcher.folders import launch
from tests.repository import Sandbox, replace_in

MIB = 1 << 20


def batch_of(sandbox: Sandbox) -> Path:
    (folder,) = (sandbox.root / "overlays/active").glob("peak-*")
    return folder


def locked_disk(sandbox: Sandbox) -> int:
    lock = yaml.load((batch_of(sandbox) / "batch.json").read_bytes())
    return int(lock["program"]["code"]["disk"])


def size_limit(sandbox: Sandbox) -> str:
    job = yaml.load((batch_of(sandbox) / "job.yaml").read_bytes())
    volumes = {volume["name"]: volume for volume in job["spec"]["template"]["spec"]["volumes"]}
    return str(volumes["scratch"]["emptyDir"]["sizeLimit"])


def selected(sandbox: Sandbox, code: str) -> None:
    replace_in(sandbox.spec(), "{path: code}", code)


@pytest.mark.parametrize(("size", "disk", "limit"), [(1, 16, "2064Mi"), (17 * MIB, 32, "2080Mi")])
def test_the_scratch_has_room_for_the_code(sandbox: Sandbox, size: int, disk: int, limit: str) -> None:
    sandbox.write("code/weights.bin", "w" * size)
    sandbox.spec()
    sandbox.publish("Start")

    sandbox.generate()

    assert (locked_disk(sandbox), size_limit(sandbox)) == (disk * MIB, limit)
    assert [problem.code for problem in sandbox.check(base="HEAD").problems] == []


def test_many_small_files_take_a_block_each(sandbox: Sandbox) -> None:
    for number in range(4100):
        sandbox.write(f"code/data/{number}", "x")
    sandbox.spec()
    sandbox.publish("Start")

    sandbox.generate()

    assert locked_disk(sandbox) == 32 * MIB


@pytest.mark.parametrize(("name", "most"), [("LARGEST_CODE", 16 * MIB), ("MOST_CODE_FILES", 3)])
def test_too_large_code_is_refused(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, name: str, most: int
) -> None:
    sandbox.write("code/data/large.bin", "w" * (17 * MIB))
    selected(sandbox, "{path: code}")
    sandbox.publish("Start")
    monkeypatch.setattr(programs, name, most)

    (problem,) = [each for review in sandbox.plan().reviews for each in review.problems]
    with pytest.raises(SpecError) as refused:
        sandbox.generate()

    assert (problem.code, problem.path) == ("code-too-large", "run.code.path")
    assert "the largest: code/data/large.bin" in problem.message
    assert "run.code.exclude" in (problem.hint or "")
    assert [each.code for each in refused.value.problems] == ["code-too-large"]
    assert sandbox.active() == []
    selected(sandbox, "{path: [code], exclude: ['*.bin']}")
    sandbox.publish("Leave it out")
    sandbox.generate()
    assert locked_disk(sandbox) == 16 * MIB


def test_the_launcher_copies_all_that_is_locked() -> None:
    assert (launch.LARGEST_CODE, launch.MOST_CODE_FILES) == (
        programs.LARGEST_CODE,
        programs.MOST_CODE_FILES,
    )
