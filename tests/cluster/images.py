"""Builds the images that the tests' cluster runs, from the very files that a person builds them from.

    python -m tests.cluster.images      builds what is not there yet; says what it does and how long

An archive is named after what went into it. Debian and the installed libraries lie in a store, under names of
their own: a change in `generator/` or `trainer/` costs seconds.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import base_system, oci
from tests.cluster.apiserver import NoClusterToolsError
from tests.cluster.base_system import Base
from tests.cluster.building import BUILT, ROOT, say
from tests.cluster.image_store import BUILD, Store, base_name, end_of, stored_name

FOLDER = BUILT / "images"
PAUSE = "localhost/pause:1"
"""As containerd is told; only it asks for this image, and not by digest."""
PAUSE_CONFIG = {"Entrypoint": ["/pause"], "User": "65532:65532"}
OURS = tuple(f"tests/cluster/{name}.py" for name in ("base_system", "image_store", "images", "oci"))
"""A change in how images are built builds them anew, from what the store keeps."""
LOCK = "locks/sweep.lock"


@dataclass(frozen=True, slots=True)
class Image:
    """An image in a file."""

    name: str
    archive: Path
    """What `ctr images import` takes; it brings its name along."""
    digest: str

    @property
    def reference(self) -> str:
        """Give the name under which containerd knows it after the import."""
        return self.name if ":" in self.name else f"{self.name}@{self.digest}"


@dataclass(frozen=True, slots=True)
class Images:
    """What a cluster of the tests runs."""

    trainer: Image
    collector: Image
    pause: Image


@dataclass(frozen=True, slots=True)
class Recipe:
    """What an image is made of."""

    name: str
    image: str
    content: tuple[str, ...]
    """Files and folders of the repository: the whole context of the build."""
    base: Base | None = None
    arguments: tuple[str, ...] = ()
    slow_stage: str = ""
    """It is built by itself, with the wheels of its lock at hand, and kept."""

    @property
    def containerfile(self) -> str:
        """Name the file that a person builds it from, too."""
        return f"images/{self.name}/Containerfile"


COLLECTOR = Recipe(
    "collector",
    "localhost/sweepledger-collector",
    (
        *("images/collector/Containerfile", ".dockerignore", "locks/sweep.lock"),
        *("pyproject.toml", "README.md", "LICENSE", "base", "generator"),
    ),
    base_system.COLLECTOR,
    slow_stage="builder",
)
TRAINER = Recipe(
    "trainer",
    "localhost/sweepledger-trainer",
    ("images/trainer/Containerfile", ".dockerignore", "LICENSE", "trainer"),
    base_system.TRAINER,
    arguments=("LOCK=none",),
)
HOLDER = Recipe("pause", PAUSE, ("tests/cluster/pause.c",))
RECIPES = (HOLDER, COLLECTOR, TRAINER)


def built() -> Images | None:
    """Give the images of what the repository holds now, where all of them are built."""
    archives = {recipe.name: archive_of(recipe, ROOT) for recipe in RECIPES}
    return _images(archives) if all(path.is_file() for path in archives.values()) else None


def build() -> Images:
    """Build what is not there yet. Raises NoClusterToolsError where that cannot be done."""
    if images := built():
        return images
    if reason := base_system.missing():
        raise NoClusterToolsError(f"no images: {reason}")
    with _alone() as scratch:
        archives, needed = {}, set[str]()
        for recipe in RECIPES:
            # A copy: the repository may change while this goes on.
            context = _copy(recipe, scratch / recipe.name)
            archives[recipe.name] = _build(recipe, context, Store(FOLDER / "store", scratch))
            needed |= _names(recipe, context)
        for path in set(FOLDER.glob("*.tar")) - set(archives.values()):
            path.unlink()  # soon built again, and a quarter of a gigabyte
        Store(FOLDER / "store", scratch).forget_all_but(needed)
    return _images(archives)


def archive_of(recipe: Recipe, root: Path) -> Path:
    """Name the file of the image that is built from what a folder holds."""
    return FOLDER / f"{recipe.name}-{_key(recipe, root)}.tar"


def _images(archives: dict[str, Path]) -> Images:
    made = {
        recipe.name: Image(recipe.image, archives[recipe.name], oci.digest(archives[recipe.name]))
        for recipe in RECIPES
    }
    return Images(**made)


def _build(recipe: Recipe, context: Path, store: Store) -> Path:
    archive = archive_of(recipe, context)
    if archive.is_file():
        return archive
    began = time.monotonic()
    layout = store.scratch / f"{recipe.name}-layout"
    if recipe.base is None:
        layer = store.scratch / "pause-layer"
        base_system.pause(layer)
        oci.lay_out(layer, layout, PAUSE_CONFIG)
    else:
        store.save(_run_containerfile(recipe, store.keep(recipe.base), context, store), layout)
    oci.pack(layout, archive, recipe.image)
    shutil.rmtree(layout)
    say(f"    {recipe.name}: {archive.stat().st_size / 1e6:.1f} MB, {time.monotonic() - began:.0f} s")
    return archive


def _run_containerfile(recipe: Recipe, base: str, context: Path, store: Store) -> str:
    """Give the image's name in the store; the stage that takes long is built first, and named, too."""
    given = [f"--build-arg={argument}" for argument in (f"BASE={base}", *recipe.arguments)]
    options = [*BUILD, *given, f"--file={context / recipe.containerfile}"]
    name, slow = stored_image(recipe, context), _slow_name(recipe, context)
    if slow and not store.has(slow):
        wheels = _wheels(context / LOCK, store.scratch / "wheels")
        wanted = (f"--target={recipe.slow_stage}", f"--tag={slow}", f"--volume={wheels}:/mnt:ro")
        store.run(*options, *wanted, str(context))
    say(f"==> building the image of the {recipe.name}")
    store.run(*options, f"--tag={name}", str(context))
    return name


