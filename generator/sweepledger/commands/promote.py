"""`sweep promote`: the values of a verified trial in a configuration file, as a branch for a pull request, and a model.

What is promoted follows from the records of the commit that it is based on. Beside the file, its statement says which
trial, code, data and image it came from; both are in the same commit.
"""

import json as standard_json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Any

from sweepledger import storage
from sweepledger.commands.reports import outputs
from sweepledger.commands.repository import catalog
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.commands.verification.rebuild import recorded_summary
from sweepledger.commands.verify import verify
from sweepledger.errors import RepositoryError, UsageError
from sweepledger.exchange.models import mlflow, oci
from sweepledger.exchange.models.promoted_trial import PromotedTrial
from sweepledger.exchange.models.statement import SUFFIX, promoted_from, statement
from sweepledger.formats import json
from sweepledger.problems import escape_line
from sweepledger.reader.value_edit import KeyPath, key_paths, read_values, replace_value, value_at
from sweepledger.repo import files
from sweepledger.repo.git import FILE_MODE, NO_OBJECT, Change, Repository, create_commit, create_tag, fetch
from sweepledger.results.summary import Summary
from sweepledger.structs.file_tree import FileTree
from sweepledger.structs.record import Status, TrialResult
from sweepledger.structs.values import bytes_digest, canonical_json

BRANCH_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*(?:/[A-Za-z0-9_][A-Za-z0-9._-]*)*", re.ASCII)


class ModelForm(StrEnum):
    """Forms of a model for registries."""

    MLFLOW = "mlflow"
    OCI = "oci"


@dataclass(frozen=True, slots=True)
class SetValue:
    """A key of the configuration file that has the value of a parameter."""

    parameter: str
    path: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Publication:
    """How a promotion reaches others."""

    branch: str = ""
    """Empty: `promote/<sweep>-<trial>`."""
    tag: str = ""
    """Empty: no tag."""
    push: bool = True


@dataclass(frozen=True)
class Promotion:
    """A commit with the values of a trial, on a branch of its own."""

    trial: PromotedTrial
    file: str
    set: tuple[SetValue, ...]
    missing: tuple[str, ...]
    """Parameters of the trial that the file has no key for."""
    branch: str
    commit: str
    tag: str
    is_signed: bool
    """Whether the tag is signed."""
    pushed: bool
    warnings: tuple[str, ...] = ()

    def as_data(self) -> dict[str, Any]:
        """Return the JSON data."""
        return {
            **trial_data(self.trial),
            "file": self.file,
            "set": [asdict(one) for one in self.set],
            "missing": list(self.missing),
            "branch": self.branch,
            "promotion": self.commit,
            "tag": self.tag or None,
            "signed": self.is_signed,
            "pushed": self.pushed,
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True)
class PromotedModel:
    """A folder with a model and its attestation."""

    trial: PromotedTrial
    form: ModelForm
    folder: Path
    files: int
    warnings: tuple[str, ...] = ()

    def as_data(self) -> dict[str, Any]:
        """Return the JSON data."""
        return {
            **trial_data(self.trial),
            "form": str(self.form),
            "folder": str(self.folder),
            "files": self.files,
            "warnings": list(self.warnings),
        }


def trial_data(trial: PromotedTrial) -> dict[str, Any]:
    """Return the JSON data of a promoted trial."""
    return {
        "sweep": trial.sweep,
        "trial": trial.trial,
        "commit": trial.commit,
        "metric": trial.metric.name,
        "value": trial.value,
        "interval": None if trial.interval is None else list(trial.interval),
        "verdict": trial.verdict,
        "assignment": dict(trial.assignment),
    }


@dataclass(frozen=True)
class _Winner:
    """A trial whose results were verified, and what a reader must know of it."""

    trial: PromotedTrial
    warnings: tuple[str, ...] = field(default=())


