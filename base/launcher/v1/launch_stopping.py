"""Early stopping: rules that a trial is compared with while it runs."""

from __future__ import annotations

import bisect
import math
import os
from typing import TYPE_CHECKING, Any, Callable, Mapping, NamedTuple

from launch_contract import check_rule
from launch_files import LARGEST_FILE, Refused, say, sha256
from launch_json import open_regular, parse_object
from launch_lines import Stream
from launch_metrics import Gathered
from launch_reports import HEAD, LARGEST_EVENTS, LARGEST_STREAM

if TYPE_CHECKING:
    from launch_reports import Files


class Rule:
    """One rule of early stopping, and the state of the trial under it."""

    def __init__(self, rule: Mapping[str, Any], seen: Thresholds | None = None) -> None:
        self.name, self.seen = str(rule["rule"]), seen
        self.sign = 1.0 if rule["goal"] == "maximize" else -1.0
        self.reports: int | None = rule.get("reports")
        self.margin: float = rule.get("margin", 0)
        self.first, self.last = rule.get("from", 0), rule.get("until", math.inf)
        self.reach: float | None = rule.get("reach")
        self.marks: list[float] = [step for step, _ in rule.get("thresholds", [])]
        self.limits: list[float] = [limit for _, limit in rule.get("thresholds", [])]
        self.of_last = rule.get("value") == "last"
        self.passed = self.idle = 0
        self.best = -math.inf

    @property
    def threshold(self) -> float | None:
        """The number that decided; none for a rule that counts reports."""
        return self.limits[self.passed - 1] if self.marks else self.reach

    def is_broken(self, step: int, value: float) -> bool:
        """Return whether a finite number ends the trial. A threshold counts once, at its step."""
        value *= self.sign
        self.idle = 0 if value > self.best + self.margin else self.idle + 1
        if self.reports is None or not self.idle:
            self.best = max(self.best, value)
        if not self.first <= step <= self.last:
            return False
        if self.reach is not None:
            return value >= self.sign * self.reach
        if self.reports is not None:
            return self.idle >= self.reports
        passed = bisect.bisect_right(self.marks, step)
        if passed <= self.passed:
            return False
        self.passed = passed
        return (value if self.of_last else self.best) < self.sign * self.limits[passed - 1]


class Thresholds(NamedTuple):
    """The file of thresholds as the launcher read it."""

    content: bytes
    rules: list[dict[str, Any]]

    @property
    def digest(self) -> str:
        """SHA-256 of the bytes."""
        return sha256(self.content)


def read_thresholds(content: bytes) -> Thresholds:
    """Read a file of thresholds. Raises ValueError or Refused with the reason."""
    if len(content) > LARGEST_FILE:
        raise ValueError("it is larger than 1 MiB")
    rules = parse_object(content).get("stop")
    if not isinstance(rules, list):
        raise ValueError("its member stop must be a list")
    for rule in rules:
        check_rule(rule)
        if "thresholds" not in rule:
            raise ValueError(f"only rules with thresholds can change, got {sorted(rule)}")
    return Thresholds(content, rules)


class LiveRules:
    """The rules of a file that may change while the trial runs."""

    def __init__(self, path: str) -> None:
        self.path, self.state = path, (0, 0, 0)
        self.rules: list[Rule] = []

    def current(self, low: float, high: float) -> list[Rule]:
        """Return the rules of the file as it is now; new ones start with the best value so far."""
        try:
            found = os.stat(self.path)
            state = found.st_ino, found.st_size, found.st_mtime_ns
            if state == self.state:
                return self.rules
            self.state = state
            with open(self.path, "rb") as file:
                thresholds = read_thresholds(file.read(LARGEST_FILE + 1))
        except FileNotFoundError:
            return self.rules
        except (OSError, ValueError, Refused) as error:
            say(f"the file of thresholds is not valid, and changes nothing: {error}")
            return self.rules
        if not self.rules or self.rules[0].seen != thresholds:
            self.rules = [Rule(rule, thresholds) for rule in thresholds.rules]
            for rule in self.rules:
                rule.best = high if rule.sign > 0 else -low
        return self.rules


