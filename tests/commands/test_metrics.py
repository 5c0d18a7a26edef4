"""`sweep cluster metrics`: what git knows, in Prometheus' text format."""

from tests.repository import Sandbox


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
