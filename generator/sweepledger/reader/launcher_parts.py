"""What the launcher and the package do alike, copied from the former by `python -m tools.launcher_parts`."""

from __future__ import annotations

from typing import Any
from typing import Callable
from typing import Iterator
from typing import Mapping
from typing import NamedTuple
import contextlib
import json
import math
import re

KIBIBYTE = 1024


class Refused(Exception):
    """The sweep itself is wrong: no attempt at any of its trials can succeed."""

    reason = "bad-sweep"
SPREAD: Mapping[str, Callable[[str, Any], list[str]]] = {
    "args": lambda name, value: [f"--{name}={value}"],
    "args_no_hyphens": lambda name, value: [f"{name}={value}"],
    "args_no_boolean_flags": lambda name, value: switch(name, value, []),
    "args_single_hyphen": lambda name, value: [f"-{name}", *words_of(value)],
    "args_spaced": lambda name, value: [f"--{name}", *words_of(value)],
    "args_switches": lambda name, value: switch(name, value, [f"--no-{name}"]),
}


def spread(macro: str, names: str | None, values: Mapping[str, Any], named: list[str | None]) -> list[str]:
    """Return the arguments of a macro: of the parameters that it names, else of all that no macro names."""
    chosen = names.split(",") if names else values.keys() - set(",".join(filter(None, named)).split(","))
    return [word for name in values if name in chosen for word in SPREAD[macro](name, values[name])]


def switch(name: str, value: Any, off: list[str]) -> list[str]:
    """Return the arguments of a value; those of false are `off`."""
    return [f"--{name}={value}"] if not isinstance(value, bool) else [f"--{name}"] if value else off


def words_of(value: Any) -> list[str]:
    """Return a value as arguments: each entry of a list is one."""
    return list(map(str, value if isinstance(value, list) else [value]))
DEEPEST = 16  # nested containers in such JSON
LONGEST_INTEGER = 300  # digits: each such number is a finite float
LONGEST_MATCH = 1000  # characters of a line that patterns are applied to


def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object whose names are all different. Raises ValueError."""
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("an object has the same name twice")
    return made


def whole(digits: str) -> int:
    """Read an integer of a length that every reader accepts. Raises ValueError."""
    if len(digits) > LONGEST_INTEGER:
        raise ValueError(f"a whole number has more than {LONGEST_INTEGER} digits")
    return int(digits)


def depth(value: Any) -> int:
    """Count nested containers."""
    if isinstance(value, (dict, list)):
        return 1 + max(map(depth, value.values() if isinstance(value, dict) else value), default=0)
    return 0


def parse_object(content: bytes) -> dict[str, Any]:
    """Read one JSON object. Raises ValueError with the reason."""
    try:
        data = json.loads(content.decode(), object_pairs_hook=distinct, parse_int=whole)
        levels = depth(data)
    except RecursionError:
        levels = DEEPEST + 1
    if levels > DEEPEST:
        raise ValueError(f"it is nested deeper than {DEEPEST}")
    if not isinstance(data, dict):
        raise ValueError("it is not a JSON object")
    return data


def dump(value: Any) -> str:
    """Write a value as one line of canonical JSON."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False) + "\n"
TEXT, AMOUNT = (str,), (int, float)
MOST_WAYS = 10 * LONGEST_MATCH**2  # of a pattern to divide a line: two long repeats and few short ones


