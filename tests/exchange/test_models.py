"""What a promoted trial becomes: statements, MLflow's folder, OCI layouts. All are equal for equal trials."""

import hashlib
import json
from dataclasses import replace
from typing import Any

import yaml

from sweepledger.exchange.models import mlflow, oci
from sweepledger.exchange.models.promoted_trial import PromotedTrial
from sweepledger.exchange.models.statement import promoted_from, statement
from sweepledger.structs.metric import Goal, Metric
from sweepledger.structs.record import Artifact
from tests.builders import a_program

WEIGHTS = b"\x00weights"
ARTIFACT = Artifact("model.bin", len(WEIGHTS), hashlib.sha256(WEIGHTS).hexdigest())
IMAGE = f"registry.example.org/train@sha256:{'1' * 64}"


def a_promoted_trial(**changes: Any) -> PromotedTrial:
    return PromotedTrial(
        **{
            "sweep": "peak",
            "trial": "t00000000001",
            "commit": "c0" * 20,
            "inputs_digest": f"sha256:{'2' * 64}",
            "assignment": {"rate": 1e-5, "kind": "1e3"},
            "program": a_program(image=IMAGE),
            "seed": 7,
            "metric": Metric("score", Goal.MAXIMIZE),
            "value": 0.75,
            "interval": (0.7, 0.8),
            "verdict": "clear",
            "started": "2026-01-01T00:00:00Z",
            "finished": "2026-01-01T00:00:09Z",
            "artifacts": (ARTIFACT,),
            **changes,
        }
    )


def test_a_statement_names_what_the_trial_ran() -> None:
    data = statement(a_promoted_trial(), {"config.yaml": "3" * 64})

    assert (data["_type"], data["predicateType"]) == (
        "https://in-toto.io/Statement/v1",
        "https://slsa.dev/provenance/v1",
    )
    assert promoted_from(data) == ("peak", "t00000000001", {"config.yaml": "3" * 64})
    definition = data["predicate"]["buildDefinition"]
    digests = {one["name"]: one["digest"] for one in definition["resolvedDependencies"]}
    program = a_program()
    assert digests["code"] == {"gitTree": program.code.tree}
    assert digests["image"] == {"sha256": "1" * 64}
    assert digests["results"] == {"gitCommit": "c0" * 20}
    assert set(digests) == {"results", "inputs", "code", "image", "data"}


def test_a_statement_of_others_is_no_promotion() -> None:
    data = statement(a_promoted_trial(), {"config.yaml": "3" * 64})

    others: list[object] = [[], {}, {"predicate": 1}, {**data, "subject": [{"name": 1, "digest": {}}]}]

    for broken in others:
        assert promoted_from(broken) is None
    data["predicate"]["buildDefinition"]["buildType"] = "https://example.org/other"
    assert promoted_from(data) is None


def test_an_mlflow_model_has_the_files_of_the_trial() -> None:
    tree = mlflow.model_files(a_promoted_trial())

    model = yaml.safe_load(tree["MLmodel"])
    assert model["flavors"]["sweepledger"]["values"] == {"rate": 1e-5, "kind": "1e3"}
    assert model["metadata"]["score"] == 0.75
    assert len(model["model_uuid"]) == 32
    subject = json.loads(tree["MLmodel.intoto.json"])["subject"]
    assert subject == [{"name": "artifacts/model.bin", "digest": {"sha256": ARTIFACT.sha256}}]
    assert dict(mlflow.model_files(a_promoted_trial()).files) == dict(tree.files)
    other = mlflow.model_files(a_promoted_trial(inputs_digest=f"sha256:{'4' * 64}"))
    assert yaml.safe_load(other["MLmodel"])["model_uuid"] != model["model_uuid"]


def test_every_blob_of_a_layout_has_the_digest_and_size_that_others_name() -> None:
    tree = oci.layout(a_promoted_trial())
    blobs = {**tree.files, oci.blob_path(ARTIFACT): WEIGHTS}

    index = json.loads(tree["index.json"])
    model, attestation = (json.loads(_blob(blobs, one)) for one in index["manifests"])

    for manifest in (model, attestation):
        for descriptor in (manifest["config"], *manifest["layers"]):
            _blob(blobs, descriptor)
    assert json.loads(tree["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    assert model["layers"][0]["annotations"]["org.opencontainers.image.title"] == "model.bin"
    assert attestation["subject"]["digest"] == index["manifests"][0]["digest"]
    claim = json.loads(_blob(blobs, attestation["layers"][0]))
    assert claim["subject"][0]["digest"]["sha256"] == attestation["subject"]["digest"].removeprefix("sha256:")


def test_a_trial_without_artifacts_has_an_empty_layer() -> None:
    tree = oci.layout(replace(a_promoted_trial(), artifacts=()))

    (manifest, _) = json.loads(tree["index.json"])["manifests"]
    (layer,) = json.loads(_blob(tree.files, manifest))["layers"]
    assert _blob(tree.files, layer) == b"{}"


def _blob(blobs: Any, descriptor: dict[str, Any]) -> bytes:
    """Return what a descriptor names, after comparing it with its size and digest."""
    content: bytes = blobs[f"blobs/sha256/{descriptor['digest'].removeprefix('sha256:')}"]
    assert descriptor["size"] == len(content)
    assert descriptor["digest"] == f"sha256:{hashlib.sha256(content).hexdigest()}"
    return content
