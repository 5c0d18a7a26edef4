"""OCI image layouts: a trial's files as an artifact, and the attestation of its provenance as a referrer."""

import hashlib
from collections.abc import Iterable
from typing import Any

from sweepledger.exchange.models import statement as statements
from sweepledger.exchange.models.promoted_trial import PromotedTrial
from sweepledger.formats import json
from sweepledger.structs.file_tree import FileTree
from sweepledger.structs.record import Artifact
from sweepledger.structs.values import canonical_json

ARTIFACT_TYPE = "application/vnd.sweepledger.model.v1"
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
INDEX_TYPE = "application/vnd.oci.image.index.v1+json"
EMPTY_TYPE = "application/vnd.oci.empty.v1+json"
FILE_TYPE = "application/octet-stream"
EMPTY = b"{}"
BLOBS = "blobs/sha256"
ANNOTATION = "org.opencontainers.image"


def layout(trial: PromotedTrial) -> FileTree:
    """Return the layout without the blobs of the trial's files, which belong at `blob_path`."""
    blobs: dict[str, bytes] = {}
    empty = _stored(blobs, EMPTY, EMPTY_TYPE)
    created = {f"{ANNOTATION}.created": trial.finished}
    model = _stored_manifest(
        blobs,
        {
            "artifactType": ARTIFACT_TYPE,
            "config": empty,
            "layers": [*_layers(trial.artifacts)] or [empty],
            "annotations": {
                **created,
                f"{ANNOTATION}.title": trial.name,
                f"{ANNOTATION}.revision": trial.commit,
                "dev.sweepledger.values": canonical_json(dict(trial.assignment)),
            },
        },
    )
    claim = statements.statement(trial, {trial.name: model["digest"].removeprefix("sha256:")})
    attested = _stored(blobs, json.dump(claim).encode(), statements.MEDIA_TYPE)
    attestation = _stored_manifest(
        blobs,
        {
            "artifactType": statements.MEDIA_TYPE,
            "config": empty,
            "layers": [attested],
            "subject": {key: model[key] for key in ("mediaType", "digest", "size")},
            "annotations": {**created, "in-toto.io/predicate-type": statements.PREDICATE_TYPE},
        },
    )
    named = {"annotations": {f"{ANNOTATION}.ref.name": trial.trial}}
    index = {"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": [model | named, attestation]}
    return FileTree(
        {
            "oci-layout": json.dump({"imageLayoutVersion": "1.0.0"}).encode(),
            "index.json": json.dump(index).encode(),
            **blobs,
        }
    )


def blob_path(artifact: Artifact) -> str:
    """Return where the content of a file belongs."""
    return f"{BLOBS}/{artifact.sha256}"


def _layers(artifacts: Iterable[Artifact]) -> Iterable[dict[str, Any]]:
    for artifact in artifacts:
        yield {
            "mediaType": FILE_TYPE,
            "digest": f"sha256:{artifact.sha256}",
            "size": artifact.bytes,
            "annotations": {f"{ANNOTATION}.title": artifact.path},
        }


def _stored_manifest(blobs: dict[str, bytes], manifest: dict[str, Any]) -> dict[str, Any]:
    content = json.dump({"schemaVersion": 2, "mediaType": MANIFEST_TYPE, **manifest}).encode()
    return {**_stored(blobs, content, MANIFEST_TYPE), "artifactType": manifest["artifactType"]}


def _stored(blobs: dict[str, bytes], content: bytes, media_type: str) -> dict[str, Any]:
    """Add a blob, and return its descriptor."""
    digest = hashlib.sha256(content).hexdigest()
    blobs[f"{BLOBS}/{digest}"] = content
    return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}
