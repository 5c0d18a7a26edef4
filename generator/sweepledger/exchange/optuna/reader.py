"""Optuna's storage of a study, a journal or an SQLite file, as the spec of its search space."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from sweepledger.exchange.conversion import Imported, Loss, LossList
from sweepledger.exchange.fields import Fields, exact_number, json_text, no_values, show_value, spec_number
from sweepledger.exchange.search_frame import ForeignSearch, parameter_names, run_keys, search_spec
from sweepledger.exchange.spec_parts import CODE_DIR, PROGRAM, range_keys
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.structs.names import suggest_sweep_name
from sweepledger.structs.values import canonical_json

TOOL = "Optuna"
SQLITE = b"SQLite format 3\0"
VERSIONS = slice(18, 20)
"""Bytes of an SQLite file that say whether its last writes may be in another file: 1 no, 2 yes."""
ALONE = b"\1\1"
MOST_SHOWN = 5
"""Studies that a refusal names."""
MAX_BYTES = 64 * 1024 * 1024
MAX_TEXT = 1024 * 1024
"""Bytes of a name or a distribution, which a view can make as long as SQLite allows."""
MAX_STEPS = 50_000_000
"""Virtual instructions of SQLite that reading a file may take; a view in it could otherwise run for ever."""
STEPS_PER_CHECK = 100_000
DIRECTION = "SELECT direction FROM studies WHERE study_id = ?"
"""Before Optuna 2.4, a study had one objective."""
DIRECTIONS_BY_OBJECTIVE = "SELECT direction FROM study_directions WHERE study_id = ? ORDER BY objective"
DIRECTIONS = {1: "minimize", 2: "maximize", "MINIMIZE": "minimize", "MAXIMIZE": "maximize"}


@dataclass(slots=True)
class StoredStudy:
    """A study with the distributions that its trials used."""

    name: str
    directions: list[str]
    trials: int = 0
    distributions: dict[str, list[str]] = field(default_factory=dict)
    """Distinct distributions of each parameter, as JSON, in the order of the trials."""
    uses: dict[str, int] = field(default_factory=dict)
    """Number of trials that have each parameter."""

    def add(self, parameter: str, distribution: str) -> None:
        """Add the parameter of a trial."""
        known = self.distributions.setdefault(parameter, [])
        if distribution not in known:
            known.append(distribution)
        self.uses[parameter] = self.uses.get(parameter, 0) + 1


def read(content: bytes, *, name: str) -> Imported:
    """Return a spec for the only study of a storage, or the one of that name. Raises ForeignError."""
    if len(content) > MAX_BYTES:
        raise ForeignError(f"must be at most {MAX_BYTES} bytes, got {len(content)}")
    losses = LossList()
    stored = _sqlite_studies if content.startswith(SQLITE) else _journal_studies
    studies = stored(content, losses)
    study = _chosen(studies, name)
    names = parameter_names(study.distributions, losses)
    parameters = {names[foreign]: _domain(foreign, study, losses) for foreign in study.distributions}
    if not parameters:
        raise ForeignError(
            f"the study {study.name!r} has no trials with parameters, and Optuna stores spaces only there",
            hint="run one trial first",
        )
    losses.add("sampler", "is not in a storage; written as tpe, Optuna's default")
    losses += [
        Loss(f"direction {place}: {goal}", "one objective is written; add `other_metrics` for several")
        for place, goal in enumerate(study.directions[1:], start=2)
    ]
    goal = study.directions[0] if study.directions else None
    search = ForeignSearch(TOOL, "tpe", parameters, None, goal, study.trials or None)
    spec, more = search_spec(search, suggest_sweep_name(study.name) or name)
    losses += [
        Loss(f"{study.trials} trials", "their results stay in the storage"),
        Loss("program", f"is not in a storage; written as {CODE_DIR}/{PROGRAM}: write your program"),
    ]
    spec |= {"program": PROGRAM} | run_keys(search, {"code": {"path": CODE_DIR}})
    return Imported(spec, (*losses, *more))


def _chosen(studies: list[StoredStudy], name: str) -> StoredStudy:
    """Return the study of a name, which may be as a sweep's is. Raises ForeignError."""
    named = [study for study in studies if study.name == name]
    chosen = named or [study for study in studies if suggest_sweep_name(study.name) == name] or studies
    if not chosen:
        raise ForeignError("must have one study, got none", hint="a storage has one when a trial has run")
    if len(chosen) > 1:
        known = [show_value(study.name) for study in studies]
        first = suggest_sweep_name(studies[0].name) or "NAME"
        raise ForeignError(
            f"must have one study, got {', '.join(known[:MOST_SHOWN])}{' and more' if known[MOST_SHOWN:] else ''}",
            hint=f"choose one by its name in the form of a sweep's, for example `--name {first}`",
        )
    return chosen[0]


