"""A private bare clone that follows one branch of a remote, and the locked code trees that trials copy."""

import os
from pathlib import Path

from sweepledger.errors import RepositoryError
from sweepledger.repo.git.code_tree import store_code
from sweepledger.repo.git.remote import tracking_ref
from sweepledger.repo.git.repository import EXECUTABLE_MODE, Repository
from sweepledger.storage import WatchedFolder, folder_state, make_read_only, remove_folder, storage_errors
from sweepledger.structs.program import Code
from sweepledger.structs.values import digest

REMOTE = "origin"
FILES_AT_ONCE = 500
"""Files that are read from git at once."""


class Mirror:
    """The repository of a machine that runs trials, separate from the user's clone and work tree."""

    FOLDER = "mirror.git"
    """Relative to the state folder."""

    def __init__(self, state: Path, origin: str | Repository, branch: str) -> None:
        """Follow a branch of a URL, or of a repository on this machine, whose objects are not copied."""
        url = origin if isinstance(origin, str) else str(origin.folder)
        self.branch = branch
        self._code = state / "code"
        folder = state / self.FOLDER
        with storage_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        self.repository = Repository(folder)
        self.repository.run("init", "--quiet", "--bare")
        known = self.repository.remote_url(REMOTE)
        if known != url:
            verb = "add" if known is None else "set-url"
            self.repository.run("remote", verb, "--end-of-options", REMOTE, url)
        if isinstance(origin, Repository):
            alternates = folder / "objects" / "info" / "alternates"
            with storage_errors(alternates):
                alternates.write_text(f"{origin.git_path('objects').resolve()}\n", encoding="utf-8")

    def code(self, code: Code) -> WatchedFolder:
        """Write a code tree at its path into a separate folder, exactly as in git; return the folder.

        Trials copy it, and nothing may write to it: a folder that was written to is created again. Raises
        RepositoryError if the history of the branch does not contain the code, StorageError.
        """
        if not store_code(self.repository, code, [tracking_ref(REMOTE, self.branch)]):
            raise RepositoryError(
                f"the locked code {code} at {code.tree[:12]} is not in a commit of {self.branch}",
                hint="merge the commit that contains it, or run `sweep generate --update`; in a shallow clone, first "
                "`git fetch --unshallow`",
            )
        parts = [part for part in code.path.split("/") if part not in {"", "."}]
        folder = self._code / digest([code.tree, *parts])
        done = folder.with_name(f"{folder.name}.state")
        with storage_errors(folder):
            state = done.read_text("ascii") if done.is_file() and folder.is_dir() else None
            if state is None or folder_state(folder) != state:
                done.unlink(missing_ok=True)
                remove_folder(folder)
                self._write(code.tree, folder.joinpath(*parts))
                make_read_only(folder)
                state = folder_state(folder)
                done.write_text(state, "ascii")
        return WatchedFolder(folder, state)

    def _write(self, tree: str, folder: Path) -> None:
        """Write the files of a tree without filters of any kind; links come last, so that none is followed."""
        entries, links = sorted(self.repository.files(tree).items()), list[tuple[str, bytes]]()
        folder.mkdir(parents=True)
        folders = {""}
        for start in range(0, len(entries), FILES_AT_ONCE):
            chunk = entries[start : start + FILES_AT_ONCE]
            contents = self.repository.blobs(entry.id for _, entry in chunk)
            for name, entry in chunk:
                content = contents[entry.id]
                if not {"", ".", "..", ".git"}.isdisjoint(name.lower().split("/")):
                    raise RepositoryError(
                        f"the tree {tree} has a file {name!r}, which git would not check out"
                    )
                path, parent = f"{folder}/{name}", name.rpartition("/")[0]
                if parent not in folders:
                    os.makedirs(f"{folder}/{parent}", exist_ok=True)  # noqa: PTH103 - of thousands of files
                    folders.add(parent)
                if entry.is_link:
                    links.append((path, content))
                    continue
                with open(path, "xb") as file:  # noqa: PTH123
                    file.write(content)
                if entry.mode == EXECUTABLE_MODE:
                    os.chmod(path, 0o755)  # noqa: PTH101, S103
        for path, target in links:
            os.symlink(target, os.fsencode(path))  # noqa: PTH211
