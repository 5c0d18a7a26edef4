"""The sweep as a whole: its blocks, its command, how it runs."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from generator.problems import NOWHERE, Place, Problem, Severity
from generator.reader import Path
from generator.spec.building import searching
from generator.spec.building.domains import value
from generator.spec.building.running import ran
from generator.spec.building.space import space
from generator.spec.draft import Draft
from generator.spec.rules.methods import ADAPTIVE
from generator.spec.rules.sections import Section, is_shuffled, sections
from generator.structs.adaptive import Search
from generator.structs.beside import Retry, Script
from generator.structs.command import DEFAULT_COMMAND, PROGRAM
from generator.structs.record import Status
from generator.structs.sweep import (
    Block,
    Budget,
    Draw,
    Grid,
    Listing,
    Run,
    Sampler,
    Sweep,
)
from generator.structs.values import Value, bytes_digest

SCRIPT = re.compile(r"(?:\w[\w.-]*/)*\w[\w.-]*\.[A-Za-z]\w*", re.ASCII)
"""Of a command's elements those that end like a file; macros and options are none."""
PROGRAMS = frozenset({"R", "bash", "jl", "js", "lua", "pl", "py", "r", "rb", "sh"})
"""What a file ends in that is started rather than read."""


def sweep(draft: Draft, warnings: tuple[Problem, ...] = ()) -> Sweep:
    """Build the sweep of a draft without problems."""
    document, data = draft.document, draft.document.data
    blocks = tuple(_block(draft, section) for section in sections(draft))
    run = _all_at_once(ran(data.get("run", {}), draft.settings), draft, blocks)
    metrics = searching.metrics(data)
    return Sweep(
        name=data["name"],
        description=data.get("description", ""),
        metric=metrics[0],
        blocks=blocks,
        command=_command(data, run),
        run=run,
        path=document.file,
        digest=_digest(draft),
        replicates=int(data.get("replicates", 1)),
        budget=_budget(draft),
        cancel=tuple(data.get("cancel", ())),
        retry=tuple(map(_retry, data.get("retry", ()))),
        limits=draft.settings.limits,
        pool=draft.settings.pools.get(run.pool or ""),
        pool_place=_pool_place(draft),
        shape_place=draft.place(("run", "shape")) if run.shape else NOWHERE,
        code_place=_code_place(draft),
        scripts=tuple(_scripts(draft, run)),
        warnings=warnings,
        other_metrics=metrics[1:],
        early_stop=searching.early_stop(data.get("early_terminate")),
    )


def _all_at_once(run: Run, draft: Draft, blocks: tuple[Block, ...]) -> Run:
    """Let a round whose trials are each a Job start as one, where nothing else is said."""
    match blocks:
        case (Search() as found,) if found.method.has_parents and "parallelism" not in draft.names("run"):
            return replace(run, parallelism=found.largest_round)
        case _:
            return run


def _digest(draft: Draft) -> str:
    """Digest the text, so that a checkout with CRLF line ends gives the same, and the files beside it."""
    parts = [draft.document.text, *(table.text for table in draft.tables.values())]
    # No text holds NUL, so nothing can move from one part to the next unseen.
    return bytes_digest("\0".join(parts).encode())


def _command(data: Mapping[str, Any], run: Run) -> tuple[str, ...]:
    # A trial starts beside the folder of the code, as in the repository.
    program = f"{run.code_path}/{data.get('program', '')}"
    elements = data.get("command", DEFAULT_COMMAND)
    return tuple(element.replace(PROGRAM, program) for element in elements)


def _code_place(draft: Draft) -> Place:
    if draft.get("run", "code", "path", kind=str) is not None:
        return draft.place(("run", "code", "path"))
    return draft.place(("program" if "program" in draft.names() else "command",), at_key=True)


def _scripts(draft: Draft, run: Run) -> Iterator[Script]:
    """Find the files of the code that a trial will start or may read."""
    program, folder = draft.get("program", kind=str), f"{run.code_path}/"
    if program is not None:
        yield Script(program, draft.place(("program",)), Severity.ERROR)
    starts = program is not None
    for path, text in draft.texts("command"):
        inside = text.removeprefix(folder)
        if inside != text:
            starts = True
            if SCRIPT.fullmatch(inside):
                yield Script(inside, draft.place(path), Severity.WARNING)
        elif not starts and SCRIPT.fullmatch(text) and text.rpartition(".")[2] in PROGRAMS:
            starts = True  # what comes after the program are its arguments
            yield Script(text, draft.place(path), Severity.WARNING, is_inside=False)


def _block(draft: Draft, section: Section) -> Block:
    found, place = space(draft, section), _place(draft, section.path)
    seed = _whole(draft, (*section.path, "seed"))
    seed = _whole(draft, ("seed",)) if seed is None else seed
    cap = _whole(draft, (*section.path, "run_cap"))
    match section.method:
        case "grid":
            return Grid(found, cap, seed if is_shuffled(draft, section) else None, place)
        case "list":
            return Listing(found, _assignments(draft, section.path), place)
        case method if method in ADAPTIVE:
            assert seed is not None
            return replace(searching.search(draft.document.data, found, seed), cap=cap, place=place)
        case method:
            assert seed is not None
            assert cap is not None
            return Draw(Sampler(method or ""), found, seed, cap, place)


def _place(draft: Draft, path: Path) -> Place:
    """Place what is wrong with a search as a whole: at its block, else at what it searches."""
    if path:
        return draft.place(path)
    keys = [key for key in ("parameters", "assignments", "file") if key in draft.names()]
    return draft.place((keys[0],), at_key=True)


def _whole(draft: Draft, path: Path) -> int | None:
    number = draft.number(*path)
    return None if number is None else int(number)


def _assignments(draft: Draft, path: Path) -> tuple[Mapping[str, Value], ...]:
    if path in draft.tables:
        return draft.tables[path].rows
    return tuple(
        MappingProxyType({name: value(item) for name, item in written.items()})
        for _, written in draft.items(*path, "assignments")
    )


def _budget(draft: Draft) -> Budget:
    most, hours = _whole(draft, ("budget", "max_trials")), draft.number("budget", "max_gpu_hours")
    written = draft.names("budget")
    trials_place, hours_place = (
        draft.place(("budget", key), at_key=True) if key in written else NOWHERE
        for key in ("max_trials", "max_gpu_hours")
    )
    return Budget(most, None if hours is None else float(hours), trials_place, hours_place)


def _pool_place(draft: Draft) -> Place:
    keys = [key for key in ("parallelism", "nodes", "pool") if key in draft.names("run")]
    return draft.place(("run", *keys[:1])) if keys else NOWHERE


def _retry(written: str | Mapping[str, Any]) -> Retry:
    match written:
        case str():
            return Retry(written)
        case {"batch": batch, "only": only}:
            return Retry(batch, frozenset(map(Status, only)))
        case _:
            return Retry(written["batch"])