def _journal_studies(content: bytes, losses: LossList) -> list[StoredStudy]:
    studies: list[StoredStudy | None] = []
    owners: list[int] = []
    for number, operation in _operations(content, losses):
        match operation:
            # Operations of a journal: 0 creates a study, 1 deletes one, 4 creates a trial, 5 sets a parameter.
            case {"op_code": 0, "study_name": str(name)}:
                # Every process that opens a study writes this line; Optuna ignores all but the first.
                if not any(study is not None and study.name == name for study in studies):
                    studies.append(StoredStudy(name, _directions(operation.get("directions"))))
            case {"op_code": 1, "study_id": int(study)} if 0 <= study < len(studies):
                studies[study] = None
            case {"op_code": 4, "study_id": int(owner)} if _at(studies, owner) is not None:
                owners.append(owner)
                _new_trial(operation, _at(studies, owner))
            case {
                "op_code": 5,
                "trial_id": int(trial),
                "param_name": str(parameter),
                "distribution": str(text),
            }:
                study_of = _at(studies, owners[trial]) if 0 <= trial < len(owners) else None
                if study_of is not None:
                    study_of.add(parameter, text)
            case {"op_code": int()}:
                pass
            case _:
                raise ForeignError("must be a line of Optuna's journal, with an op_code", line=number)
    return [study for study in studies if study is not None]


def _operations(content: bytes, losses: LossList) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(content.splitlines(keepends=True), start=1):
        if not line.strip():
            continue
        try:
            yield number, _object(line, number)
        except ForeignError:
            if number == 1 or line.endswith(b"\n"):
                raise
            # Optuna ignores it, too: its writer was interrupted, or has not ended.
            losses.add(f"line {number}", "is written in part; left out")


def _at(studies: list[StoredStudy | None], number: int) -> StoredStudy | None:
    return studies[number] if 0 <= number < len(studies) else None


def _new_trial(operation: dict[str, Any], study: StoredStudy | None) -> None:
    """Count a trial, which has its distributions already if it was added as a whole."""
    if study is None:
        return
    study.trials += 1
    distributions = operation.get("distributions")
    for parameter, text in distributions.items() if isinstance(distributions, dict) else ():
        if isinstance(text, str):
            study.add(str(parameter), text)


def _directions(values: object) -> list[str]:
    known = values if isinstance(values, list) else []
    return [DIRECTIONS[value] for value in known if isinstance(value, int | str) and value in DIRECTIONS]


def _object(line: bytes, number: int) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ForeignError("must be a line of JSON, as in Optuna's journal", line=number) from error
    if not isinstance(value, dict):
        raise ForeignError("must be a JSON object, as in Optuna's journal", line=number)
    return value


