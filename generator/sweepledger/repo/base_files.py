"""The files below `base/` that batches are made from, and the folders that controllers watch."""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from sweepledger import storage
from sweepledger.repo import files
from sweepledger.repo.batches import ACTIVE, ARCHIVE
from sweepledger.repo.files import base_folder
from sweepledger.repo.git import Checkout, Repository, index_attributes
from sweepledger.structs.file_tree import FileTree
from sweepledger.structs.names import LAUNCHER, LAUNCHER_FILE

BASE = "base/"


KEEP_FILE = ".gitkeep"
KEEP_FILES = (f"{ACTIVE}/{KEEP_FILE}", f"{ARCHIVE}/{KEEP_FILE}")
"""Empty files in the folders that controllers watch: a controller prunes only if its folder exists."""


ATTRIBUTES_FILE = ".gitattributes"
UNCHANGED = "-filter -ident -working-tree-encoding -export-subst -export-ignore"
ATTRIBUTE_LINES = (
    *(f"/{place} {UNCHANGED}" for place in ("sweepledger.yaml", "sweeps/**", "clusters/**")),
    *(f"/{place}/** -text {UNCHANGED}" for place in ("base", "overlays", "results")),
)
"""Lines that keep filters and encodings away from the files of sweeps, and ends of lines from generated ones."""
SAMPLES = (
    *(f"{ACTIVE}/a-b1-0/{name}" for name in ("batch.json", "hyperparams.csv", "job.yaml")),
    *(f"results/a/{name}" for name in ("summary.csv", "README.md", "records/a-b1-0.jsonl", "figures/a.svg")),
    "base/launcher/v1/launch.py",
)
"""Generated files, to ask git about the attributes of each kind."""
CHANGING = frozenset({"filter", "ident", "working-tree-encoding", "eol", "crlf"})


def with_attribute_lines(content: bytes) -> bytes | None:
    """Return `.gitattributes` with the lines for generated files at its end; None if it has them."""
    if set(content.decode(errors="replace").splitlines()).issuperset(ATTRIBUTE_LINES):
        return None
    text = "\n".join(("# Of sweeps, git has the bytes that were reviewed and recorded.", *ATTRIBUTE_LINES))
    return (content and content.rstrip(b"\n") + b"\n") + text.encode() + b"\n"


def needs_attribute_lines(repository: Repository) -> bool:
    """Return whether attributes of the index change generated files."""
    return any(
        name in CHANGING and (name, value) != ("eol", "lf")
        for named in index_attributes(repository, SAMPLES).values()
        for name, value in named
    )


def own_bases(root: Path) -> FileTree:
    """Return everything below `base/` of the work tree except Python's caches, as git has it. Raises StorageError."""
    files.refuse_links(root, "base")
    checkout = Checkout(Repository(root), "base")
    present = files.read_sources(root / BASE)
    hidden = {name: checkout.read(BASE + name) or b"" for name in checkout.hidden_below("base")}
    return FileTree({**hidden, **{name: checkout.content(BASE + name, content) for name, content in present}})


def read_bases(root: Path) -> Mapping[str, bytes]:
    """Read the files that overlays copy from `base/`: the repository's own, or the package's if it has none."""
    own, packaged = own_bases(root), files.read_sources(base_folder())
    return {**packaged.files, **own.files}


def read_bases_at(repository: Repository, commit: str) -> Mapping[str, bytes]:
    """Return the files that overlays copy from `base/` at a commit."""
    own = {path.removeprefix(BASE): held for path, held in repository.read(commit, BASE).items()}
    return {**files.read_sources(base_folder()).files, **own}


def missing_bases(root: Path, names: Iterable[str]) -> dict[str, bytes]:
    """Return the files of the bases that the repository does not have yet, by path."""
    return _packaged(_absent(root, names))


def _absent(root: Path, names: Iterable[str]) -> list[str]:
    """Return the bases that the repository lacks; bases omitted by a sparse check-out are not lacking."""
    absent = [name for name in names if not (root / BASE / name).exists()]
    hidden = Checkout(Repository(root), "base").hidden if absent else {}
    return [name for name in absent if not any(path.startswith(f"{BASE}{name}/") for path in hidden)]


def missing_bases_at(
    repository: Repository, commit: str, names: Iterable[str], *, root: Path | None = None
) -> dict[str, bytes]:
    """Return the files of the bases that a commit does not have yet, by path.

    A base in the work tree at `root` is taken from there.
    """
    present = repository.files(commit, BASE)
    absent = [name for name in names if not any(path.startswith(f"{BASE}{name}/") for path in present)]
    return _packaged(absent, root)


def packaged_launcher() -> Path:
    """Return the launcher of the package."""
    return base_folder() / LAUNCHER / LAUNCHER_FILE


def _packaged(names: Collection[str], root: Path | None = None) -> dict[str, bytes]:
    """Return files of some bases from the package or from a work tree, by their path in a repository."""
    own = {name: root / BASE / name for name in names if root is not None and (root / BASE / name).is_dir()}
    return {
        f"{BASE}{name}/{path}": content
        for name in sorted(names)
        for path, content in files.read_sources(own.get(name, base_folder() / name))
    }


def write_attribute_lines(root: Path) -> bool:
    """Add the lines for generated files to `.gitattributes`; return whether it lacked them. Raises StorageError."""
    path = root / ATTRIBUTES_FILE
    files.refuse_links(root, ATTRIBUTES_FILE)
    content = with_attribute_lines(files.read_file(path) if path.exists() else b"")
    if content is not None:
        storage.write_file(path, content)
    return content is not None


def write_bases(root: Path, names: Iterable[str]) -> None:
    """Write the missing files of these bases, and the folders that controllers watch.

    Existing files stay, but missing lines are added to `.gitattributes`. Raises StorageError for links.
    """
    ordered = sorted(names)
    attributes = root / ATTRIBUTES_FILE
    if attributes.is_file() and not attributes.is_symlink() and needs_attribute_lines(Repository(root)):
        write_attribute_lines(root)
    files.refuse_links(root, ACTIVE, ARCHIVE, *(f"base/{name}" for name in ordered))
    for path in KEEP_FILES:
        if not (root / path).exists():
            storage.write_file(root / path, b"")
    for name in _absent(root, ordered):
        files.write_folder(root / "base" / name, files.read_sources(base_folder() / name))