class Broken(NamedTuple):
    """The rule that ended the trial, and where."""

    rule: str
    step: int
    is_behind: bool  # else the trial reached what was requested
    threshold: float | None = None
    seen: Thresholds | None = None

    @property
    def member(self) -> dict[str, Any]:
        """The member of the record."""
        seen = f"sha256:{self.seen.digest}" if self.seen else None
        return {"rule": self.rule, "step": self.step, "threshold": self.threshold, "seen": seen}


class Tail:
    """One growing file, and the position up to which it was read."""

    def __init__(self, path: str, feed: Callable[[bytes], None], most: int, start: int = 0) -> None:
        self.path, self.feed, self.most = path, feed, most
        self.inode, self.position, self.head = 0, start, b""

    def read_on(self) -> bool:
        """Feed some of what was added; return False if the file was replaced. Raises OSError, ValueError."""
        with open_regular(self.path) as file:
            state = os.fstat(file.fileno())
            head = file.read(len(self.head))
            if self.inode and (
                (state.st_ino, head) != (self.inode, self.head) or state.st_size < self.position
            ):
                return False
            self.inode = state.st_ino
            file.seek(self.position)
            content = file.read(LARGEST_FILE)
        if self.position == len(self.head):
            self.head += content[: HEAD - len(self.head)]
        self.position += len(content)
        if self.position > self.most:
            raise ValueError(f"it is larger than {self.most // LARGEST_FILE} MiB")
        self.feed(content)
        return True


class Follower:
    """Compares what the trial reports with the rules, as it arrives: on stdout, or in files that grow."""

    def __init__(self, launch: Mapping[str, Any], files: Files, wake: Callable[[], object]) -> None:
        self.launch, self.files, self.wake = launch, files, wake
        self.metric = launch["metric"]
        self.looks = self.metric["source"] == "result" and self.metric["format"] != "json"
        self.broken: Broken | None = None
        self.begin()

    def begin(self) -> None:
        """Forget everything that was read."""
        self.tails: dict[str, Tail] = {}
        self.low, self.high = math.inf, -math.inf
        self.rules = [Rule(rule) for rule in self.launch.get("stop", [])]
        self.live = LiveRules(self.launch["thresholds_file"]) if "thresholds_file" in self.launch else None
        self.gathered = Gathered(self.metric, self.take)

    def take(self, step: int, value: float) -> None:
        """Take a number. One that is not finite may be a slip, and is judged at the end."""
        if self.broken is not None or not math.isfinite(value):
            return
        live = self.live.current(self.low, self.high) if self.live else []
        self.low, self.high = min(self.low, value), max(self.high, value)
        for rule in [*self.rules, *live]:
            if rule.is_broken(step, value) and self.broken is None:
                self.broken = Broken(rule.name, step, bool(rule.marks), rule.threshold, rule.seen)
                self.wake()

    def look(self) -> bool:
        """Read on in the files, some of it; return whether the trial is to end."""
        try:
            if self.looks and self.broken is None:
                self.read_on()
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            say(f"the trial is no longer followed: {error}")
            self.looks = False
        return self.broken is not None

    def read_on(self) -> None:
        """Take what was added since the last look. Raises OSError, and ValueError for other formats."""
        paths = self.files.current()
        if not self.files.is_folder and self.tails and list(self.tails) != paths:
            self.begin()
        for path in paths:
            if path not in self.tails:
                self.tails[path] = self.tail_of(path)
            if not self.tails[path].read_on():
                self.begin()
                self.read_on()
                return

    def tail_of(self, path: str) -> Tail:
        """Return the reader of a new file."""
        start = self.files.start(path) or 0
        if self.metric["format"] == "tensorboard":
            from launch_events import Events

            return Tail(path, Events(self.gathered).feed, LARGEST_EVENTS, start)
        stream = Stream(self.metric, strict=True, on_value=self.take)
        if start and self.metric["format"] == "csv":
            stream.feed(self.files.header(path))
        return Tail(path, stream.feed, LARGEST_STREAM, start)