def _sqlite_studies(content: bytes, losses: LossList) -> list[StoredStudy]:
    """Return the studies of an SQLite file, which is read in memory and never executed as a program."""
    if content[VERSIONS] == b"\2\2":
        # A database in memory has no other file, and SQLite does not open one that says it has.
        content = content[: VERSIONS.start] + ALONE + content[VERSIONS.stop :]
        losses.add("write-ahead log", "trials that are still in the file beside it, NAME-wal, are not read")
    try:
        with closing(sqlite3.connect(":memory:")) as database:
            database.execute("PRAGMA trusted_schema = OFF")
            database.deserialize(content)
            database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_TEXT)
            checks = iter(range(MAX_STEPS // STEPS_PER_CHECK))
            database.set_progress_handler(lambda: int(next(checks, None) is None), STEPS_PER_CHECK)
            return list(_rows(database))
    except (sqlite3.Error, OverflowError, MemoryError, UnicodeDecodeError) as error:
        raise ForeignError(
            f"must be Optuna's SQLite storage: {error}",
            hint="other programs have SQLite files, too: name the one in your study's storage URL",
        ) from error


def _rows(database: sqlite3.Connection) -> Iterator[StoredStudy]:
    names = database.execute("SELECT study_id, study_name FROM studies ORDER BY study_id").fetchall()
    columns = {row[1] for row in database.execute("PRAGMA table_info(studies)")}
    is_older = "direction" in columns
    for study_id, study_name in names:
        directions = database.execute(DIRECTION if is_older else DIRECTIONS_BY_OBJECTIVE, (study_id,))
        study = StoredStudy(str(study_name), _directions([row[0] for row in directions]))
        (study.trials,) = database.execute(
            "SELECT count(*) FROM trials WHERE study_id = ?", (study_id,)
        ).fetchone()
        parameters = database.execute(
            "SELECT param_name, distribution_json FROM trial_params JOIN trials USING (trial_id) "
            "WHERE study_id = ? ORDER BY trial_id, param_id",
            (study_id,),
        )
        for parameter, text in parameters:
            study.add(str(parameter), str(text))
        yield study


def _domain(parameter: str, study: StoredStudy, losses: LossList) -> dict[str, Any]:
    texts = study.distributions[parameter]
    if len(texts) > 1:
        why = f"has {len(texts)} distributions in the trials; the last is written"
        losses.add(f"parameter {parameter}", why)
    if study.uses[parameter] < study.trials:
        why = f"only {study.uses[parameter]} of {study.trials} trials have it; write `when` if it is conditional"
        losses.add(f"parameter {parameter}", why)
    try:
        data = json.loads(texts[-1])
    except (ValueError, RecursionError) as error:
        raise ForeignError(f"the distribution of {parameter} must be JSON") from error
    distribution = Fields.of(data, f"distribution of {parameter}")
    return distribution_domain(str(distribution.take("name")), distribution.inner("attributes"), losses)


def distribution_domain(kind: str, keys: Fields, losses: LossList) -> dict[str, Any]:
    """Return the keys of a parameter for a distribution of any version of Optuna. Raises ForeignError."""
    if kind == "CategoricalDistribution":
        return _choice(keys, losses)
    whole = kind.startswith("Int")
    known = ("FloatDistribution", "IntDistribution", "UniformDistribution", "LogUniformDistribution")
    older = ("DiscreteUniformDistribution", "IntUniformDistribution", "IntLogUniformDistribution")
    if kind not in (*known, *older):
        raise ForeignError(f"{keys.path} must be a distribution of Optuna, got {show_value(kind)}")
    low, high = (exact_number(keys.take(key), keys.at(key)) for key in ("low", "high"))
    step = keys.take("step") if keys.data.get("step") is not None else keys.take("q")
    ends = spec_number(low), spec_number(high)
    if low == high:
        return {"value": ends[0]}
    is_log = keys.take("log") is True or "LogUniform" in kind
    if not is_log and step is not None and not (whole and step == 1):
        return {"min": ends[0], "max": ends[1], "step": spec_number(exact_number(step, keys.at("step")))}
    return range_keys(*ends, is_log=is_log, is_whole=whole)


def _choice(keys: Fields, losses: LossList) -> dict[str, Any]:
    values: list[Any] = []
    for item in keys.items("choices"):
        if isinstance(item, dict) or (
            isinstance(item, list) and any(isinstance(part, dict | list) for part in item)
        ):
            text = json_text(item)
            losses.add(f"{keys.at('choices')}: {show_value(text)}", "written as JSON text")
            item = text  # noqa: PLW2901 - the value to be written
        values.append(item)
    try:
        # JSON tells 1 from true, which Python's equality does not.
        values = list({canonical_json(value): value for value in values}.values())
    except ValueError as error:  # JSON's 1e999 is infinite
        raise ForeignError(f"{keys.at('choices')}: {error}") from error
    if not values:
        raise no_values(keys.at("choices"))
    return {"values": values} if len(values) > 1 else {"value": values[0]}
