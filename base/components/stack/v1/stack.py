"""Run the rows of a pod as stacks: one process of the user's program for several rows, and a record for each.

It imports launch.py (version 2) and pack.py, which are beside it in the pod; pack.py starts it if launch.json
has `pack.stack`. Neighbouring rows of the pod that agree in their replicate, in which parameters they have,
and in the values of all that `pack.stack` does not name, are one stack, which so depends on the table alone.
A retried pod trains whole stacks again, also rows that have a record, and records the others.

Environment of the command, in addition to that of its first row
  SWEEP_STACK     path of a JSON file: {"trials": [{"trial", "index", "values", "command", "result",
                  "artifacts"}]}, one for each row. `command` is the row's own with all macros expanded; the
                  process has the first. The program writes to each `result` what it would write to
                  SWEEP_RESULT, and files that the trial keeps to `artifacts`. A result whose metric is not a
                  finite number ends that trial as diverged.

The process has the timeout of a trial, and the output of each row is its output. Each record has the row's
share of its time as `seconds`, and `details.stack`: the first row, the number of rows, and the time of all.
An exit code other than 0 is a failure of all rows; 42 says nothing of a single row, so it is a failure, too.
"""

from __future__ import annotations

import itertools
import json
import mmap
import os
import shutil
import time
from typing import Any, Iterator, Mapping, NamedTuple

import launch
import pack

NO_CODE = 255  # of a row that has ended with its stack, before the launcher could say how


class Part(NamedTuple):
    """One row of a stack: its attempt, its part of the command, and whether its result is recorded."""

    attempt: launch.Attempt
    command: launch.Prepared
    is_recorded: bool


def stacks_of(rows: list[launch.Row], parameters: list[str]) -> Iterator[range]:
    """Yield the stacks into which neighbouring rows divide."""

    def key(row: launch.Row) -> tuple[int, dict[str, Any]]:
        others = {name: None if name in parameters else value for name, value in row.values.items()}
        return row.replicate, others

    for _, group in itertools.groupby(rows, key):
        numbers = [row.number for row in group]
        yield range(numbers[0], numbers[-1] + 1)


