import json
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from sweepledger.formats import batch_json, hyperparams_csv, launch_json
from sweepledger.formats.batch_json import batch_digest
from sweepledger.structs.run_config import Shape
from tests.render.building import built, job_of, rendered
from tests.sweeps import a_batch, a_sweep

SHAPES = pytest.mark.parametrize("shape", [Shape.INDEXED, Shape.JOBS], ids=str)
IMAGE = "registry.example.org/team/trainer@sha256:" + "a" * 64


@SHAPES
def test_the_name_ends_in_the_digest_of_all_that_is_rendered(shape: Shape) -> None:
    names = {
        rendered(batch).name
        for batch in (
            a_batch(shape),
            a_batch(shape, image=IMAGE),
            a_batch(shape, sweep=a_sweep(run=replace(a_sweep().run, retries=2))),
            a_batch(shape, sweep=a_sweep(digest="sha256:" + "0" * 64)),
            replace(a_batch(shape), number=2),
        )
    }

    assert len(names) == 5
    assert all(re.fullmatch(r"lr-b[12]-[0-9a-f]{8}", name) for name in names)


@SHAPES
def test_text_of_the_spec_that_looks_like_the_name_without_its_digest_stays(shape: Shape) -> None:
    unnamed = "lr-b1-00000000"
    variables = {"PREVIOUS": unnamed}

    made = rendered(a_batch(shape, sweep=a_sweep(run=replace(a_sweep().run, environment=variables))))

    assert re.fullmatch(r"lr-b1-[1-9a-f][0-9a-f]{7}", made.name)
    assert unnamed in made.tree["job.yaml"].decode()
    assert made.tree["job.yaml"].decode().count(made.name) > 1
    assert batch_digest(made.tree, made.name, made.lock.digest) == made.lock.digest


@SHAPES
def test_the_lock_holds_the_digests_of_all_other_files_and_the_name_of_their_digest(shape: Shape) -> None:
    made = rendered(a_batch(shape))

    read = batch_json.read(made.tree["batch.json"])

    assert read == made.lock
    assert dict(read.files) == {
        path: digest for path, digest in made.tree.digests.items() if path != "batch.json"
    }
    assert read.name.endswith(read.digest.removeprefix("sha256:")[:8])


def test_several_shards_are_mounted_as_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hyperparams_csv.write_table, "__kwdefaults__", {"limit": 60})

    manifests = built(a_batch(), tmp_path)

    maps = [manifest for manifest in manifests if manifest["metadata"]["name"].endswith(("-000", "-001"))]
    assert [list(one["data"]) for one in maps] == [["hyperparams-000.csv"], ["hyperparams-001.csv"]]
    (volume,) = [v for v in job_of(manifests)["spec"]["template"]["spec"]["volumes"] if v["name"] == "table"]
    assert [source["configMap"]["name"] for source in volume["projected"]["sources"]] == [
        m["metadata"]["name"] for m in maps
    ]


@pytest.mark.parametrize("text", ["{}", '{"columns": [1], "shards": [1]}', "[]"])
def test_what_is_no_launch_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a launch\.json"):
        launch_json.read_table_layout(text)


def test_a_round_of_a_search_is_in_the_lock_and_other_batches_say_nothing_of_rounds() -> None:
    batch = replace(a_batch(), round=2, engine="optuna 4.6.0", parents={0: "t0123456789a"})

    made = rendered(batch)

    text = made.tree["batch.json"].decode()
    drawn = {"round": 2, "method": "grid", "engine": "optuna 4.6.0", "parents": {"0": "t0123456789a"}}
    assert drawn.items() <= json.loads(text).items()
    assert batch_json.read(text) == made.lock
    assert not drawn.keys() & json.loads(rendered(a_batch()).tree["batch.json"]).keys()
