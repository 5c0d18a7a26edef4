"""What programs write into files is in no other trial's numbers: each is what a plain loop, one at a time, gives."""

import csv
import re
import sys
from pathlib import Path

import pytest

from tests.repository import Sandbox
from tests.writing_programs import REPORTS, SCRIPT, expected, plain_loop, recorded, spec, write_program

VALUES = (3, 1, 4, 2)
RUN = "  resources: {{cpu: 50m, memory: 64Mi}}\n  parallelism: {parallelism}\n{more}"
MODES = {
    "two at once": (2, "  environment: {{MEETING: {meeting}}}\n"),
    "in packs": (
        2,
        "  environment: {{MEETING: {meeting}}}\n  shape: indexed\n  pack: {{trials: 2, at_once: 2}}\n",
    ),
}


@pytest.fixture
def laptop(sandbox: Sandbox) -> Sandbox:
    sandbox.push()
    sandbox.use_as_laptop()
    return sandbox


@pytest.mark.sampled(1)
@pytest.mark.parametrize("mode", MODES)
def test_files_are_reported(mode: str, laptop: Sandbox, tmp_path: Path, needs_kustomize: None) -> None:
    parallelism, more = MODES[mode]
    (tmp_path / "meeting").mkdir()
    run = RUN.format(parallelism=parallelism, more=more.format(meeting=tmp_path / "meeting"))
    write_program(laptop.root)
    laptop.commit("Write the program")
    argv = {str(x): [sys.executable, SCRIPT, f"--x={x}"] for x in VALUES}
    printed = plain_loop(laptop.root, tmp_path / "plain", argv)
    last = {x: re.findall(r"^(\w+)=(\d+)$", text, re.MULTILINE) for x, text in printed.items()}
    plain = {int(x): {name: float(value) for name, value in found} for x, found in last.items()}
    assert plain == {x: expected(x) for x in VALUES}

    # The first batch, a later one of the same sweeps, and other sweeps with the same code.
    for suffix, count in (("", 2), ("", 4), ("-again", 2)):
        names = [f"{report}{suffix}" for report in REPORTS]
        for report in REPORTS:
            name = f"{report}{suffix}"
            laptop.write(f"sweeps/{name}.yaml", spec(name, report, str([*VALUES[:count]])[1:-1], run))
        list(laptop.run(*names, parallel=parallelism))

    summaries = {path.parent.name: path for path in laptop.root.glob("results/*/summary.csv")}
    assert {
        name: recorded(csv.DictReader(path.read_text().splitlines())) for name, path in summaries.items()
    } == {
        f"{report}{suffix}": {x: plain[x] for x in VALUES[:count]}
        for report in REPORTS
        for suffix, count in (("", 4), ("-again", 2))
    }
    left = [path for path in (laptop.root / ".sweepledger").rglob("*") if path.is_file()]
    assert [path for path in left if re.search(rb"trial-\d+-", path.read_bytes())] == []
