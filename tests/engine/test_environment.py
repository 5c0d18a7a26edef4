import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from sweepledger.engine.local import environment
from sweepledger.engine.local.environment import PathTranslation
from sweepledger.engine.local.local_batch import Parent
from sweepledger.structs.run_config import Pack
from tests.engine.batches import indexed


def test_only_container_paths_become_folders() -> None:
    translate = PathTranslation({"/sweep": Path("/s"), "/sweep/results": Path("/r r"), "/tmp": Path("/t")})  # noqa: S108

    texts = ("/sweep/results", "/sweep/results/x", "/sweep/resultsx", "/sweep", "a/sweep", "/temp", "")

    seen = [translate(text) for text in texts]

    assert seen == ["/r r", "/r r/x", "/s/resultsx", "/s", "a/sweep", "/temp", ""]


def test_a_trial_that_continues_another_has_its_checkpoints() -> None:
    parent = Parent("t-1", "lr-b1-3f9a1c2e/7")
    on_results = indexed([""])
    on_volume = replace(on_results, volumes=("checkpoints",))

    folders = [batch.kept_folders(3, parent, Path("/s")) for batch in (on_results, on_volume)]

    assert folders[0] == {
        "/sweep/results": Path("/s/results/lr-b1-00000001/3"),
        "/sweep/parent": Path("/s/results/lr-b1-3f9a1c2e/7/checkpoints"),
    }
    assert folders[1]["/sweep/parent"] == Path("/s/checkpoints/lr-b1-3f9a1c2e/7/checkpoints")
    assert folders[1]["/sweep/checkpoints"] == Path("/s/checkpoints/lr-b1-00000001/3")
    assert on_results.declared_variables(3, parent)["SWEEP_PARENT_ID"] == "t-1"
    assert "SWEEP_PARENT" not in on_results.declared_variables(3, None)


def test_trials_of_one_pod_share_no_folder_for_temporary_files() -> None:
    batch = indexed([""])

    assert batch.temporary_folders(Path("/own"))["/tmp"] == Path("/own/scratch")  # noqa: S108
    assert "/tmp" not in replace(batch, pack=Pack(2)).temporary_folders(Path("/own"))  # noqa: S108


def test_the_engines_environment_does_not_reach_the_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")

    results = environment.process_environment(
        {"SWEEP_RAN": "local", "A": "/data/x"},
        PathTranslation({"/data": Path("/d")}),
        own=Path("/own"),
        added={"CUDA_VISIBLE_DEVICES": "", "SWEEP_RAN": "process"},
    )

    assert results == {
        "A": "/d/x",
        "CUDA_VISIBLE_DEVICES": "",
        "HOME": "/own",
        "PATH": f"{Path(sys.executable).parent}:/bin:/usr/bin",
        "PYTHONDONTWRITEBYTECODE": "1",
        "SWEEP_RAN": "process",
        "TMPDIR": "/own",
    }
    translate = PathTranslation({"/tmp": Path("/mine")})  # noqa: S108 - where the manifest mounts it
    assert environment.process_environment({}, translate, own=Path("/own"), added={})["TMPDIR"] == "/mine"
