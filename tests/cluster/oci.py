"""Images in the form of the Open Container Initiative, as files: made of a layer, packed as an archive.

The same content gives the same bytes. Starts nothing, and knows nothing of what is inside a layer.
"""

import hashlib
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

EPOCH = "1970-01-01T00:00:00Z"
MEDIA = "application/vnd.oci.image"
NAMES = ("io.containerd.image.name", "org.opencontainers.image.ref.name")
"""The annotations in which containerd and buildah look for an image's name."""
CONFIG = {"Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]}


def lay_out(layer: Path, folder: Path, config: Mapping[str, Any] = CONFIG) -> None:
    """Make a layout of one image, of one layer that is not packed; the layer's file is moved there."""
    blobs = folder / "blobs/sha256"
    blobs.mkdir(parents=True)
    with layer.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    size = layer.stat().st_size
    layer.rename(blobs / digest)
    described = {
        "architecture": "amd64",
        "os": "linux",
        "created": EPOCH,
        "config": dict(config),
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        "history": [{"created": EPOCH, "created_by": "tests.cluster"}],  # buildah wants one line a layer
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{MEDIA}.manifest.v1+json",
        "config": _blob(blobs, described, f"{MEDIA}.config.v1+json"),
        "layers": [{"mediaType": f"{MEDIA}.layer.v1.tar", "digest": f"sha256:{digest}", "size": size}],
    }
    _point(folder, _blob(blobs, manifest, f"{MEDIA}.manifest.v1+json"))
    (folder / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')


def pack(folder: Path, target: Path, name: str) -> None:
    """Write the layout's one image as an archive of that name; without a tag, its digest is added to it."""
    (manifest,) = json.loads((folder / "index.json").read_text())["manifests"]
    full = name if ":" in name else f"{name}@{manifest['digest']}"
    _point(folder, {**manifest, "annotations": dict.fromkeys(NAMES, full)})
    scratch = target.with_name(f"{target.name}.part")
    with tarfile.open(scratch, "w", format=tarfile.GNU_FORMAT) as archive:
        # The index first: who asks for the digest need not read on.
        for path in (folder / "index.json", folder / "oci-layout", *sorted(folder.glob("blobs/sha256/*"))):
            entry = tarfile.TarInfo(str(path.relative_to(folder)))
            entry.size = path.stat().st_size
            with path.open("rb") as content:
                archive.addfile(entry, content)
    scratch.rename(target)


def extend(archive: Path, layer: Path, folder: Path) -> None:
    """Make a layout of an archive's image and one more layer, which is not packed; its file is moved there."""
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
    blobs = folder / "blobs/sha256"
    (pointed,) = json.loads((folder / "index.json").read_text())["manifests"]
    manifest = json.loads((blobs / pointed["digest"].removeprefix("sha256:")).read_text())
    config = json.loads((blobs / manifest["config"]["digest"].removeprefix("sha256:")).read_text())
    with layer.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    size = layer.stat().st_size
    layer.rename(blobs / digest)
    config["rootfs"]["diff_ids"].append(f"sha256:{digest}")
    config.setdefault("history", []).append({"created": EPOCH, "created_by": "tests.cluster"})
    manifest["config"] = _blob(blobs, config, f"{MEDIA}.config.v1+json")
    manifest["layers"].append(
        {"mediaType": f"{MEDIA}.layer.v1.tar", "digest": f"sha256:{digest}", "size": size}
    )
    _point(folder, _blob(blobs, manifest, f"{MEDIA}.manifest.v1+json"))


def digest(archive: Path) -> str:
    """Read the digest of an archive's image: of its manifest, as containerd shows it."""
    with tarfile.open(archive) as opened:
        index: dict[str, Any] = json.loads(_content(opened, "index.json").read())
    return str(index["manifests"][0]["digest"])


def layer_of(path: Path, target: Path) -> None:
    """Write a layer of one program, in the root folder, that everybody may run."""
    with tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as archive, path.open("rb") as content:
        entry = tarfile.TarInfo(path.name)
        entry.size, entry.mode = path.stat().st_size, 0o755
        archive.addfile(entry, content)


def _blob(blobs: Path, content: object, media: str) -> dict[str, Any]:
    text = json.dumps(content, sort_keys=True).encode()
    digest = hashlib.sha256(text).hexdigest()
    (blobs / digest).write_bytes(text)
    return {"mediaType": media, "digest": f"sha256:{digest}", "size": len(text)}


def _point(folder: Path, manifest: Mapping[str, Any]) -> None:
    index = {"schemaVersion": 2, "manifests": [dict(manifest)]}
    (folder / "index.json").write_text(json.dumps(index, sort_keys=True))


def _content(archive: tarfile.TarFile, name: str) -> IO[bytes]:
    result = archive.extractfile(name)
    assert result is not None, f"{name} is no file"
    return result
