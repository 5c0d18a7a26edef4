"""A stored batch as checked manifests, and in the form in which this machine runs it; its dataset."""

import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any

from sweepledger import contract
from sweepledger.controllers import GITOPS
from sweepledger.engine.local.local_batch import (
    LAUNCHER_FOLDER,
    DesiredBatch,
    LocalBatch,
    Parent,
    local_batch,
)
from sweepledger.errors import RepositoryError, SpecError
from sweepledger.formats.batch_json import batch_digest
from sweepledger.operations.repository import at_commit, batch_builder
from sweepledger.operations.repository.batch_records import ends_in_digest
from sweepledger.operations.repository.outside_imports import StartedProgram
from sweepledger.problems import Problem
from sweepledger.render.base_files import PACK, PACK_FILE
from sweepledger.render.platform.admission import ADMISSION, batch_policies
from sweepledger.render.platform.tree import appliers, batch_lists
from sweepledger.repo import batches, datasets, files, kustomize
from sweepledger.repo.base_files import missing_bases_at, packaged_launcher
from sweepledger.repo.batches import StoredBatch
from sweepledger.repo.git import Mirror, Repository, store_code
from sweepledger.storage import WatchedFolder
from sweepledger.structs.batch import BatchLock
from sweepledger.structs.file_tree import FileTree
from sweepledger.structs.names import LAUNCHER, LAUNCHER_FILE, LAUNCHER_PROGRAM, LOCK_FILE
from sweepledger.structs.platform import Names
from sweepledger.structs.run_config import Shape
from sweepledger.structs.settings import Settings, TrialSettings
from sweepledger.structs.settings.network import ProxySettings

PROGRAM = re.compile(rf"base/(?:{LAUNCHER_PROGRAM}|{PACK}/{PACK_FILE})")
"""The launcher with its parts, and what starts several rows of it."""
PARTS = re.compile(rb"^ *(?:from|import) (launch_\w+)", re.MULTILINE)
"""The parts that one of these imports."""
PROBLEM_CODE = "needs-cluster"
EDITED = "batch-edited"
Manifests = tuple[Mapping[str, Any], ...]
DISTRIBUTED = tuple(shape for shape in Shape if shape.is_distributed)


def render_at(repository: Repository, commit: str, batch: StoredBatch, settings: Settings) -> Manifests:
    """Build a batch from a commit and check it against policy. Raises SpecError, ToolError."""
    older = batches.in_commit(repository, commit) if batch.lock.parents else ()
    return render(batch, repository.read(commit, "base"), settings, older)


def render(
    batch: StoredBatch, base: Mapping[str, bytes], settings: Settings, older: Iterable[StoredBatch]
) -> Manifests:
    """Build a batch that may not be written yet from the files below `base/`, and check it against policy.

    Raises SpecError with every problem, also if the overlay renders nothing, and ToolError.
    """
    bases = {path.removeprefix("base/"): content for path, content in base.items()}
    unsafe = contract.check_kustomization(batch.tree.files, bases, place=batch.folder)
    if unsafe:
        raise SpecError(unsafe)
    with tempfile.TemporaryDirectory(prefix="sweep-build-") as scratch:
        files.write_folder(Path(scratch) / batch.folder, batch.tree)
        files.write_folder(Path(scratch) / "base", FileTree(bases))
        built = kustomize.build(Path(scratch) / batch.folder)
    problems = check_built(batch, built, bases, settings, older)
    if problems:
        raise SpecError(problems)
    return built


def check_built(
    batch: StoredBatch,
    built: Manifests,
    bases: Mapping[str, bytes],
    settings: Settings,
    older: Iterable[StoredBatch],
) -> tuple[Problem, ...]:
    """Return the problems of a batch's manifests by the admission policies of its team."""
    try:
        image = batch.lock.program.container_image
    except RepositoryError:  # an unreadable lock, which is reported with hand edits
        image = None
    try:
        policies = team_policies(settings, bases)
    except (LookupError, TypeError, ValueError) as error:
        message = f"must be files of which the lists of admission policies can be made, got {error!r}"
        return (Problem("base", 0, 0, "", message, "base-changed", "restore them from git"),)
    return contract.check_batch(
        batch.name,
        settings,
        built,
        policies,
        file=batch.folder,
        image=image,
        parent_folders=batch_builder.parent_folders_of(batch, older),
    )


def team_policies(settings: Settings, bases: Mapping[str, bytes]) -> tuple[contract.Policy, ...]:
    """Return the policies that judge the batches of a team: those of this release, with lists from files below `base/`.

    A change cannot add its own policies. Raises LookupError, TypeError or ValueError for files that are not policies.
    """
    packaged = files.read_sources(files.base_folder()).files
    rules = {path: content for path, content in packaged.items() if path.startswith(ADMISSION)}
    all_files = {**packaged, **bases, **rules}
    names = Names.of(settings.trials, settings.fleet)
    users = appliers(names, (own.namespace(names, settings.platform) for own in GITOPS.values()))
    lists = batch_lists(settings, DISTRIBUTED, users, all_files)
    made = batch_policies(names, *lists, all_files)
    return tuple(contract.Policy(each) for each in made if "validations" in each["spec"])


def refuse_forged(batch: StoredBatch) -> None:
    """Raise SpecError unless a batch has the files of its lock, and its name ends in their digest."""
    drift, name, digest = batch.hand_edits(), batch.vetted().name, batch.lock.digest
    edited = [*drift.added, *drift.changed, *drift.stale]
    if not edited and not (ends_in_digest(name, digest) and batch_digest(batch.tree, name, digest) == digest):
        edited = [LOCK_FILE]
    if edited:
        message = "is not what the digest in the name of its batch says"
        hint = "restore the folder from git, or cancel the batch and generate another one"
        raise SpecError(
            [Problem(f"{batch.folder}/{path}", 0, 0, "", message, EDITED, hint) for path in edited]
        )


