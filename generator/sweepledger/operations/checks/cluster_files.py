"""Checks of `clusters/`: the platform's files, by the settings, and the files of active batches."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sweepledger.controllers import GITOPS
from sweepledger.errors import RepositoryError
from sweepledger.formats import bootstrap_yaml, yaml
from sweepledger.formats.bootstrap_yaml import BOOTSTRAP_FILE, Bootstrap
from sweepledger.operations.checks.context import CheckContext
from sweepledger.operations.scaffold import bootstrap
from sweepledger.problems import Problem, Severity, TextError
from sweepledger.render.platform import batch_objects
from sweepledger.render.platform.manual_setup import NO_OWNER
from sweepledger.repo import batches, files
from sweepledger.repo.base_files import KEEP_FILE
from sweepledger.repo.inputs import PlatformFiles, read_bootstrap
from sweepledger.safe_open import read_regular
from sweepledger.spec import ParsedSpec
from sweepledger.structs.names import SETTINGS_FILE
from sweepledger.structs.platform import CLUSTERS

EXTRA = bootstrap.EXTRA_FOLDER


def check_batch_files(context: CheckContext) -> Iterator[Problem]:
    """Compare batch files in `clusters/` with the active batches; a file as in the base commit is no error."""
    root, settings = context.workspace.root, context.workspace.settings
    controller, clusters = settings.platform.controller, (None, *sorted(settings.fleet.clusters))
    needs_files = bool(batch_objects.active_folders(controller, clusters))
    expected: dict[str, bytes] = {}
    for batch in batches.readable(batch for batch in context.present if batch.is_active):
        # The settings of the base commit count unless the controller changed.
        merged_settings = context.settings_of(batch)
        is_same = merged_settings.platform.controller is controller
        namespace = (merged_settings if is_same else settings).trials.namespace
        expected |= batch_objects.batch_files(controller, namespace, {batch.name: batch.lock.cluster})
    folders = batch_objects.active_folders(None, clusters)
    existing = {f"{folder}/{name}" for folder in folders for name in files.list_folder(root / folder)}
    # A cluster that was removed may follow its folder still.
    existing |= {
        path
        for path in (*context.index, *context.uncommitted(f"{CLUSTERS}/"))
        if path.startswith(f"{CLUSTERS}/") and not path.startswith(EXTRA) and bootstrap.is_batch_file(path)
        if (root / path).is_file()
    }
    for path in sorted(expected.keys() - existing):
        message = f"is missing: {GITOPS[controller].title} would not apply this batch"
        yield Problem(path, 0, 0, "", message, "drift", "run `sweep generate`")
    merged = {
        path
        for batch in batches.readable(batch for batch in context.merged if batch.is_active)
        for path in batch_objects.batch_paths(batch.name, [batch.lock.cluster])
    }
    for path in sorted(existing - expected.keys() - {f"{folder}/{KEEP_FILE}" for folder in folders}):
        # A merge that ignored this check must not block other changes.
        is_left = needs_files and path in merged
        is_new = is_left or not context.is_merged_content(path, files.read_file(root / path))
        if needs_files or is_new:
            severity = Severity.ERROR if is_new else Severity.WARNING
            yield Problem(path, 0, 0, "", "belongs to no active batch", "drift", "remove it", severity)
    for path in sorted(existing & expected.keys()):
        content = files.read_file(root / path)
        if content != expected[path] and not context.is_merged_content(path, content):
            hint = "remove it and run `sweep generate`"
            yield Problem(path, 0, 0, "", "is not what the generator writes", "drift", hint)


def check_secrets(context: CheckContext) -> Iterator[Problem]:
    """Refuse Secrets in new files of `clusters/` whose values SOPS has not sealed."""
    folder = f"{CLUSTERS}/"
    paths = {path for path in context.index if path.startswith(folder)} | {*context.uncommitted(folder)}
    for path in sorted(path for path in paths if path.endswith((".yaml", ".yml", ".json"))):
        file = context.workspace.root / path
        content = read_regular(file, files.LARGEST_GENERATED_FILE) if file.is_file() else None
        if content is None or context.is_merged_content(path, content):
            continue
        try:
            documents = yaml.load_all(content)
        except TextError:
            continue  # no controller reads it either
        for document in documents:
            if isinstance(document, dict) and document.get("kind") == "Secret" and not is_sealed(document):
                message = "must not contain a Secret in plain text: everyone who can read the repository can read it"
                hint = "make it in the cluster, or let SOPS seal all of its values"
                yield Problem(path, 0, 0, "", message, "secret-exposed", hint)


_LETTERS = r"[A-Za-z0-9+/]*={0,2}"
_SEALED = re.compile(rf"ENC\[AES256_GCM,data:{_LETTERS},iv:{_LETTERS},tag:{_LETTERS},type:str\]", re.ASCII)


def is_sealed(secret: Mapping[str, Any]) -> bool:
    """Return whether a Secret has no values, or SOPS has sealed them all."""
    values: list[Any] = []
    for key in ("data", "stringData"):
        table = secret.get(key)
        values += table.values() if isinstance(table, Mapping) else [] if table is None else [table]
    added = secret.get("sops")
    seal = added.get("mac") if isinstance(added, Mapping) else None
    return not values or all(isinstance(value, str) and _SEALED.fullmatch(value) for value in [seal, *values])


OWNERS = (".github/CODEOWNERS", ".gitlab/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS")


def check_owners(context: CheckContext) -> Iterator[Problem]:
    """Refuse a change of the platform while it has no owners: the git server would require no review."""
    if BOOTSTRAP_FILE not in context.changed:
        return
    for path in OWNERS:
        file = context.workspace.root / path
        content = read_regular(file, files.LARGEST_GENERATED_FILE) if file.is_file() else None
        for number, line in enumerate((content or b"").decode(errors="replace").splitlines(), 1):
            if NO_OWNER in line.partition("#")[0]:
                message = f"must name a team or a person, got {NO_OWNER!r}: nobody would have to approve"
                hint = "replace it by the owners of the platform"
                yield Problem(path, number, 1, "", message, "owners-unset", hint)
                break


def check_platform(context: CheckContext, specs: Iterable[ParsedSpec]) -> Iterator[Problem]:
    """Compare the platform's files with settings and record; skip this if `sweep cluster bootstrap` never ran."""
    settings = context.workspace.settings
    yield from settings.warnings
    way_out = f"run `sweep cluster bootstrap {settings.platform.controller}` and commit what it writes"
    try:
        recorded = read_bootstrap(context.workspace.root)
        source = bootstrap.recorded_source(recorded) if recorded else None
    except RepositoryError as error:
        message = str(error).removeprefix(f"{BOOTSTRAP_FILE}: ")
        yield Problem(BOOTSTRAP_FILE, 0, 0, "", message, "drift", error.hint)
        return
    controller, branch = settings.platform.controller, settings.git.branch
    if recorded is None or source is None:
        if BOOTSTRAP_FILE in context.base_entries and controller in GITOPS:
            yield Problem(BOOTSTRAP_FILE, 0, 0, "", "is missing", "drift", way_out)
        return
    if controller not in GITOPS:
        message = f"is for {recorded.controller}, but the settings say controller: {controller}"
        hint = f"run `sweep cluster bootstrap {recorded.controller}`, or remove what it wrote"
        yield Problem(BOOTSTRAP_FILE, 0, 0, "", message, "drift", hint)
        return
    if recorded.branch != branch:
        message = f"follows branch {recorded.branch!r}, but the settings say {branch!r}"
        hint = f"run `sweep cluster bootstrap {controller} --branch` with the one that is meant"
        yield Problem(BOOTSTRAP_FILE, 0, 0, "", message, "drift", hint)
    yield from _source_problems(context, recorded)
    try:
        active = batches.readable(batch for batch in context.present if batch.is_active)
        existing = PlatformFiles.read(context.workspace.root, CLUSTERS)
        compared = bootstrap.compare_platform(existing, settings, source, recorded, active)
    except RepositoryError as error:
        yield Problem("base", 0, 0, "", str(error), "base-changed", error.hint)
        return
    # A change of the platform must leave it as it is generated; a change that only adds a sweep need not repair it.
    places = (SETTINGS_FILE, f"{CLUSTERS}/")
    changed = context.changed_paths(*places) | context.uncommitted(*places)
    own = {path for path in changed if not bootstrap.is_batch_file(path) and not path.startswith(EXTRA)}
    severity = Severity.ERROR if own or context.edited_bases else Severity.WARNING
    yield from _file_problems(compared, way_out, severity)
    yield from _shape_problems(context, specs, recorded, way_out)
    # No controller applies these: their Jobs would be deleted, or never made.
    for batch, message, hint in bootstrap.unapplied_batches(active, settings.fleet):
        yield Problem(batch.folder, 0, 0, "", message, "batch-cluster", hint)


