"""Earlier versions of files, to tell what somebody has changed: by digest, or as they stood at a commit."""

from collections.abc import Callable, Iterable, Iterator

from generator.repo.git import Repository, commits


def versions(repository: Repository, commit: str, *paths: str) -> Iterator[tuple[str, str]]:
    """Yield commit and blob of each version of a file in a history, at any of its places, the last first."""
    for one in reversed(commits(repository, *paths, revision=commit)):
        yield from ((one.id, one.files[path]) for path in paths if path in one.files)


def earlier(
    repository: Repository, commit: str, paths: Iterable[str], is_it: Callable[[bytes], bool]
) -> tuple[str, bytes] | None:
    """Find the newest version of a file that is the one that is looked for, with its commit."""
    seen: set[str] = set()
    for one, blob in versions(repository, commit, *paths):
        if blob not in seen:
            seen.add(blob)
            content = repository.blobs([blob])[blob]
            if is_it(content):
                return one, content
    return None


def brought(repository: Repository, commit: str, path: str) -> str | None:
    """Name the last commit that brought what lies at a path in a commit; None where nothing lies there."""
    held = repository.files(commit, path).get(path)
    if held is None:
        return None
    return next((one for one, blob in versions(repository, commit, path) if blob == held.id), commit)


def holding(repository: Repository, tree: str, path: str) -> str | None:
    """Name the newest commit of any branch whose folder at a path is a tree; None where none is."""
    root = path.rstrip("/") in {"", "."}
    listed = repository.run("rev-list", "--full-history", "--all", "HEAD", *([] if root else ["--", path]))
    names = listed.split()
    asked = "".join(f"{one}^{{tree}}\n" if root else f"{one}:{path.rstrip('/')}\n" for one in names)
    answers = repository.run("cat-file", "--batch-check=%(objectname)", content=asked.encode()).splitlines()
    return next((one for one, found in zip(names, answers, strict=True) if found == tree), None)