def promote_values(
    workspace: Workspace,
    name: str,
    file: str,
    *,
    trial: str | None = None,
    keys: Mapping[str, str] | None = None,
    publication: Publication | None = None,
) -> Promotion:
    """Commit the values of a sweep's winner, or of a trial, in a configuration file on a new branch, and push it.

    `keys` names for some parameters the key of the file, with dots. Nothing is checked out. Raises UsageError for a
    trial that cannot be promoted and for a file without its keys, RepositoryError for results that are not verified and
    for a branch or tag that exists.
    """
    chosen = publication or Publication()
    repository, settings = workspace.repository, workspace.settings
    has_remote = repository.remote_url(settings.remote) is not None
    pushes = chosen.push and has_remote
    base = fetch(repository, settings.remote, settings.branch) if pushes else repository.commit("HEAD")
    if base is None:
        raise RepositoryError("the repository has no commit yet")
    winner = _verified_winner(workspace, base, name, trial)
    path = _repository_path(workspace, file)
    content = _configuration(repository, base, path)
    text, changes, missing = _with_values(content, path, winner.trial, keys or {})
    branch = chosen.branch or f"promote/{winner.trial.sweep}-{winner.trial.trial}"
    for kind, reference in (("branch", branch), ("tag", chosen.tag)):
        if reference and not BRANCH_NAME.fullmatch(reference):
            raise UsageError(
                f"{reference!r} is no name of a {kind}", hint="use letters, digits, '/', '-', '_' and '.'"
            )
    _refuse_existing(repository, f"refs/heads/{branch}", "branch")
    if chosen.tag:
        _refuse_existing(repository, f"refs/tags/{chosen.tag}", "tag")
    claim = json.dump(statement(winner.trial, {path: bytes_digest(text.encode()).removeprefix("sha256:")}))
    commit = create_commit(
        repository,
        base,
        Change(
            _message(winner.trial, path, changes), {path: text.encode(), f"{path}{SUFFIX}": claim.encode()}
        ),
    )
    if commit is None:
        raise RepositoryError(
            f"{path} at {base[:12]} has this promotion already", hint="there is nothing to do"
        )
    signed = bool(chosen.tag) and create_tag(repository, chosen.tag, commit, _tag_message(winner.trial, path))
    try:
        if pushes:
            _push(repository, settings.remote, commit, branch, chosen.tag)
        else:
            repository.run("update-ref", "-m", "sweep promote", f"refs/heads/{branch}", commit, NO_OBJECT)
    except RepositoryError:
        if chosen.tag:
            repository.run("update-ref", "-d", f"refs/tags/{chosen.tag}")
        raise
    return Promotion(
        *(winner.trial, path, changes, missing, branch, commit, chosen.tag, signed, pushes, winner.warnings)
    )


def promote_model(
    workspace: Workspace, name: str, folder: Path, *, form: ModelForm, trial: str | None, state: Path
) -> PromotedModel:
    """Write a verified trial's artifacts as a model for registries into a new folder, with their attestation.

    Raises as `promote_values` does, IdleError if the trial has no artifacts, StorageError for a file that differs
    from its record.
    """
    commit = workspace.repository.commit("HEAD")
    if commit is None:
        raise RepositoryError("the repository has no commit yet")
    if folder.exists():
        raise UsageError(f"{folder} exists", hint="choose a new folder")
    winner = _verified_winner(workspace, commit, name, trial)
    promoted = winner.trial
    tree: FileTree
    match form:
        case ModelForm.MLFLOW:
            tree = mlflow.model_files(promoted)
            places = {file.path: f"{mlflow.ARTIFACTS}/{file.path}" for file in promoted.artifacts}
        case ModelForm.OCI:
            tree = oci.layout(promoted)
            places = {file.path: oci.blob_path(file) for file in promoted.artifacts}
    with storage.storage_errors(folder), storage.temporary_folder(folder.parent, folder.name) as made:
        copied = outputs.fetch(workspace, promoted.name, into=made / "fetched", state=state)
        if copied.left_out:
            raise RepositoryError(
                f"{promoted.name}: {copied.left_out} artifacts are not in its record",
                hint="a model must be complete: let the trial write fewer files",
            )
        complete = made / "complete"
        complete.mkdir()
        files.fill_folder(complete, tree)
        for source, target in places.items():
            place = complete / target
            place.parent.mkdir(parents=True, exist_ok=True)
            (made / "fetched" / source).replace(place)
        complete.rename(folder)
    return PromotedModel(promoted, form, folder, len(tree.files) + len(set(places.values())), winner.warnings)


