"""The one door to git: open a repository, read its objects, publish a commit."""

from generator.repo.git.door import Entry, Repository
from generator.repo.git.history import (
    Commit,
    arrivals,
    commits,
    committed_at,
    follows,
    is_there_since,
    last_change,
    reachable_trees,
)
from generator.repo.git.landing import commit_here
from generator.repo.git.mirror import REMOTE, Mirror
from generator.repo.git.proposal import heads, offer, proposals, propose, superseded, withdraw
from generator.repo.git.publish import Change, create, fetch, followed, publish
from generator.repo.git.signed import Touch, touches
from generator.repo.git.work_tree import uncommitted, untracked

__all__ = [
    "REMOTE",
    "Change",
    "Commit",
    "Entry",
    "Mirror",
    "Repository",
    "Touch",
    "arrivals",
    "commit_here",
    "commits",
    "committed_at",
    "create",
    "fetch",
    "followed",
    "follows",
    "heads",
    "is_there_since",
    "last_change",
    "offer",
    "proposals",
    "propose",
    "publish",
    "reachable_trees",
    "superseded",
    "touches",
    "uncommitted",
    "untracked",
    "withdraw",
]