def local_batch_at(
    repository: Repository,
    commit: str,
    batch: StoredBatch,
    trials: TrialSettings,
    proxy: ProxySettings | None,
) -> LocalBatch:
    """Return a batch as this machine runs it, under the launcher of a commit. Raises SpecError, RepositoryError."""
    lock, run = batch.lock, batch.lock.run
    problems = [
        Problem(batch.folder, 0, 0, path, message, PROBLEM_CODE, "run it in the cluster")
        for path, message in _cluster_needs(lock, trials)
    ]
    if problems:
        raise SpecError(problems)
    started = {LAUNCHER: LAUNCHER_FILE, **({PACK: PACK_FILE} if run.pack else {})}
    parents: Mapping[int, str] = {}
    if lock.parents and lock.shape is Shape.JOBS:  # only there can each trial have a mount of its own
        parents = batch_builder.parent_folders_of(batch, batches.in_commit(repository, commit))
    contents = repository.read(commit, *(f"base/{folder}" for folder in started))
    if not lock.has_manifests:  # no commit needs bases
        contents |= missing_bases_at(repository, commit, started)
    programs = {path: text for path, text in contents.items() if PROGRAM.fullmatch(path)}
    needed = {f"base/{folder}/{file}" for folder, file in started.items()}
    needed |= {
        f"base/{LAUNCHER}/{part.decode()}.py" for text in programs.values() for part in PARTS.findall(text)
    }
    if missing := sorted(needed - programs.keys()):
        raise RepositoryError(
            f"commit {commit[:12]} lacks {missing[0]}, which starts the trials of {batch.name}",
            hint="restore the files below base/ from git; or, if another version of sweep wrote them, "
            f"delete base/{LAUNCHER} and base/{PACK}, and run `sweep generate`",
        )
    try:
        return local_batch(
            lock,
            batch.tree.files,
            {PurePath(path).name: content for path, content in programs.items()},
            parents={row: Parent(lock.parents[row], folder) for row, folder in parents.items()},
            proxy=proxy.variables if proxy is not None and proxy.egress in run.egress else {},
        )
    except ValueError as error:
        raise SpecError([Problem(batch.folder, 0, 0, "", str(error), EDITED)]) from error


def _cluster_needs(lock: BatchLock, trials: TrialSettings) -> Iterator[tuple[str, str]]:
    """Yield key and message for each requirement of a batch that only a cluster meets."""
    if lock.shape.is_distributed:
        kind = lock.shape.kind
        yield (
            f"{kind.kind}.kind",
            f"must be a Job of batch/v1 or a ConfigMap of v1, got {kind.kind!r} of {kind.api_version!r}",
        )
    for name in lock.run.secrets:
        secret = trials.secrets[name].secret if name in trials.secrets else name
        yield (
            f"run.secrets.{name}",
            f"must be absent on this machine, which does not have the cluster's Secret {secret!r}",
        )
    pool = trials.pools.get(lock.run.pool or "")
    if pool is not None and (devices := sorted({*pool.pod.resources, *pool.pod.claims})):
        yield f"pools.{lock.run.pool}.pod", f"must have no devices on this machine, got {', '.join(devices)}"


def desired_batch(
    repository: Repository,
    commit: str,
    batch: StoredBatch,
    mirror: Mirror,
    cache: Path,
    *other: TrialSettings,
) -> tuple[DesiredBatch, StartedProgram]:
    """Return a batch as it runs here, with its locked code and data, by the settings of a commit; and its program.

    The code is checked out in a mirror; data may also be found by `other` settings, and is fetched into a cache.
    Raises SpecError, RepositoryError, StorageError for wrong data.
    """
    settings, program = at_commit.valid_settings(repository, commit), batch.lock.program
    made = local_batch_at(repository, commit, batch, settings.trials, settings.network.proxy)
    store_code(repository, program.code, [commit])
    code = mirror.code(program.code)
    data = locked_data(batch, (settings.trials, *other), cache, code=code.folder)
    folder, state = (None, "") if data is None else (data.folder, data.state)
    desired = DesiredBatch(
        made,
        code.folder,
        folder,
        code_state=code.state,
        data_state=state,
        compares_data=all(
            made.files.get(f"{LAUNCHER_FOLDER}/{program.name}") == program.read_bytes()
            for program in packaged_launcher().parent.glob("*.py")
        ),
        failures=settings.teams.limits.failures,
    )
    return desired, StartedProgram(program, batch.lock.run, code.folder)


def locked_data(
    batch: StoredBatch, trials: Iterable[TrialSettings], cache: Path, *, code: Path
) -> WatchedFolder | None:
    """Return the verified data that a batch locks; None if it locks none.

    The first of several settings that names the data with this digest is used; `cache` is the folder for fetched
    datasets. Raises RepositoryError if none names the data, StorageError for wrong data.
    """
    data = batch.lock.program.data
    if data is None:
        return None
    known = (candidate.dataset_named(data.name) for candidate in trials)
    dataset = next((entry for entry in known if entry is not None and entry.identity == data.digest), None)
    if dataset is None:
        keys = " and ".join(f"datasets.{name}.digest" for name in data.names)
        raise RepositoryError(
            f"{batch.name} locked dataset {data.name} at {data.digest[:19]}, which the settings do not contain",
            hint=f"restore {keys}, or request the trials with the current dataset: "
            f"`sweep generate {batch.lock.sweep} --update`",
        )
    return datasets.verified_data(dataset, cache, code=code)