@dataclass(frozen=True, slots=True)
class PromotedFile:
    """A file of a commit that a statement names, with the trial that it was made from."""

    file: str
    sweep: str
    trial: str
    differences: tuple[str, ...]
    """Why it no longer is what the statement says; empty if it is."""


def check_promotions(workspace: Workspace, revision: str = "HEAD") -> tuple[PromotedFile, ...]:
    """Compare every promoted file of a commit with its statement, and each statement with the recorded trial.

    Raises UsageError for a revision that does not exist.
    """
    repository = workspace.repository
    commit = repository.commit(revision)
    if commit is None:
        raise UsageError(f"{revision!r} is not a commit", hint="try a branch, a tag or HEAD~1")
    return tuple(_promoted_files(workspace, commit))


def _promoted_files(workspace: Workspace, commit: str) -> Iterator[PromotedFile]:
    repository = workspace.repository
    paths = sorted(path for path in repository.files(commit) if path.endswith(SUFFIX))
    contents = repository.read(commit, *paths) if paths else {}
    for path in paths:
        try:
            data = standard_json.loads(contents[path])
        except (ValueError, RecursionError):
            continue
        origin = promoted_from(data)
        if origin is None:
            continue
        sweep, trial, subjects = origin
        stated = [*_statement_differences(workspace, commit, sweep, trial, data)]
        for file, digest in sorted(subjects.items()):
            content = repository.read(commit, file).get(file)
            problems = []
            if content is None:
                problems.append(f"{file} does not exist")
            elif bytes_digest(content) != f"sha256:{digest}":
                problems.append(f"{file} has changed since it was promoted")
            yield PromotedFile(file, sweep, trial, (*problems, *stated))


def _statement_differences(
    workspace: Workspace, commit: str, sweep: str, trial: str, data: Mapping[str, Any]
) -> Iterator[str]:
    """Yield where a statement differs from that of the recorded trial; results may have been added since."""
    try:
        summary = recorded_summary(workspace.repository, commit, sweep)
    except RepositoryError as error:
        yield str(error)
        return
    outcome = next((one for one in summary.outcomes if one.trial == trial and one.record is not None), None)
    if outcome is None:
        yield f"{sweep} has no result of trial {trial}"
        return
    definition = data["predicate"]["buildDefinition"]
    recorded = {
        "values": dict(outcome.assignment),
        "value": outcome.metric(summary.metric.name),
    }
    named = {
        "values": definition["externalParameters"].get("values"),
        "value": _single_value(summary, outcome, definition),
    }
    for key, value in recorded.items():
        stated = _stated(named[key])
        if canonical_json(value) != stated:
            yield f"its statement has other {key} than trial {trial}: {stated}"


def _single_value(summary: Summary, outcome: TrialResult, definition: Mapping[str, Any]) -> Any:
    """Return the value that a statement names; with replicates it is a mean, which new replicates change."""
    replicated = any(outcome in each.trials for each in summary.replicated)
    parameters = definition.get("internalParameters")
    named = parameters.get("value") if isinstance(parameters, Mapping) else None
    return outcome.metric(summary.metric.name) if replicated else named


def _stated(value: Any) -> str:
    """Return a value of a statement as text; of one that no record can have, its type."""
    try:
        return canonical_json(value)
    except ValueError:
        return f"a {type(value).__name__} that no record can have"