def _source_problems(context: CheckContext, recorded: Bootstrap) -> Iterator[Problem]:
    """Refuse an address that no setting names: the collector would send its credential there."""
    named = context.workspace.settings.git.repository
    if named == recorded.url:
        return
    hint = f"`sweep cluster bootstrap {recorded.controller} --repo URL` writes both"
    if named is not None:
        message = f"follows {recorded.url}, but {SETTINGS_FILE} names {named}"
        yield Problem(BOOTSTRAP_FILE, 0, 0, "url", message, "repository-changed", hint)
        return
    content = context.workspace.repository.read(context.base, BOOTSTRAP_FILE).get(BOOTSTRAP_FILE)
    try:
        merged = bootstrap_yaml.read(content) if content is not None else None
    except ValueError:
        return  # nothing was followed by a record that cannot be read
    if merged is not None and merged.url != recorded.url:
        message = f"follows {recorded.url} instead of {merged.url}, which no setting explains"
        hint = f"set `repository: {recorded.url}` in {SETTINGS_FILE} if it is meant"
        yield Problem(BOOTSTRAP_FILE, 0, 0, "url", message, "repository-changed", hint)


def _file_problems(compared: bootstrap.PlatformComparison, fix: str, severity: Severity) -> Iterator[Problem]:
    """Yield the problems of the platform's files; files of batches are checked elsewhere."""
    set_it = (
        f"set it in {SETTINGS_FILE} and run `sweep cluster bootstrap` with --force; own objects go to {EXTRA}"
    )
    edited = "was edited by hand: no setting reaches it any more"
    foreign, move = (
        "is not a file of the platform, but a cluster may apply it",
        f"move it to {EXTRA}, or remove it",
    )
    for message, paths in (
        ("is missing", compared.missing),
        ("is not what the settings give", compared.changed),
        ("is what no setting gives any more", compared.stale),
    ):
        own = (path for path in paths if not bootstrap.is_batch_file(path))
        yield from (Problem(path, 0, 0, "", message, "drift", fix) for path in own)
    for message, hint, paths in ((edited, set_it, compared.edited), (foreign, move, compared.foreign)):
        yield from (Problem(path, 0, 0, "", message, "platform-edited", hint, severity) for path in paths)


def _shape_problems(
    context: CheckContext, specs: Iterable[ParsedSpec], recorded: Bootstrap, fix: str
) -> Iterator[Problem]:
    """Yield a problem for each shape that the controller may not apply: its batch would be pending forever."""
    allowed = {None, *recorded.shapes}
    for parsed in specs:
        shape = parsed.sweep.run.shape
        if shape not in allowed and shape is not None and shape.is_distributed:
            message = f"is a shape that the files in clusters/ do not allow, got {str(shape)!r}"
            yield parsed.source.problem(message, "run", "shape", code="shape-not-allowed", hint=fix)
    entry = context.base_entries.get(BOOTSTRAP_FILE)
    is_merged = entry is not None and context.index.get(BOOTSTRAP_FILE) == entry
    for batch in context.added if is_merged else context.present:
        if batch.is_active and batch.lock.shape.is_distributed and batch.lock.shape not in allowed:
            message = f"is of shape {str(batch.lock.shape)!r}, which the files in clusters/ do not allow"
            yield Problem(batch.folder, 0, 0, "", message, "shape-not-allowed", fix)