def _wheels(lock: Path, folder: Path) -> Path:
    """Fetch what a lock names, as this machine's pip does it; then the build itself needs no network."""
    if sys.version_info[:2] != base_system.PYTHON:
        wanted = ".".join(map(str, base_system.PYTHON))
        raise NoClusterToolsError(f"no images: their Debian has Python {wanted}, and here runs another")
    say("==> fetching and installing the collector's libraries (about 40 seconds)")
    argv = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    argv += ["--require-hashes", "--requirement", str(lock), "--dest", str(folder)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoClusterToolsError(f"pip cannot fetch the collector's libraries:\n{end_of(done.stderr)}")
    (folder / "pip.conf").write_text("[global]\nno-index = true\nfind-links = /mnt\n")
    return folder


def _names(recipe: Recipe, context: Path) -> set[str]:
    if recipe.base is None:
        return set()
    return {base_name(recipe.base), stored_image(recipe, context), _slow_name(recipe, context)}


def stored_image(recipe: Recipe, context: Path) -> str:
    return stored_name(recipe.name, _key(recipe, context))


def _slow_name(recipe: Recipe, context: Path) -> str:
    if recipe.base is None or not recipe.slow_stage:
        return ""
    return stored_name(recipe.slow_stage, _digest(context, (recipe.containerfile, LOCK), recipe.base.key))


@contextmanager
def _alone() -> Iterator[Path]:
    """Wait until nobody else builds; give an empty folder, and remove it."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        scratch = FOLDER / "building"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        try:
            yield scratch
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def _key(recipe: Recipe, root: Path) -> str:
    ours = _digest(ROOT, OURS, recipe.base.key if recipe.base else "")
    return _digest(root, recipe.content, ours)


def _digest(root: Path, content: tuple[str, ...], more: str) -> str:
    """Stand for files by name, mode and content."""
    digest = hashlib.sha256(more.encode())
    for path in _files(root, content):
        data = path.read_bytes()
        digest.update(f"{path.relative_to(root)}\0{_mode(path):o}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()[:12]


def _copy(recipe: Recipe, context: Path) -> Path:
    for path in _files(ROOT, recipe.content):
        target = context / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
        target.chmod(_mode(path))
    return context


def _files(root: Path, content: tuple[str, ...]) -> list[Path]:
    paths = [
        path
        for name in content
        for path in (root / name, *sorted((root / name).rglob("*")))
        if path.is_file()
    ]
    return [path for path in paths if "__pycache__" not in path.parts]


def _mode(path: Path) -> int:
    """Give a file's mode without what the umask of its checkout made of it."""
    return 0o755 if path.stat().st_mode & 0o100 else 0o644


def main() -> int:
    """Build the images; where that cannot be done say so and leave: the tests skip by name what they miss."""
    began = time.monotonic()
    try:
        images = build()
    except NoClusterToolsError as error:
        say(f"==> {error}\n    The tests that run images are skipped.")
        return 0
    except KeyboardInterrupt:
        say("stopped; what the store keeps stays")
        return 130
    for image in (images.trainer, images.collector, images.pause):
        say(f"{image.name} {image.digest} {os.path.relpath(image.archive)}")
    say(f"==> the images are ready ({time.monotonic() - began:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
