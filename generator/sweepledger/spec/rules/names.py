"""Names: of a sweep, its file, its parameters and its batches, and of the entries of the settings."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import PurePosixPath

from sweepledger.formats.hyperparams_csv import REPLICATE_COLUMN, TRIAL_COLUMN
from sweepledger.model.keys import attributes_of, keys_of
from sweepledger.problems import Problem
from sweepledger.reader import DocumentPath, safe_repr
from sweepledger.spec.draft import Draft
from sweepledger.spec.suggestions import did_you_mean
from sweepledger.structs import names as naming
from sweepledger.structs.settings import API_SERVER_EGRESS, Settings

TITLES = {
    "clusters": "a cluster",
    "datasets": "a dataset",
    "egress": "an egress",
    "images": "an image",
    "pools": "a pool",
    "secrets": "a secret",
}
"""What an entry of these keys of the settings is called."""


def entry_name(draft: Draft, place: DocumentPath, key: str, *, at_key: bool = False) -> Iterator[Problem]:
    """A name in a spec or in the settings is an entry of the settings; only the collector uses the API server."""
    name = place[-1] if at_key else draft.text(*place)
    reserved = {API_SERVER_EGRESS} if key == "egress" else set[str]()
    stated = keys_of(Settings)[key]
    (group,) = (each.name for each, of in attributes_of(Settings) if of.kind is stated.owner)
    # The names in the mapping, or the texts in the list, at the key; in settings, those that are checked.
    entries = getattr(getattr(draft.settings, group), stated.attribute)
    known = {*draft.names(key), *entries} - reserved
    if name is not None and name not in known:
        hint = did_you_mean(name, known) or f"the settings have none: add it to {key} in sweepledger.yaml"
        message = f"must be {TITLES.get(key, f'one of {key}')} of the settings, got {safe_repr(name)}"
        yield draft.problem(place, message, "not-in-settings", hint, at_key=at_key)


def sweep_name(draft: Draft) -> Iterator[Problem]:
    """A sweep's name is the name of its file and a short DNS label, because every object's name begins with it."""
    stem = PurePosixPath(draft.document.file).stem
    for place, name in draft.texts("name"):
        if name in naming.RESERVED_SWEEP_NAMES:
            hint: str | None = f"reserved: {', '.join(sorted(naming.RESERVED_SWEEP_NAMES))}"
            yield draft.wrong(place, "must not be a reserved name", "sweep-name", hint)
        elif not naming.SWEEP_NAME.fullmatch(name):
            message = "must be lower-case letters, digits and inner hyphens, begin with a letter "
            message += f"and have at most {naming.MAX_SWEEP_NAME_LENGTH} characters"
            suggestion = naming.suggest_sweep_name(name)
            hint = f"for example {suggestion}" if suggestion else None
            yield draft.wrong(place, message, "sweep-name", hint)
        if name != stem:
            hint = "rename the file or the sweep"
            yield draft.wrong(place, f"must be the file's name {stem!r}", "name-mismatch", hint)


def parameter_names(draft: Draft) -> Iterator[Problem]:
    """A parameter's name is valid as an option, CSV column and JSON key, and for a variable that no other has."""
    first: dict[str, tuple[str, DocumentPath]] = {}
    for name, place in _name_paths(draft):
        problem: Callable[..., Problem] = partial(draft.at_key, place)
        if place == COLUMN and draft.table is not None:
            problem = partial(draft.table.problem, HEADER_ROW, name)
        if place not in draft.document.unread and (error := parameter_name_error(name)):
            yield problem(error, code="parameter-name")
        variable = naming.environment_name(name)
        other, written_at = first.setdefault(variable, (name, place))
        if other == name and (place == written_at or ("assignments" in place and written_at[0] != "derived")):
            continue
        line = draft.document.place(written_at).key.line
        rule, got = f"must differ from the parameter at line {line}", repr(name)
        hint = "a derived value needs a different name"
        if other != name:
            rule = f"must differ from {other!r} (line {line}) in more than case and punctuation"
            hint = f"both would be the variable {variable}"
        elif place[0] == "parameters":  # it is written once, either nested or dotted
            got, hint = f"{got} again", "nested parameters have dotted names: delete one of the two"
        yield problem(f"{rule}, got {got}", code="parameter-collision", hint=hint)


HEADER_ROW = -1
"""The row of a file's header."""
COLUMN: DocumentPath = ("assignments",)
"""The path of names in a file of configurations."""


def parameter_nesting(draft: Draft) -> Iterator[Problem]:
    """A parameter with a value contains no other parameters: `a` excludes `a.b`."""
    places = {name: place for name, place in _name_paths(draft) if place != COLUMN}
    for name, place in places.items():
        for holder in {name[:end] for end, letter in enumerate(name) if letter == "."} & places.keys():
            line = draft.document.place(places[holder]).key.line
            message = f"must not be inside {holder!r} (line {line}), which is a value, got {name!r}"
            hint = f"in nested form {holder} would be both a value and a mapping; rename one"
            yield draft.at_key(place, message, "parameter-nesting", hint)


def _name_paths(draft: Draft) -> list[tuple[str, DocumentPath]]:
    """Return every name of a search with the path of its key; a listed name with its first path, or with COLUMN."""
    parameters = [(leaf.name, leaf.path) for leaf in draft.leaves]
    listed = [(name, places[0]) for name, places in draft.listed.items()]
    resource = [(name, place) for place, name in draft.texts("resource", "parameter")]
    derived = [(name, ("derived", name)) for name in draft.names("derived")]
    columns = [(name, COLUMN) for name in (draft.table.names if draft.table else ())]
    return [*parameters, *listed, *resource, *derived, *columns]


def parameter_name_error(name: str) -> str | None:
    """Return the error of a single name, or None."""
    if not naming.PARAMETER_NAME.fullmatch(name):
        rule = "must begin with a letter and have at most 63 letters, digits and any of _ . -"
        return f"{rule}, got {safe_repr(name)}"
    if name in {TRIAL_COLUMN, REPLICATE_COLUMN}:
        return f"must not be {name!r}, a column that every table may have"
    if any(not part or part.startswith("__") for part in name.split(".")):
        return f"must have a name on both sides of a dot and none that begins with __, got {name!r}"
    return None


def batch_names(draft: Draft) -> Iterator[Problem]:
    """`cancel`, `retry` and `running` name batches of this sweep, each once."""
    sweep = draft.text("name")
    for key in ("cancel", "retry", "running"):
        seen = set[str]()
        keys = (((key, name), name) for name in draft.names(key))  # a mapping has its names as keys
        for place, name in (*keys, *named_items(draft, key, "batch")):
            parts = naming.split_batch_name(name)
            if sweep is not None and (parts is None or parts[0] != sweep):
                message = f"must be a batch of this sweep, got {safe_repr(name)}"
                hint = f"such as {sweep}-b1-3f9a1c2e; `sweep status` lists them"
                yield draft.problem(place, message, "batch-name", hint)
            elif name in seen:
                message = f"must be named once, got {safe_repr(name)} again"
                yield draft.problem(place, message, "batch-name", "delete one of them")
            seen.add(name)


def named_items(draft: Draft, key: str, inner: str) -> Iterator[tuple[DocumentPath, str]]:
    """Yield the texts in a list, and the texts at a key of the mappings in it, with their paths."""
    for place, item in draft.items(key):
        yield from draft.texts(*place) if isinstance(item, str) else draft.texts(*place, inner)
