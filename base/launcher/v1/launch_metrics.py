"""What a trial reports: metrics, details and curves, in bounded memory."""

from __future__ import annotations

import math
import re
from typing import Any, Callable, Mapping, NamedTuple

from launch_contract import AMOUNT
from launch_files import KIBIBYTE
from launch_json import dump

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