class Stacks(pack.Pack):
    """Runs the stacks of one pod one after the other, after what earlier pods have left."""

    def __init__(
        self, instructions: Mapping[str, Any], rows: range, uid: str, signals: launch.Signals, folder: str
    ) -> None:
        super().__init__(instructions, rows, uid, signals, folder)
        table = launch.need("SWEEP_TABLE")
        read = [launch.read_row(instructions, table, row) for row in rows]
        self.stack = {row: stack for stack in stacks_of(read, instructions["pack"]["stack"]) for row in stack}
        self.members: dict[int, list[int]] = {}
        """Of each started stack, by its first row, the rows that need a record."""
        self.ends = mmap.mmap(-1, len(rows))
        """A byte for each row, which the launcher of a stack writes: the exit code of the row."""

    def run_these(self, rows: list[int]) -> None:
        """Run the stacks of some rows; a row that only needs its last record is alone."""
        given_up = [row for row in rows if row in self.given_up]
        left = [row for row in rows if row not in self.given_up and row not in self.codes]
        super().run_these([*dict.fromkeys(self.stack[row][0] for row in left), *given_up])

    def start(self, row: int) -> None:
        """Start the launcher of a stack."""
        others = [each for each in self.stack[row] if each not in self.codes and each not in self.given_up]
        self.members[row] = rows = [row] if row in self.given_up else others
        known = self.codes.pop(row, None)
        for each in rows:
            self.ends[each - self.rows[0]] = NO_CODE
            self.slots[each].most = 1
        super().start(row)
        if row in self.codes:  # it could not be started
            self.codes.update(dict.fromkeys(rows, self.codes[row]))
        if known is not None and row not in rows:
            self.codes[row] = known

    def note(self, event: str, row: int) -> bool:
        """Add an event to the journal for all rows of a stack; return whether that was possible."""
        return all(super(Stacks, self).note(event, each) for each in self.members[row])

    def collect(self) -> None:
        """Note how the rows of stacks have ended."""
        running = set(self.running.values())
        known = {row: self.codes[row] for row in running if row in self.codes}
        super().collect()
        for row in running.difference(self.running.values()):
            for each in self.members[row]:
                code = self.ends[each - self.rows[0]]
                self.codes[each] = self.codes[row] if code == NO_CODE else code
            if row in known:  # it is trained again for the others, and its own record is older
                self.codes[row] = known[row]

    def run_in_scratch(self, row: int) -> int:
        """Run the stack that begins with a row, in a scratch folder that is deleted afterwards."""
        if row in self.given_up:
            return int(super().run_in_scratch(row))
        os.environ["SWEEP_SCRATCH"] = scratch = launch.make_temporary_folder("stack-")
        try:
            return self.run_stack(self.stack[row], self.members[row], scratch)
        finally:
            launch.delete_folder(scratch)

    def run_stack(self, rows: range, unfinished: list[int], scratch: str) -> int:
        """Run one stack to its records; return the exit code of its launcher."""
        if self.launch["metric"]["source"] != "result":
            raise launch.Refused("launch.json: pack.stack: metric must have the source result")
        parts = [self.part(row, scratch, is_recorded=row not in unfinished) for row in rows]
        most = self.launch["max_disruptions"]
        if any(part.attempt.disruptions > most for part in parts if not part.is_recorded):
            why = f"the cluster ended too many of its pods, and max_disruptions is {most}"
            ended = launch.without_start("disrupted", why, launch.DISRUPTED)
            return self.conclude(parts, dict.fromkeys(rows, ended))
        path = os.path.join(scratch, "stack.json")
        with open(launch.create(path), "wb") as file:
            file.write(json.dumps({"trials": [self.described(part) for part in parts]}).encode())
        first = parts[0].command
        variables = {**first.variables, b"SWEEP_STACK": os.fsencode(path)}
        leader = next(part for part in parts if not part.is_recorded)
        words = launch.LastWords()
        out = launch.Tee(1, leader.attempt.path(f"{leader.attempt.uid}.out"), len)
        err = launch.Tee(2, leader.attempt.path(f"{leader.attempt.uid}.err"), words.feed)
        if self.signals.stop:
            raise launch.Stopped(self.signals.stop)
        started = launch.utc()
        try:
            child = launch.start(first.arguments, variables, first.place)
        except launch.Refused as error:
            ended = launch.without_start(error.reason, str(error), launch.BAD_SWEEP)
            return self.conclude(parts, dict.fromkeys(rows, ended))
        try:
            out.copy(child.stdout)
            err.copy(child.stderr)
            ending = launch.supervise(child, self.launch, self.signals, None, (out, err))
        finally:
            launch.end_all(child)
            until = time.monotonic() + launch.PATIENCE
            out.finish(until)
            err.finish(until)
        secrets = [variables[name.encode()] for name in self.launch.get("secrets", {})]
        cause = words.cause(secrets) if ending.code and not ending.cause else ""
        about = {"first": rows[0], "trials": len(rows), "seconds": round(ending.seconds, 3)}
        outcomes = {}
        for part in parts:
            report = launch.read_report(None, part.command.files, self.launch["metric"])
            verdict = launch.judge(ending, report, part.attempt.objective)
            if ending.code == launch.BAD_HYPERPARAMETERS and not ending.cause:
                verdict = launch.Verdict("failed", f"exit-{ending.code}", pack.FAILED)
            report = report._replace(details={**report.details, "stack": about})
            share, environment = ending.seconds / len(parts), part.command.environment
            outcomes[part.attempt.row.number] = launch.Outcome(
                verdict, report, started, share, environment, None, cause
            )
        self.copy_output(leader.attempt, parts)
        return self.conclude(parts, outcomes)

    def part(self, row: int, scratch: str, *, is_recorded: bool) -> Part:
        """Return a row's attempt and command; one that has a record writes into the scratch alone."""
        self.become(row)
        read = launch.read_row(self.launch, launch.need("SWEEP_TABLE"), row)
        own = os.path.join(scratch, str(row))
        os.mkdir(own)
        folder = own if is_recorded else os.path.abspath(launch.need("SWEEP_RESULTS"))
        os.makedirs(folder, exist_ok=True)
        past = self.past[row]
        uid, slot = f"{self.uid}-{row}", self.slots[row]
        attempt = launch.Attempt(
            self.launch, read, uid, 1 + past.attempts, folder, 0, None, past.disruptions, slot
        )
        if is_recorded:
            for name in ("SWEEP_CHECKPOINT_VOLUME", "SWEEP_ARTIFACT_VOLUME"):
                os.environ.pop(name, None)
        return Part(attempt, launch.prepare(attempt, own), is_recorded)

    def become(self, row: int) -> None:
        """Set the variables of a row's own folders."""
        for name, volume in self.volumes.items():
            os.environ[name] = os.path.join(volume, str(row))

    def launch_row(self, row: int) -> int:
        """Be the launcher of one stack, which begins with a row."""
        names = ("SWEEP_RESULTS", "SWEEP_CHECKPOINT_VOLUME", "SWEEP_ARTIFACT_VOLUME")
        self.volumes = {name: os.environ[name] for name in names if os.environ.get(name)}
        return int(super().launch_row(row))

    def described(self, part: Part) -> dict[str, Any]:
        """Return what the program is told of a row."""
        row, variables = part.attempt.row, part.command.variables
        return {
            "trial": row.trial,
            "index": row.number,
            "values": row.values,
            "command": part.command.arguments,
            "result": os.fsdecode(variables[b"SWEEP_RESULT"]),
            "artifacts": os.fsdecode(variables[b"SWEEP_ARTIFACTS"]),
        }

    def copy_output(self, leader: launch.Attempt, parts: list[Part]) -> None:
        """Give every row the output of its stack."""
        for part in parts:
            for stream in ("out", "err"):
                source = leader.path(f"{leader.uid}.{stream}")
                if part.attempt is leader or part.is_recorded or not os.path.exists(source):
                    continue
                try:
                    shutil.copyfile(source, part.attempt.path(f"{part.attempt.uid}.{stream}"))
                except OSError as error:
                    launch.say(f"the output of {part.attempt.row.trial} cannot be kept: {error}")

    def conclude(self, parts: list[Part], outcomes: Mapping[int, launch.Outcome]) -> int:
        """Write the records that are missing; return the exit code of the launcher."""
        codes = []
        for part in parts:
            row = part.attempt.row.number
            if part.is_recorded:
                continue
            self.become(row)
            code = launch.conclude(part.attempt, outcomes[row])
            self.ends[row - self.rows[0]] = code
            codes.append(code)
        return int(launch.worst(codes))
