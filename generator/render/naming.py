"""The digest that a batch's name ends in, taken again from its files: no spec, no bases, no generator."""

from generator.formats.lock import LOCK_FILE
from generator.structs.names import BLANK_DIGEST
from generator.structs.tree import FileTree
from generator.structs.values import bytes_digest


def batch_digest(tree: FileTree, name: str, digest: str) -> str:
    """Take the digest of a batch's files as when it was rendered: its name and its own digest blank.

    Equals the lock's `digest` exactly where nothing was changed since, whichever version rendered it.
    """
    blank = f"{name[: -len(BLANK_DIGEST)]}{BLANK_DIGEST}".encode()
    files = {path: content.replace(name.encode(), blank) for path, content in tree}
    lock = files.get(LOCK_FILE, b"").replace(f'"{digest}"'.encode(), b'""')
    for path, content in tree:
        if path != LOCK_FILE:
            lock = lock.replace(bytes_digest(content).encode(), bytes_digest(files[path]).encode())
    return f"sha256:{FileTree({**files, LOCK_FILE: lock}).digest}"
