"""`sweep export`: a sweep in, a file for another tool and a report out."""

import pytest
import yaml

from sweepledger.errors import SpecError, UsageError
from sweepledger.verbs.export import export, export_sweep
from tests.command_line import run_sweep
from tests.repository import Sandbox, answer


def test_a_file_goes_to_standard_output_and_the_report_beside_it(sandbox: Sandbox) -> None:
    sandbox.spec()

    done = run_sweep("export", "wandb", "peak", cwd=sandbox.root)

    assert done.returncode == 0, done.stderr
    assert yaml.safe_load(done.stdout)["parameters"]["x"] == {"values": [1, 2, 3]}
    assert "metric.source" in done.stderr


def test_a_file_is_written_and_never_over_another(sandbox: Sandbox) -> None:
    sandbox.spec()
    output = sandbox.root / "sweep.yaml"

    sent = answer(export, workspace=sandbox.workspace, foreign="wandb", name="peak", output=output)

    assert output.read_text() == sent["text"]
    with pytest.raises(UsageError, match="not overwritten"):
        answer(export, workspace=sandbox.workspace, foreign="wandb", name="peak", output=output)


def test_a_sweep_that_is_wrong_is_not_exported(sandbox: Sandbox) -> None:
    sandbox.write("sweeps/peak.yaml", "name: peak\n")

    with pytest.raises(SpecError):
        export_sweep(sandbox.workspace, "wandb", "peak")


def test_a_search_by_rounds_goes_only_to_tools_that_search(sandbox: Sandbox) -> None:
    sandbox.spec()
    text = (sandbox.root / "sweeps/peak.yaml").read_text()
    searched = text.replace("method: grid", "method: tpe\nseed: 1\nrounds: {size: 2, max: 2}")
    sandbox.write("sweeps/peak.yaml", searched)

    assert "bayes" in export_sweep(sandbox.workspace, "wandb", "peak")[0].text
    assert "multivariate-tpe" in export_sweep(sandbox.workspace, "katib", "peak")[0].text
    with pytest.raises(UsageError, match="peak is an adaptive search, and csv lists"):
        export_sweep(sandbox.workspace, "csv", "peak")