def _verified_winner(workspace: Workspace, commit: str, name: str, trial: str | None) -> _Winner:
    """Return the trial to promote, after recomputing the results of its sweep. Raises UsageError, RepositoryError."""
    sweep = catalog.choose_sweep(workspace.root, name, catalog.committed_sweeps(workspace.repository, commit))
    verification = verify(workspace, sweep, revision=commit)
    if not verification.is_good:
        (state,) = {str(one.state) for one in verification.sweeps}
        raise RepositoryError(
            f"results/{sweep} at {commit[:12]}: must be verified, got {state}",
            hint=f"`sweep verify {sweep} --at {commit[:12]}` says why",
        )
    summary = recorded_summary(workspace.repository, commit, sweep)
    outcome = summary.winner if trial is None else _chosen_trial(summary, trial)
    if outcome is None:
        raise RepositoryError(
            f"{sweep} has no best trial: {summary.reason}",
            hint="more replicates can separate the best two; --trial ID promotes one all the same",
        )
    record, value = outcome.record, outcome.metric(summary.metric.name)
    assert record is not None
    assert value is not None
    configuration = next((each for each in summary.replicated if outcome in each.trials), None)
    interval = configuration.interval if configuration else None
    lock = next(batch.lock for batch in summary.batches if batch.lock.name == outcome.batch)
    warnings = [*summary.warnings]
    if trial is not None and summary.winner is not None and summary.winner.trial != outcome.trial:
        warnings.append(f"trial {outcome.trial} is not the best: that is {summary.winner.trial}")
    elif trial is not None and summary.winner is None:
        warnings.append(f"{sweep} has no best trial: {summary.reason}")
    if interval is None:
        warnings.append("without replicates, its value cannot be separated from seed noise")
    promoted = PromotedTrial(
        sweep=sweep,
        trial=outcome.trial,
        commit=commit,
        inputs_digest=summary.inputs_digest,
        assignment=outcome.assignment,
        program=lock.program,
        seed=record.seed,
        metric=summary.metric,
        value=configuration.mean if configuration and configuration.mean is not None else value,
        interval=None if interval is None else (interval.low, interval.high),
        verdict=str(summary.verdict),
        started=record.started,
        finished=record.finished,
        artifacts=record.artifacts,
    )
    return _Winner(promoted, tuple(warnings))


def _chosen_trial(summary: Summary, trial: str) -> TrialResult:
    """Return the trial with an id or the beginning of one, which must have a result under the newest program."""
    wanted = trial.rpartition("/")[2]
    matches = [outcome for outcome in summary.outcomes if outcome.trial.startswith(wanted)]
    if len(matches) != 1:
        what = "begins several ids" if matches else "is no recorded trial"
        raise UsageError(
            f"{trial!r} {what} of {summary.sweep}", hint=f"`sweep results {summary.sweep}` lists ids"
        )
    (outcome,) = matches
    if outcome.status is not Status.OK or outcome.metric(summary.metric.name) is None:
        raise UsageError(
            f"trial {outcome.trial} cannot be promoted: its status is {outcome.status}",
            hint="choose a trial that is ok and has the objective",
        )
    if not summary.is_current(outcome):
        raise UsageError(
            f"trial {outcome.trial} cannot be promoted: it ran an earlier program",
            hint="promote it at the commit that recorded it, or run it again",
        )
    return outcome


def _repository_path(workspace: Workspace, file: str) -> str:
    path = PurePosixPath(file)
    if path.is_absolute():
        try:
            path = PurePosixPath(Path(file).relative_to(workspace.root).as_posix())
        except ValueError as error:
            raise UsageError(f"{file} is outside of the repository", hint="name a file of it") from error
    if ".." in path.parts:
        raise UsageError(f"{file} is outside of the repository", hint="name a file of it")
    return path.as_posix()


def _configuration(repository: Repository, commit: str, path: str) -> bytes:
    """Return a file to promote into. Raises UsageError if it, or what has its statement's name, is no plain file."""
    claim = f"{path}{SUFFIX}"
    entries = repository.files(commit, path, claim)
    if path not in entries:
        raise UsageError(f"{path} does not exist at {commit[:12]}", hint="commit it first")
    for place, entry in sorted(entries.items()):
        if place not in {path, claim} or entry.mode != FILE_MODE:
            raise UsageError(
                f"{place}: must be a plain file of mode {FILE_MODE}, or must not exist, at {commit[:12]}",
                hint=f"move what is there, or make it a file (`git update-index --chmod=-x`); {claim} is written, too",
            )
    return repository.blobs([entries[path].id])[entries[path].id]


