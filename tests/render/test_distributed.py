"""Distributed shapes: whole objects of any kind, filled in where their base says."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator
from msgspec.structs import replace

from sweepledger.distributions.choice import Choice
from sweepledger.distributions.constant import Constant
from sweepledger.formats import yaml
from sweepledger.render import distributed
from sweepledger.structs.batch import Batch
from sweepledger.structs.run_config import Resources, Shape
from sweepledger.structs.search_block import GridSearch
from sweepledger.structs.settings import Settings
from sweepledger.structs.space import Parameter, SearchSpace
from tests.render.building import named, rendered
from tests.sweeps import FULL_SETTINGS, SETTINGS, a_batch, a_full_sweep, a_sweep, overlay_of, some_bases

ROOT = Path(__file__).parent.parent.parent
KINDS = tuple(shape for shape in Shape if shape.is_distributed)
SHAPES = pytest.mark.parametrize("shape", KINDS, ids=str)


TEMPLATES = {
    "TrainingRuntime": ("spec", "template", "spec", "replicatedJobs", 0, "template", "spec", "template"),
    "JobSet": ("spec", "replicatedJobs", 0, "template", "spec", "template"),
}
REPLICAS = {"MPIJob": "mpiReplicaSpecs", "PyTorchJob": "pytorchReplicaSpecs", "TFJob": "tfReplicaSpecs"}
RELEASES = {
    Shape.TRAIN_JOB: {"trainer-v2.0.0", "trainer-v2.3.0"},
    Shape.MPI_JOB: {"mpi-operator-v0.6.0"},
    Shape.JOB_SET: {"jobset-v0.10.1"},
    Shape.PYTORCH_JOB: {"training-operator-v1.9.3"},
    Shape.TF_JOB: {"training-operator-v1.9.3"},
}


def a_trial_of_several_pods(shape: Shape, nodes: int = 3, **run: Any) -> Batch:
    document = {"nodes": nodes, "processes": 2, "resources": Resources("4", "8Gi", gpu=2), **run}
    return a_batch(shape, sweep=a_sweep(run=replace(a_sweep().run, **document)))


def objects(batch: Batch, settings: Settings = SETTINGS) -> list[dict[str, Any]]:
    return list(yaml.load_all(rendered(batch, settings).tree["job.yaml"]))


def trials(batch: Batch, settings: Settings = SETTINGS) -> list[dict[str, Any]]:
    return [thing for thing in objects(batch, settings) if thing["kind"] != "TrainingRuntime"]


def templates(thing: dict[str, Any]) -> dict[str, Any]:
    """Give the pod templates of an object by the name of their replica, in its order."""
    if thing["kind"] in TEMPLATES:
        result: Any = thing
        for step in TEMPLATES[thing["kind"]]:
            result = result[step]
        return {"node": result}
    if thing["kind"] in REPLICAS:
        listed = thing["spec"][REPLICAS[thing["kind"]]]
        return {name: replica["template"] for name, replica in listed.items()}
    return {}


def containers(batch: Batch) -> Iterator[dict[str, Any]]:
    for thing in objects(batch):
        for template in templates(thing).values():
            yield from template["spec"]["containers"]


@cache
def schemas() -> Any:
    folder = ROOT / "generator/sweepledger/contract/schemas"
    core, custom = (
        json.loads((folder / name).read_bytes()) for name in ("kubernetes-1.30.json", "custom.json")
    )
    return custom["kinds"], core["$defs"] | custom["$defs"]


@pytest.mark.sampled(1)
@SHAPES
def test_every_object_is_valid_in_every_release_of_its_kind(shape: Shape) -> None:
    kinds, definitions = schemas()
    seen = set()

    for thing in objects(a_batch(shape, sweep=a_full_sweep("queued", nodes=3)), FULL_SETTINGS):
        for release, definition in kinds[f"{thing['apiVersion']} {thing['kind']}"]:
            check = Draft202012Validator({"$ref": f"#/$defs/{definition}", "$defs": definitions})
            assert [error.message for error in check.iter_errors(thing)] == []
            seen.add(release.replace(" ", "-"))

    assert {item.rpartition("/")[2] for item in seen} == RELEASES[shape]


@pytest.mark.parametrize("shape", [Shape.PYTORCH_JOB, Shape.TF_JOB, Shape.MPI_JOB], ids=str)
def test_a_trial_of_one_pod_has_no_workers(shape: Shape) -> None:
    item, three = (trials(a_trial_of_several_pods(shape, nodes))[0] for nodes in (1, 3))

    assert "Worker" not in templates(item)
    assert three["spec"][REPLICAS[three["kind"]]]["Worker"]["replicas"] == 2


def test_what_kubernetes_would_fill_in_is_escaped() -> None:
    space = SearchSpace((Parameter("text", Constant("a $(HOME) b $$ c")), Parameter("x", Choice((1, 2)))))
    batch = a_batch(Shape.TF_JOB, sweep=a_sweep(design=GridSearch(space)))

    (container, *_) = containers(batch)

    assert named(container["env"], "SWEEP_PARAM_TEXT")["value"] == "a $$(HOME) b $$$ c"
    assert "--text=a $$(HOME) b $$$ c" in container["args"]


def test_another_kind_is_a_folder_and_no_code() -> None:
    trial = {"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "x"}, "spec": {"pods": [], "size": "1"}}
    trial["spec"] |= {"pods": [{"spec": {"containers": [{"name": "own"}]}}], "to": "-"}  # type: ignore[operator]
    where = {
        "templates": [{"path": "spec.pods.0", "container": "own"}],
        "nodes": ["spec.size"],
        "names": {"spec.to": "{trial} of {batch}"},
    }
    folder = {"trial.yaml": yaml.dump(trial), "places.yaml": yaml.dump({"trial": where})}
    bases = {**some_bases(), **{f"tf-job/v1/{name}": text.encode() for name, text in folder.items()}}

    made = overlay_of(a_trial_of_several_pods(Shape.TF_JOB), bases, SETTINGS)

    first = yaml.load_all(made.tree["job.yaml"])[0]
    assert first["spec"]["size"] == "3"
    assert first["spec"]["to"] == f"{made.name}-0 of {made.name}"
    assert first["spec"]["pods"][0]["spec"]["containers"][0]["name"] == "own"


@pytest.mark.parametrize("path", ["spec.none", "spec.none.deeper", "none"])
def test_a_place_that_the_base_lacks_is_no_place(path: str) -> None:
    with pytest.raises(KeyError):
        distributed.set_field({"spec": {}}, path, 1)
