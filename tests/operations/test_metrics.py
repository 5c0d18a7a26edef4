"""`sweep cluster metrics`: what git knows, in Prometheus' text format."""

import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster import building
from tests.cluster.apiserver import NoClusterToolsError, tool
from tests.cluster.children import until
from tests.cluster.processes import free_ports
from tests.repository import Sandbox

PAGE = Path(__file__).parents[2] / "docs/how-to/monitor.md"


def test_active_batches_and_budgets_are_metrics_and_the_file_has_what_is_printed(sandbox: Sandbox) -> None:
    batch = sandbox.merged()
    sandbox.write("sweepledger.yaml", "version: 1\nbudgets: {vision: {gpu_hours: 10}}\n")
    sandbox.publish("Limit the cost")
    merged = sandbox.git("log", "-1", "--format=%ct", "--", f"overlays/active/{batch}").strip()

    printed = sandbox.sweep("cluster", "metrics")
    sandbox.sweep("cluster", "metrics", "--to=sweeps.prom")

    labels = f'batch="{batch}",kind="Job",namespace="sweeps",sweep="peak"'
    lines = printed.stdout.splitlines()
    assert f"sweepledger_batch_merged_timestamp_seconds{{{labels}}} {merged}" in lines
    assert 'sweepledger_budget_limit{namespace="sweeps",team="vision",unit="gpu_hours"} 10' in lines
    assert "# TYPE sweepledger_budget_reserved gauge" in lines
    assert "sweepledger_results_commit_timestamp_seconds" not in printed.stdout
    assert (sandbox.root / "sweeps.prom").read_text() == printed.stdout


@contextmanager
def started(*command: str | Path) -> Iterator[None]:
    process = subprocess.Popen([*map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


@pytest.mark.full_suite("Prometheus")
def test_prometheus_scrapes_the_file_as_the_documents_say(sandbox: Sandbox, tmp_path: Path) -> None:
    try:
        program = tool(building.PROMETHEUS, "prometheus")
    except NoClusterToolsError as error:
        pytest.skip(f"skipped: {error}")
    batch, (web, port) = sandbox.merged(), free_ports(2)
    (tmp_path / "served").mkdir()
    sandbox.sweep("cluster", "metrics", f"--to={tmp_path}/served/metrics")
    (text,) = re.findall(r"```yaml\n# of prometheus.yml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    configuration = text.replace("sweeps.example.org:9464", f"127.0.0.1:{web}")
    settings = {"global": {"scrape_interval": "1s"}, **yaml.safe_load(configuration)}
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(settings))
    query = f"http://127.0.0.1:{port}/api/v1/query?query=sweepledger_batch_merged_timestamp_seconds"

    def scraped() -> list[dict[str, Any]]:
        with suppress(urllib.error.URLError), urllib.request.urlopen(query, timeout=5) as answer:
            return list(json.load(answer)["data"]["result"])
        return []

    serve = (sys.executable, "-m", "http.server", str(web), "--directory", tmp_path / "served")
    options = (f"--storage.tsdb.path={tmp_path}/data", f"--web.listen-address=127.0.0.1:{port}")
    with started(*serve), started(program, f"--config.file={tmp_path}/prometheus.yml", *options):
        until("Prometheus has the batch", scraped, seconds=120)
        (sample,) = scraped()

    assert sample["metric"]["batch"] == batch
    assert sample["metric"]["namespace"] == "sweeps"