def _with_values(
    content: bytes, path: str, trial: PromotedTrial, keys: Mapping[str, str]
) -> tuple[str, tuple[SetValue, ...], tuple[str, ...]]:
    """Return the file with the trial's values, what was set, and the parameters without a key. Raises UsageError."""
    suffix = PurePosixPath(path).suffix
    try:
        text = content.decode()
        data = read_values(text, suffix)
        unknown = sorted(keys.keys() - trial.assignment.keys())
        if unknown:
            raise UsageError(
                f"trial {trial.trial} has no parameter {unknown[0]!r}",
                hint=f"parameters: {', '.join(trial.assignment)}",
            )
        changes, missing = [], []
        for parameter, value in trial.assignment.items():
            key = _key_of(data, parameter, keys.get(parameter), path)
            if key is None:
                missing.append(parameter)
                continue
            changes.append(SetValue(parameter, ".".join(key), value_at(data, key), value))
            text = replace_value(text, suffix, key, value)
    except ValueError as error:
        raise UsageError(f"{path}: {error}", hint="correct the file, or choose another") from error
    except RecursionError as error:
        raise UsageError(f"{path}: has too many levels", hint="choose another file") from error
    if not changes:
        raise UsageError(
            f"{path} has no key for any parameter of {trial.name}",
            hint=f"name one: --key {next(iter(trial.assignment), 'NAME')}=KEY",
        )
    return text, tuple(changes), tuple(missing)


def _key_of(data: Mapping[str, Any], parameter: str, named: str | None, file: str) -> KeyPath | None:
    """Return the key of a parameter; None if the file has none. Raises UsageError if it has several."""
    if named is not None:
        path = tuple(named.split("."))
        try:
            value_at(data, path)
        except KeyError as error:
            raise UsageError(
                f"{file} has no key {named!r}", hint="name an existing key, with dots"
            ) from error
        return path
    paths = key_paths(data, parameter)
    if len(paths) > 1:
        listed = ", ".join(".".join(path) for path in paths)
        raise UsageError(
            f"{file}: {parameter} could be each of {listed}",
            hint=f"choose one: --key {parameter}={'.'.join(paths[0])}",
        )
    return paths[0] if paths else None


def _message(trial: PromotedTrial, path: str, changes: Iterable[SetValue]) -> str:
    # Names in the file are anybody's: a line break in one could begin a trailer.
    lines = [
        f"promote({trial.sweep}): {escape_line(path)} from trial {trial.trial}",
        *("", _result_text(trial), ""),
    ]
    lines += [
        f"- {escape_line(one.path)}: {canonical_json(one.before)} -> {canonical_json(one.after)}"
        for one in changes
    ]
    trailers = {
        "Sweep": trial.sweep,
        "Trial": trial.trial,
        "Results": trial.commit,
        "Inputs-Digest": trial.inputs_digest,
    }
    return "\n".join([*lines, "", *(f"{key}: {value}" for key, value in trailers.items())]) + "\n"


def _tag_message(trial: PromotedTrial, path: str) -> str:
    return f"{escape_line(path)} from {trial.name}\n\n{_result_text(trial)}\nInputs-Digest: {trial.inputs_digest}\n"


def _result_text(trial: PromotedTrial) -> str:
    text = f"{trial.metric.name} {trial.value!r}"
    if trial.interval is None:
        return f"{text}, one trial: seed noise is unknown"
    low, high = trial.interval
    return f"{text}, 95 % interval {low:.6g} to {high:.6g}"


def _refuse_existing(repository: Repository, reference: str, kind: str) -> None:
    if repository.commit(reference) is not None:
        name = reference.split("/", 2)[2]
        raise RepositoryError(f"{kind} {name} exists", hint=f"choose another with --{kind}, or delete it")


def _push(repository: Repository, remote: str, commit: str, branch: str, tag: str) -> None:
    """Push the branch and the tag, both or none. Raises RepositoryError if the remote has the branch already."""
    head = f"refs/heads/{branch}"
    references = [f"{commit}:{head}", *([f"refs/tags/{tag}"] if tag else [])]
    # An empty lease: the branch must not exist there.
    try:
        repository.run("push", "--porcelain", "--atomic", f"--force-with-lease={head}:", remote, *references)
    except RepositoryError as error:
        raise RepositoryError(
            f"{remote} did not accept branch {branch}{f' and tag {tag}' if tag else ''}: {error}",
            hint="if it has them already, choose others with --branch and --tag",
        ) from error
