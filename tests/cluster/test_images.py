"""The images: what they hold, as whom they run, when they are built anew. Pods run them in `tests/e2e`."""

import hashlib
import json
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import base_system, image_store, images, oci
from tests.cluster.images import COLLECTOR, TRAINER, Images, Recipe
from tests.command_line import captured

ROOT = Path(__file__).parents[2]
NOBODY = "65532:65532"
IN_IMAGE = """
kept=$1 scratch=$2 image=$3 user=$4 where=$5 data=$6; shift 6
store() { buildah --root "$kept" --runroot "$scratch" --storage-driver overlay "$@"; }
container=$(store from --pull-never "$image")
root=$(store mount "$container")
trap 'umount --recursive --lazy "$root"; store rm "$container" > "$data/removed"' EXIT
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/tmp"
mount --rbind /dev "$root/dev"
mount --bind "$data" "$root/mnt"
chroot --userspec="$user" "$root" env -i -C "$where" "$@"
"""
"""What a node does with an image, for a test: a read-only root, a user, an environment, a folder at /mnt."""

Running = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def made() -> Images:
    result = images.built()
    if result is None:
        pytest.skip("skipped: no images of what is here (run `python -m tests.cluster.images` as root)")
    return result


@pytest.fixture
def run_in(made: Images, tmp_path: Path) -> Running:
    """Run a command as a pod would: as the image's user, who can write to /mnt and /tmp alone."""
    store = image_store.Store(images.FOLDER / "store", tmp_path)
    data = tmp_path / "mnt"
    data.mkdir()
    data.chmod(0o777)

    def run(recipe: Recipe, *command: str) -> subprocess.CompletedProcess[str]:
        name = images.stored_image(recipe, ROOT)
        if not store.has(name):
            pytest.skip("skipped: the image is not in the store any more")
        config = config_of(images.archive_of(recipe, ROOT))["config"]
        own = (str(store.folder), str(tmp_path / "run"))
        argv = [*base_system.ENDS_WITH_US, "sh", "-ceu", IN_IMAGE, "sh", *own, name]
        argv += [config["User"], config.get("WorkingDir", "/"), str(data), *config["Env"], *command]
        return captured(argv)

    return run


def config_of(archive: Path) -> dict[str, Any]:
    """Read the image's configuration out of its archive, by the digests that lead there."""
    with tarfile.open(archive) as opened:

        def blob(digest: str) -> dict[str, Any]:
            content = opened.extractfile(f"blobs/sha256/{digest.removeprefix('sha256:')}")
            assert content is not None
            data = content.read()
            assert f"sha256:{hashlib.sha256(data).hexdigest()}" == digest
            document: dict[str, Any] = json.loads(data)
            return document

        return blob(blob(oci.digest(archive))["config"]["digest"])


def test_each_image_is_known_by_its_digest_and_runs_as_nobody(made: Images) -> None:
    for image in (made.trainer, made.collector, made.pause):
        config = config_of(image.archive)["config"]

        assert config["User"] == NOBODY
        assert image.digest == oci.digest(image.archive)
    assert made.trainer.reference == f"localhost/sweepledger-trainer@{made.trainer.digest}"
    assert made.collector.reference == f"localhost/sweepledger-collector@{made.collector.digest}"
    assert made.pause.reference == "localhost/pause:1"


def test_the_collector_has_its_tools_and_a_name_to_sign_by(run_in: Running) -> None:
    script = """
    sweep --version; git --version; kubectl version --client; whoami
    ssh-keygen -q -t ed25519 -N '' -f /tmp/key
    echo content | ssh-keygen -q -Y sign -f /tmp/key -n git
    ! touch /opt/sweepledger/here; ! python3 -c 'import torch'
    """

    done = run_in(COLLECTOR, "sh", "-ceu", script)

    assert done.returncode == 0, done.stderr
    assert "BEGIN SSH SIGNATURE" in done.stdout
    assert "\nsweep\n" in done.stdout
    assert "Read-only file system" in done.stderr


@pytest.mark.parametrize("recipe", [COLLECTOR, TRAINER], ids=lambda recipe: recipe.name)
def test_an_image_names_neither_a_mirror_nor_the_machine(run_in: Running, recipe: Recipe) -> None:
    script = "cat /etc/hostname /etc/hosts /etc/resolv.conf; ls /etc/apt/sources.list.d /wheels /mnt/pip.conf"

    done = run_in(recipe, "sh", "-c", script)

    assert done.stdout.split() == ["/etc/apt/sources.list.d:"]


@pytest.mark.parametrize("name", ["collector", "trainer"])
def test_the_page_shows_how_to_build_the_very_files(name: str) -> None:
    page = (ROOT / "docs/how-to/images.md").read_text()
    lines = (ROOT / f"images/{name}/Containerfile").read_text().splitlines()
    given = {line.split()[1].partition("=")[0] for line in lines if line.startswith("ARG ")}

    assert f"docker build --file images/{name}/Containerfile" in page
    for argument in given - {"SOURCE_DATE_EPOCH", "PIP_CONFIG_FILE"}:
        assert f"`{argument}`" in page
