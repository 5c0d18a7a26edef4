"""The one door to git: open a repository, read its objects, publish a commit."""

from generator.repo.git.door import Entry, Repository
from generator.repo.git.history import Commit, commits, reachable_trees
from generator.repo.git.mirror import REMOTE, Mirror
from generator.repo.git.publish import Change, commit_here, fetch, publish

__all__ = [
    "REMOTE",
    "Change",
    "Commit",
    "Entry",
    "Mirror",
    "Repository",
    "commit_here",
    "commits",
    "fetch",
    "publish",
    "reachable_trees",
]
