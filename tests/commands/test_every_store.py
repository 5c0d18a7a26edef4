"""What a person does with a sweep on one machine is the same whatever `results.store` says: all files are kept here."""

import pytest

from tests.repository import IMAGE, Sandbox, append_to

REPOSITORY, _, DIGEST = IMAGE.partition("@")
BUCKET = (
    'results: {store: bucket, keep: 30d, bucket: {url: "s3://ml-sweeps/vision", egress: bucket}}\n'
    f"images: {{collector: {REPOSITORY}@{DIGEST}}}\n"
    "egress: {bucket: {cidrs: [203.0.113.0/24], ports: [443]}}\n"
)
STORES = {
    "bucket": BUCKET,
    "volume": "results: {store: volume, keep: 30d}\n",
    "api": "results: {store: api}\n",
    "claim": "results: {store: claim, claim: sweep-results, keep: 30d}\n",
}
KEEPS = """
import os as _os
with open(_os.path.join(_os.environ["SWEEP_ARTIFACTS"], "model"), "w") as _file:
    _file.write("weights of " + _os.environ["SWEEP_TRIAL_ID"])
print("trained " + _os.environ["SWEEP_TRIAL_ID"])
"""


def sweep(sandbox: Sandbox, *arguments: str, code: int = 0) -> str:
    """Run a command without any credential and without a cluster; give what it printed."""
    done = sandbox.sweep(*arguments, KUBECONFIG="/nowhere")
    assert done.returncode == code, f"{arguments}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


@pytest.fixture(params=STORES)
def laptop(request: pytest.FixtureRequest, sandbox: Sandbox, needs_kustomize: None) -> Sandbox:
    """A repository with a spec of three trials, whose program keeps a file."""
    sandbox.write("sweepledger.yaml", f"version: 1\n{STORES[request.param]}")
    sandbox.name_person()
    append_to(sandbox.root / "code/train.py", KEEPS)
    sandbox.spec()
    sandbox.publish("Keep a file")
    return sandbox


@pytest.mark.full_suite("whole runs")
@pytest.mark.sampled(1)
@pytest.mark.parametrize("engine", ["run", "local"])
def test_trials_of_one_machine_are_recorded_and_reproduced(engine: str, laptop: Sandbox) -> None:
    if engine == "run":
        sweep(laptop, "run", "peak")
    else:
        sweep(laptop, "generate", "peak")
        laptop.publish("Request trials")
        sweep(laptop, "cluster", "local", "--once")
        laptop.pull()
    (batch,) = laptop.batches()
    assert not batch.is_active, "its results are recorded"
    trial = batch.rows[1].trial

    assert f"trained {trial}" in sweep(laptop, "logs", trial)
    sweep(laptop, "show", trial, "--fetch", "artifacts")
    assert (laptop.root / "artifacts/model").read_text() == f"weights of {trial}"
    assert "equal to the last bit" in sweep(laptop, "show", trial, "--reproduce", "--run")
    sweep(laptop, "verify", "peak")
