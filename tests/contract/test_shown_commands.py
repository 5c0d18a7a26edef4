"""The command in a manifest is the one that the launcher works out of the table: else nothing would run."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sweepledger.formats import yaml
from sweepledger.render.overlay import overlay
from sweepledger.structs.domain import Choice, Constant
from sweepledger.structs.metric import Goal, Metric
from sweepledger.structs.run_config import Shape
from sweepledger.structs.search_block import GridSearch
from sweepledger.structs.space import Parameter, SearchSpace
from tests.sweeps import SETTINGS, a_batch, a_sweep, real_bases
from tests.tiers import parameters

SHAPES = [shape for shape in Shape if shape is not Shape.INDEXED]

SPACE = SearchSpace(
    (
        Parameter("rate", Choice((1e-05, 2.0))),
        Parameter("label", Constant('größe "1e-4", $$ and $x')),
        Parameter("flag", Constant(value=True)),
        Parameter("off", Constant(value=False)),
        Parameter("sizes", Constant((64, 128.5))),
        Parameter("none", Constant(None)),
    )
)
PYTHON = (sys.executable, "-I", "-S")
"""Without site-packages, which nothing here needs: it starts in a third of the time."""

DUMP = """
import json, os, sys
with open(os.environ["SWEEP_RESULT"], "w") as file:
    json.dump({"score": 1, "argv": sys.argv[1:]}, file)
"""
MACROS = (
    "args",
    "args_no_hyphens",
    "args_no_boolean_flags",
    "args_json",
    "args_json_file",
    "envvar:PLACE",
    "seed",
)


def in_the_pod(text: str) -> str:
    """Do to an argument what Kubernetes does where no reference stands in it."""
    return re.sub(r"\$\$", "$", text)


def first_container(manifest: Any) -> Any:
    """Find the container that shows a command, wherever its kind has it."""
    if isinstance(manifest, dict):
        if manifest.get("args", [""])[0] == "--":
            return manifest
        manifest = list(manifest.values())
    result = (first_container(item) for item in manifest) if isinstance(manifest, list) else ()
    return next((container for container in result if container is not None), None)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("index", parameters((0, 1), (1,), "more rows"))
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_pod_runs_the_command_that_its_manifest_shows(shape: Shape, index: int, tmp_path: Path) -> None:
    command = (*PYTHON, "-c", DUMP, *(f"${{{macro}}}" for macro in MACROS))
    sweep = a_sweep(design=GridSearch(SPACE), metric=Metric("score", Goal.MAXIMIZE), command=command)
    bases = real_bases()
    made = overlay(a_batch(shape, sweep=sweep), bases, SETTINGS)
    for path, content in (*made.tree, ("launch.py", bases.launcher)):
        (tmp_path / path).write_bytes(content)
    for name in ("scratch", "code"):
        (tmp_path / name).mkdir()
    objects = [thing for thing in yaml.load_all(made.tree["job.yaml"]) if thing["kind"] != "TrainingRuntime"]
    container = first_container(objects[index])
    shown = {variable["name"]: variable.get("value") for variable in container["env"]}
    variables = {
        "PLACE": "here",
        "SWEEP_LAUNCH": str(tmp_path / "launch.json"),
        "SWEEP_TABLE": str(tmp_path),
        "SWEEP_RESULTS": str(tmp_path / "results"),
        "SWEEP_SCRATCH": str(tmp_path / "scratch"),
        "SWEEP_INDEX": shown["SWEEP_INDEX"],
        "PATH": os.environ["PATH"],
    }

    arguments = [in_the_pod(argument) for argument in container["args"]]
    run = subprocess.run(
        [*PYTHON, str(tmp_path / "launch.py"), *arguments],
        cwd=tmp_path / "code",
        env=variables,
        check=False,
        capture_output=True,
    )

    assert run.returncode == 0, run.stderr.decode()
    (record,) = (json.loads(path.read_bytes()) for path in (tmp_path / "results").glob("*.json"))
    argv, read = record["details"]["argv"], arguments[len(("--", *PYTHON, "-c", DUMP)) :]
    file, place = read.index("<args_json_file>"), read.index("<envvar:PLACE>")
    assert (argv[file].rpartition("/")[2], argv[place]) == ("trial.json", "here")
    assert [*argv[:file], *argv[place + 1 :]] == [*read[:file], *read[place + 1 :]]
