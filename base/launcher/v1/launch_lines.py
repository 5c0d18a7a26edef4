"""Metrics in lines: of text, logs, JSON and CSV, and by the patterns of a sweep."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Any, Callable, Mapping

from launch_contract import AMOUNT
from launch_files import KIBIBYTE
from launch_json import LONGEST_MATCH, distinct, parse_object
from launch_metrics import NAME, Gathered, OtherNumber, whole_step

if TYPE_CHECKING:
    from launch_metrics import Report

MOST_GUESSES = 1000  # lines that are tried in another format
LONGEST_LINE = 64 * KIBIBYTE  # that is searched for a metric
DECIMAL = (
    r"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
    r"|[nN][aA][nN]|[iI][nN][fF](?:[iI][nN][iI][tT][yY])?)"
)
# Patterns that many trials do not need are texts, which `re` compiles at their first use: that saves 8 ms.
GROUPS = "'\u2019\u00a0\u2009\u202f"  # what people put between groups of digits, and no program in a list
METRIC_TEXT = (  # whatever Katib's default filter matches, but no parts of `1,5`, `1'234` or `0x1f`
    rf"(?<![\w./@|-])({NAME})\s*=\s*({DECIMAL})(?![{GROUPS}][0-9])"
    r"(?=\.?(?:[\s;%|)\]}\"'(\[\x1b]|[,:](?![0-9])|$))"
)
# Colours and other sequences of terminals, and hyperlinks: no part of a text.
TERMINAL_CODES = r"\x1b(?:\[[0-9:;<=>?]*[ -/]*[@-~]|[]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])"
# After a number it makes another of both: `1.2.3`, `1'234`, `1_000`, `0x10`, `1d-3`, `2^3`, `5k`, `2MB`.
MORE_OF_NUMBER = rf"\d|[._^\u00d7{GROUPS}]\d|[xXoObB][0-9a-fA-F]|[eEdD][+-]?[0-9]|[kKMGT]i?B?(?!\w)"
# The same before one, and a sign, but not that of `epoch-5`.
LESS_OF_NUMBER = (
    rf"\d(?:[.,_/^\u00d7{GROUPS}]|\.?[eEdD][+-]?)?$|(?<![0-9])0[xXoObB]$|(?<![\w.)\]])[-\u2212\u2013]$"
)
THOUSANDS = r"[+-]?[1-9][0-9]{0,2}(?:\.[0-9]{3})+"  # of `1.234,5`, if a comma and the rest follow
NO_DECIMAL = "which is no plain decimal number"


def number_or_text(text: str) -> Any:
    """Return the number that a text is, else the text."""
    if re.fullmatch(DECIMAL, text):
        return float(text)
    match = re.match(f"(?P<value>{DECIMAL})", text)
    return OtherNumber(text) if match and is_part_of(match) else text


def plain_text(line: bytes) -> str:
    """Return a line without the codes by which a terminal shows colours."""
    text = line.decode("utf-8", "replace")
    return re.sub(TERMINAL_CODES, "", text) if "\x1b" in text else text


def is_part_of(match: re.Match[str]) -> bool:
    """Return whether the value of a match is only a part of the number that a person would read there.

    What the pattern itself matches beside the value, its author has seen.
    """
    start, end = match.span("value")
    before = match.string[:start] if start == match.start() else ""
    after = match.string[end:LONGEST_MATCH] if end == match.end() else ""
    is_whole = match["value"].lstrip("+-").isdigit()
    return bool(
        re.match(MORE_OF_NUMBER, after)
        or (is_whole and re.match("[,/][0-9]", after))
        or (re.fullmatch(THOUSANDS, match["value"]) and re.match(r",[0-9]+(?![.0-9])", after))
        or re.search(LESS_OF_NUMBER, before)
    )


def text_members(line: str) -> dict[str, Any]:
    """Find every `name=value` of a line."""
    found: dict[str, Any] = {match[1]: float(match[2]) for match in re.finditer(METRIC_TEXT, line)}
    if line.count("=") > len(found):
        for name, text in re.findall(rf"(?<![\w./@|-])({NAME})\s*=\s*([0-9.+-][^ ]*)", line):
            if isinstance(number_or_text(text), OtherNumber):
                found.setdefault(name, OtherNumber(text))
    return found


def log_members(line: str) -> dict[str, Any]:
    """Split `key,value`. Raises ValueError."""
    key, comma, value = line.strip().rpartition(",")
    if not comma:
        raise ValueError("it has no comma between key and value")
    return {"_".join(key.split()): number_or_text(value.strip())}


def object_members(line: str) -> dict[str, Any]:
    """Read a line of JSON. Raises ValueError."""
    return parse_object(line.encode())


def csv_reader() -> Callable[[str], dict[str, Any]]:
    """Return a function that reads the rows of one CSV file, of which the first is the header."""
    import csv

    header: list[str] = []

    def members(line: str) -> dict[str, Any]:
        try:
            (cells,) = csv.reader([line.rstrip("\r").lstrip("\ufeff")], strict=True)
        except csv.Error as error:
            raise ValueError(str(error)) from error
        if not header:
            header.extend(name.strip() for name in cells)
            distinct([(name, None) for name in header if name])
            return {}
        if len(cells) != len(header):
            raise ValueError(f"it has {len(cells)} cells, and the header {len(header)}")
        return {name: number_or_text(cell.strip()) for name, cell in zip(header, cells) if cell.strip()}

    return members


def pattern_reader(metric: Mapping[str, Any]) -> Callable[[str], dict[str, Any]]:
    """Return a function that finds what the patterns match in a line."""
    patterns = [re.compile(pattern, re.ASCII) for pattern in metric["patterns"]]

    def members(line: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for piece in line.split("\r"):  # progress bars
            for pattern in patterns:
                for match in pattern.finditer(piece[:LONGEST_MATCH]):
                    groups = match.groupdict()
                    is_cut = match.end() == LONGEST_MATCH < len(piece)
                    name, value = groups.get("name") or metric["name"], number_or_text(groups["value"] or "")
                    if type(value) is float and not (is_cut or is_part_of(match)):
                        found[name] = value
                        if groups.get("step"):
                            found["step"] = number_or_text(groups["step"])
                    elif type(value) is not str:
                        found.setdefault(name, OtherNumber(groups["value"]))
        return found

    return members


LINES: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "jsonl": object_members,
    "text": text_members,
    "log": log_members,
}
SHOWN = {
    "jsonl": 'line {{"{}": NUMBER}}',
    "text": "line {}=NUMBER",
    "log": "line {},NUMBER",
    "csv": "number in a column {}",
    "regex": "match with a number {}",
    "tensorboard": "scalar {}",
}


def format_of(line: str, objective: str) -> str:
    """Return the format in which a line would have the objective; nothing if there is none."""
    for form, members in LINES.items():
        with contextlib.suppress(ValueError):
            if type(members(line).get(objective)) in AMOUNT:
                return form
    return ""


def near_miss(line: str, objective: str) -> str:
    """Return what a line says of the objective in another form, and how it could be read; or nothing."""
    name = re.escape(objective)
    found = re.search(rf"(?<![\w.-]){name}(?:\s*[:=]\s*|\s+)(?P<value>{DECIMAL})", line[:LONGEST_MATCH])
    if found is None:
        return ""
    if not is_part_of(found):
        return f"{found[0]!r:.100}, which metric.format: regex could find"
    seen = found[0] + line[found.end() : LONGEST_MATCH].split(" ", maxsplit=1)[0]
    return f"{seen!r:.100}, {NO_DECIMAL}"


def no_value(_step: int, _value: float) -> None:
    """Ignore a value of the objective: nothing follows it."""


class Stream:
    """Gathers what lines say. In a file every line must have the format; on stdout others may print, too."""

    def __init__(
        self,
        metric: Mapping[str, Any],
        *,
        strict: bool = False,
        on_value: Callable[[int, float], object] = no_value,
    ) -> None:
        self.objective, self.form = metric["name"], metric["format"]
        self.strict = strict and self.form not in ("text", "regex")
        self.rest, self.number, self.guesses, self.other, self.near = b"", 0, 0, "", ""
        self.gathered = Gathered(metric, on_value)
        if self.form == "csv":
            self.members = csv_reader()
        elif self.form == "regex":
            self.members = pattern_reader(metric)
        else:
            self.members = LINES[self.form]

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes. Raises ValueError if a file has a line of another format."""
        lines = (self.rest + chunk).split(b"\n")
        # A line that is too long already stays so, and costs no memory.
        self.rest = lines.pop()[: LONGEST_LINE + 1]
        for line in lines:
            self.take(line)

    def take(self, line: bytes) -> None:
        """Take a complete line."""
        self.number += 1
        if not line or line.isspace():
            return
        try:
            if len(line) > LONGEST_LINE:
                raise ValueError("it is longer than 64 KiB")
            text = line.decode("utf-8", "strict") if self.strict else plain_text(line)
            members = self.members(text)
        except ValueError as error:
            self.guess(line)
            if self.strict:
                raise ValueError(f"line {self.number}: {error}") from error
        else:
            if type(members.get(self.objective)) not in AMOUNT:
                self.guess(line)
            step = members.pop("step", None) if self.has_step(members) else None
            self.gathered.add(members, step, self.keeps)

    def guess(self, line: bytes) -> None:
        """Remember the other format that a line has."""
        if not self.other and self.guesses < MOST_GUESSES and len(line) <= LONGEST_LINE:
            self.guesses += 1
            text = plain_text(line)
            form = format_of(text, self.objective)
            self.other = "" if form == self.form else form
            self.near = self.near or near_miss(text, self.objective)

    def keeps(self, name: str) -> bool:
        """Return whether what is not a number is a detail; commas make what others print look like a log."""
        return self.strict or self.form == "jsonl" or name == self.objective

    def has_step(self, members: Mapping[str, Any]) -> bool:
        """Return whether a line has the step of its numbers; a step alone is a number like others."""
        has_one = whole_step(members.get("step")) is not None and "step" not in self.gathered.wanted
        return has_one and (self.form in ("jsonl", "csv") or len(members) > 1)

    def finish(self) -> None:
        """Take what follows the last line end. Raises ValueError like `feed`."""
        self.take(self.rest)

    def report(self, place: str, other: str) -> Report:
        """Return what the lines say."""
        missing = f"there is no {SHOWN[self.form].format(self.objective)} {place}"
        if self.near and (self.near.endswith(NO_DECIMAL) or self.form == "text"):
            missing += f": it printed {self.near}"
        elif self.objective in self.gathered.details:
            missing += f", and {self.gathered.details[self.objective]!r:.100} is no number"
        elif self.gathered.metrics:
            missing += f"; its numbers: {', '.join(sorted(self.gathered.metrics)[:10])}"
        return self.gathered.report(missing + would_find(other), has_curves=self.form != "log")


def would_find(form: str) -> str:
    """Name the format with which the objective would be found."""
    return f"; with metric.format: {form} it would be found" if form else ""