def count_ways(sequence: Any, after: list[int], *, is_repeated: bool = False) -> list[int]:
    """Return, for each character that may come next, in how many ways a sequence can be tried until it fails.

    `after` has the same for what follows the sequence; zeros if nothing does, because then nothing can fail.
    The numbers are upper bounds. Raises Refused for what could be tried too often. Specs are checked for the
    same patterns.
    """
    ways = after
    for kind, argument in reversed(list(sequence)):
        name = str(kind)
        if name.startswith("GROUPREF") or (is_repeated and (name == "BRANCH" or name.endswith("REPEAT"))):
            raise Refused(
                "launch.json: metric: a pattern must not refer to its groups, "
                "nor repeat what has repeats or alternatives"
            )
        if name.endswith("REPEAT"):
            ways = count_repeat(argument, ways)
        elif name == "BRANCH":
            ways = [sum(counts) for counts in zip(*(count_ways(each, ways) for each in argument[1]))]
        elif name in ("SUBPATTERN", "ATOMIC_GROUP"):
            body = argument[-1] if name == "SUBPATTERN" else argument
            ways = count_ways(body, ways, is_repeated=is_repeated)
        elif name.startswith("ASSERT"):
            inside = max(count_ways(argument[1], [0] * len(ALL), is_repeated=is_repeated))
            ways = [1 + inside + count for count in ways]
        elif name == "AT":
            ways = [max(1, count) for count in ways]
        else:
            most, matched = max(1, *ways), characters(name, argument)
            ways = [most if code in matched else 0 for code in range(len(ALL))]
        if max(ways) > MOST_WAYS:
            raise Refused(
                "launch.json: metric: a pattern could take too long, because it can divide a line in more "
                f"than {MOST_WAYS} ways"
            )
    return ways


def count_repeat(argument: Any, after: list[int]) -> list[int]:
    """Return the ways of a repeat: wherever it may stop, what follows is tried at a character of its own."""
    low, high, body = int(argument[0]), int(argument[1]), argument[2]
    if high <= 1:
        once = count_ways(body, after)
        return once if low else [own + without for own, without in zip(once, after)]
    begins = count_ways(body, [1] * len(ALL), is_repeated=True)
    stops = min(high, LONGEST_MATCH) - min(low, LONGEST_MATCH)
    early = max((count for begin, count in zip(begins, after) if begin), default=0)
    ways = max(1, stops * early + max(after))
    return [ways if begin else 0 if low else count for begin, count in zip(begins, after)]
CATEGORIES = {
    "DIGIT": r"\d",
    "SPACE": r"\s",
    "WORD": r"\w",
    "NOT_DIGIT": r"\D",
    "NOT_SPACE": r"\S",
    "NOT_WORD": r"\W",
}
OTHERS = 128  # stands for all characters beyond ASCII
ALL = frozenset(range(OTHERS + 1))


def characters(name: str, argument: Any) -> frozenset[int]:
    """Return the ASCII characters, or OTHERS, that one part of a parsed pattern matches, in either case."""
    if name == "LITERAL":
        letter = chr(argument)
        return frozenset(min(ord(each), OTHERS) for each in (letter, letter.lower()[:1], letter.upper()[:1]))
    if name == "RANGE":
        return frozenset().union(
            *(
                characters("LITERAL", min(each, OTHERS))
                for each in range(min(argument[0], OTHERS), min(argument[1], OTHERS) + 1)
            )
        )
    if name == "CATEGORY":
        pattern = re.compile(CATEGORIES[str(argument).replace("CATEGORY_", "")], re.ASCII)
        return frozenset(each for each in ALL if pattern.match(chr(each)))
    if name == "IN":
        parts = [(str(kind), value) for kind, value in argument]
        found = frozenset().union(*(characters(*part) for part in parts if part[0] != "NEGATE"))
        return (ALL - found) | {OTHERS} if parts[0][0] == "NEGATE" else found
    return ALL  # ANY, NOT_LITERAL
MOST_METRICS = 100
MOST_POINTS = 200  # of a curve in the record
MOST_HELD = 4096  # points of the compared curve, and of the objective's, until the trial ends
HELD_BESIDE = 512  # points of any other curve
LEAST_POINTS = 8  # of a curve that is thinned for want of room
LARGEST_STEP = 2**53  # beyond it, readers that use doubles lose digits
CURVE_BYTES = 6 * KIBIBYTE
CURVES_BYTES = 10 * KIBIBYTE  # of all curves
NAME = r"[A-Za-z][A-Za-z0-9_./@-]{0,62}"
METRIC_NAME = re.compile(NAME)


class Report(NamedTuple):
    """What the trial says of itself."""

    metrics: dict[str, float]  # finite or not
    details: dict[str, Any]
    reason: str | None  # why there is no objective
    message: str
    curves: Mapping[str, list[list[Any]]] = {}  # [step, value] by metric, the most important first


