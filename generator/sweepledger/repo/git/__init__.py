"""Git: repositories and their objects, commits, remotes, signatures."""

from sweepledger.repo.git.branch import (
    commit_on_branch,
    delete_branches,
    finish_update,
    operation_in_progress,
    proposals,
    propose,
    push_proposal,
    rebased_commit,
    remote_branches,
    superseded_proposals,
)
from sweepledger.repo.git.code_tree import (
    CommittedCode,
    code_tree,
    commit_with_code,
    committed_code,
    disk_by_file,
    store_code,
    uncommitted_code,
)
from sweepledger.repo.git.commit import Change, committer, create_repository
from sweepledger.repo.git.history import (
    Commit,
    CommitSignature,
    addition_subjects,
    addition_times,
    changed_lines,
    commit_signatures,
    commit_time,
    commits,
    present_since,
    reachable_trees,
    remote_contains,
    tree_patch,
)
from sweepledger.repo.git.mirror import REMOTE, Mirror
from sweepledger.repo.git.remote import (
    base_commit,
    fetch,
    followed_remote,
    last_update,
    publish,
    tracking_ref,
)
from sweepledger.repo.git.repository import (
    ALL_SCOPES,
    EXECUTABLE_MODE,
    FILE_MODE,
    FILE_MODES,
    LINK_MODE,
    SUBMODULE_MODE,
    UNSHALLOW,
    Entry,
    Repository,
)
from sweepledger.repo.git.work_tree import (
    CARRIAGE_RETURN,
    Checkout,
    WorkTreeChanges,
    commit_on_head,
    index_attributes,
    uncommitted_paths,
    untracked_paths,
    without_repository_filters,
    work_tree_entries,
    work_tree_files,
)