class Curve:
    """A metric by step, in memory that does not grow with the steps.

    A place is a step after how often steps have begun again, as they do for each fold of a cross-validation.
    """

    def __init__(self, most: int = MOST_HELD) -> None:
        self.most = most
        self.points: list[tuple[tuple[int, int], float]] = []
        self.count, self.stride, self.has_steps = 0, 1, False
        self.last_step, self.restarts = -1, 0
        self.last: tuple[tuple[int, int], float] | None = None
        self.low: tuple[tuple[int, int], float] | None = None
        self.high: tuple[tuple[int, int], float] | None = None

    def add(self, value: float, step: Any) -> tuple[int, float]:
        """Add the next number, and return its step and itself; one without a step is counted, from 1."""
        given = whole_step(step)
        if given is not None:
            self.has_steps = True
            self.restarts += given < self.last_step
            self.last_step = given
        place = self.count + 1 if given is None else given
        self.last = point = ((self.restarts, place), value)
        if self.count % self.stride == 0:
            self.points.append(point)
            if len(self.points) > self.most:
                self.points = self.points[::2]
                self.stride *= 2
        self.count += 1
        if math.isfinite(value):
            self.low = point if self.low is None or value < self.low[1] else self.low
            self.high = point if self.high is None or value > self.high[1] else self.high
        return place, value

    def thinned(self, room: int = CURVE_BYTES) -> list[list[Any]]:
        """Return the points for a record, in the order of their steps; the fewest may exceed the room."""
        most = MOST_POINTS
        while True:
            points = self.at_most(most)
            size = len(dump(points))
            if size <= room or most == LEAST_POINTS:
                return points
            most = max(LEAST_POINTS, min(most * room // size, most - 1))

    def at_most(self, most: int) -> list[list[Any]]:
        """Return the first, last, lowest and highest point, and others evenly between them."""
        marks = [point for point in (self.low, self.high, self.last) if point]
        held = dict([*self.points, *marks])  # of a step that is repeated the last counts
        places = sorted(held)
        if len(places) > most:
            room = most - len(marks)
            even = {places[number * (len(places) - 1) // (room - 1)] for number in range(room)}
            places = sorted(even | {place for place, _ in marks})
        return [[place[1], held[place] + 0.0 if math.isfinite(held[place]) else None] for place in places]


def whole_step(step: Any) -> int | None:
    """Return a step as the integer that it must be; None if it is none."""
    if type(step) in AMOUNT and math.isfinite(step) and 0 <= step <= LARGEST_STEP and step == int(step):
        return int(step)
    return None


def wanted_of(metric: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of all metrics that a trial must report, the objective first."""
    return (metric["name"], *metric.get("others", ()))


class Gathered:
    """The numbers and details that a trial reports, in bounded memory."""

    def __init__(self, metric: Mapping[str, Any], on_value: Callable[[int, float], object]) -> None:
        self.objective, self.reduce, self.on_value = metric["name"], metric["reduce"], on_value
        self.wanted = wanted_of(metric)
        self.metrics: dict[str, float] = {}
        self.details: dict[str, Any] = {}
        self.followed = metric.get("curve", self.objective)
        self.curve = Curve()
        self.curves = {self.followed: self.curve}
        self.curves.setdefault(self.objective, Curve())
        self.unread: set[str] = set()  # metrics with numbers that count and are not read

    def add(self, members: Mapping[str, Any], step: Any, keeps: Callable[[str], bool]) -> None:
        """Add what one line or event says; `keeps` decides which of what is not a number is a detail."""
        for name, value in members.items():
            is_known = name in self.wanted or name in self.metrics or name == self.followed
            is_number = type(value) in AMOUNT and METRIC_NAME.fullmatch(name)
            if is_number and (is_known or len(self.metrics) < MOST_METRICS):
                self.metrics[name] = float(value)
                if name not in self.curves:
                    self.curves[name] = Curve(HELD_BESIDE)
                point = self.curves[name].add(self.metrics[name], step)
                if name == self.followed and not self.curve.restarts:  # else steps do not say how far it is
                    self.on_value(*point)
                if name != self.objective or self.reduce == "last":
                    self.unread.discard(name)
            else:
                if isinstance(value, OtherNumber) and name in self.wanted:
                    self.unread.add(name)
                if keeps(name) and (name in self.details or len(self.details) < MOST_METRICS):
                    self.details[name] = value

    def begin_file(self) -> None:
        """Take the steps of another file beside those of the first."""
        for curve in self.curves.values():
            curve.last_step = -1

    def recorded(self) -> dict[str, list[list[Any]]]:
        """Return the curves for a record, the most important first; those without room are a detail.

        The compared one comes first, then the objective, the other metrics of the sweep, and the rest by
        name. What the first leaves is divided equally. One number alone is a curve only if it is compared
        and has a step.
        """
        names = [
            name
            for name in dict.fromkeys((self.followed, *self.wanted, *sorted(self.curves)))
            if name in self.curves
            for count in [self.curves[name].count]
            if count > 1 or (count and name == self.followed and self.curve.has_steps)
        ]
        kept: dict[str, list[list[Any]]] = {}
        room = CURVES_BYTES
        for place, name in enumerate(names):
            share = CURVE_BYTES if name == self.followed else room // (len(names) - place)
            points = self.curves[name].thinned(share - len(dump({name: 0})))
            size = len(dump({name: points}))
            if size <= room and len(kept) < MOST_METRICS:
                kept[name] = points
                room -= size
        if len(kept) < len(names):
            self.details["curves_left_out"] = len(names) - len(kept)
        return kept

    def report(self, missing: str, *, has_curves: bool = True) -> Report:
        """Return the report; `missing` is the message if there is no objective."""
        curves = self.recorded() if has_curves else {}
        for name in self.unread:
            self.metrics.pop(name, None)
        if self.objective not in self.metrics:
            return Report(self.metrics, self.details, "metric-missing", missing, curves)
        if self.curve.restarts:
            self.details["steps_restarted"] = self.curve.restarts
        own = self.curves[self.objective]
        best = {"min": own.low, "max": own.high}.get(self.reduce)
        if best:
            self.metrics[self.objective] = best[1]
        return Report(self.metrics, self.details, None, "", curves)


class OtherNumber(str):
    """A number in another notation, which is not read."""

    __slots__ = ()


def fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Yield number and value of each field of a protobuf message. Raises ValueError or IndexError."""
    position = 0
    while position < len(message):
        key, position = varint(message, position)
        wire = key & 7
        if wire == 0:
            value, position = varint(message, position)
            yield key >> 3, value
            continue
        if wire == 2:
            size, position = varint(message, position)
        else:
            size = {1: 8, 5: 4}.get(wire, len(message))
        end = position + size
        if end > len(message):
            raise ValueError("a field is longer than its message")
        yield key >> 3, message[position:end]
        position = end


def varint(message: bytes, position: int) -> tuple[int, int]:
    """Read an integer of variable length, and return the position behind it."""
    value = shift = 0
    while True:
        byte = message[position]
        value |= (byte & 0x7F) << shift
        shift += 7
        position += 1
        if byte < 0x80 or shift > 63:
            return value, position
MOST_GUESSES = 1000  # lines that are tried in another format
LONGEST_LINE = 64 * KIBIBYTE  # that is searched for a metric
DECIMAL = (
    r"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
    r"|[nN][aA][nN]|[iI][nN][fF](?:[iI][nN][iI][tT][yY])?)"
)
GROUPS = "'\u2019\u00a0\u2009\u202f"  # what people put between groups of digits, and no program in a list
METRIC_TEXT = (  # whatever Katib's default filter matches, but no parts of `1,5`, `1'234` or `0x1f`
    rf"(?<![\w./@|-])({NAME})\s*=\s*({DECIMAL})(?![{GROUPS}][0-9])"
    r"(?=\.?(?:[\s;%|)\]}\"'(\[\x1b]|[,:](?![0-9])|$))"
)
TERMINAL_CODES = r"\x1b(?:\[[0-9:;<=>?]*[ -/]*[@-~]|[]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])"
MORE_OF_NUMBER = rf"\d|[._^\u00d7{GROUPS}]\d|[xXoObB][0-9a-fA-F]|[eEdD][+-]?[0-9]|[kKMGT]i?B?(?!\w)"
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
