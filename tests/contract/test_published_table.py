"""NVIDIA's published table: its sixteen logs go through a sweep and come back as they were printed.

A real repository, the rendered Jobs as real processes under the launcher, and the collector's own commit.
"""

import csv
import shutil
import sys
from pathlib import Path

import pytest
import yaml

from sweepledger.operations.collection.results_commit import ResultsCommit
from tests.repository import Sandbox

ROOT = Path(__file__).parents[2]

TABLE = """\
job,max_learning_rate,momentum,data_aug_cutout_size,batch_size,test acc,total time
1,0.4,0.9,5,128,0.9347,117.764999
2,0.4,0.9,5,512,0.9426,75.399140
3,0.4,0.9,12,128,0.9301,119.592690
4,0.4,0.9,12,512,0.9397,75.619865
5,0.4,0.99,5,128,0.8285,117.680233
6,0.4,0.99,5,512,0.8883,74.556600
7,0.4,0.99,12,128,0.8129,114.646887
8,0.4,0.99,12,512,0.8737,74.983109
9,0.6,0.9,5,128,0.9274,116.857387
10,0.6,0.9,5,512,0.9419,75.062058
11,0.6,0.9,12,128,0.9213,116.772228
12,0.6,0.9,12,512,0.9376,75.540528
13,0.6,0.99,5,128,0.8182,116.791409
14,0.6,0.99,5,512,0.8741,74.523308
15,0.6,0.99,12,128,0.8042,117.292228
16,0.6,0.99,12,512,0.8634,74.602888
"""
PUBLISHED = list(csv.DictReader(TABLE.splitlines()))
OF_THE_LAST_EPOCH = {
    "train time": "2.9695417881011963",
    "train loss": "0.38534954896907214",
    "train acc": "0.8684761597938144",
    "test time": "0.34630489349365234",
    "test loss": "0.3725375",
}
"""What the table leaves out of each log: all have what the one that was printed says."""

SCRIPT = '''"""Leave the log of job JOB_ID where the launcher looks for it."""
import os, shutil
shutil.copy(f"code/results_job_id_{os.environ['JOB_ID']}.log", os.environ["SWEEP_RESULT"])
'''


def log(row: dict[str, str], form: str) -> str:
    """Write a log in one of its forms: seven lines as the post shows, or nine as the code writes."""
    lines = {"epoch": "24", "lr": "0.0"} if form.startswith("nine") else {}
    lines |= {**OF_THE_LAST_EPOCH, "test acc": row["test acc"], "total time": row["total time"]}
    end = "\r\n" if form.endswith("crlf") else "\n"
    return "".join(f"{key},{value}{end}" for key, value in lines.items())


def swept(sandbox: Sandbox, form: str) -> Path:
    """Run the example's sweep over the logs; give the folder of its results."""
    spec = yaml.safe_load((ROOT / "examples/cifar10/sweeps/cifar10.yaml").read_text())
    # What is not here: the cluster's images, its GPUs and its dataset.
    run = {"code": {"path": "code"}, "hyperparams_file": True, "shape": "jobs", "parallelism": 16}
    changed = {"command": [sys.executable, "code/cifar10_train.py"], "run": run}
    sandbox.write("sweeps/cifar10.yaml", yaml.safe_dump(spec | changed, sort_keys=False))
    shutil.rmtree(sandbox.root / "code")
    sandbox.write("code/cifar10_train.py", SCRIPT)
    for row in PUBLISHED:
        path = sandbox.root / f"code/results_job_id_{row['job']}.log"
        path.write_bytes(log(row, form).encode())
    sandbox.commit("Bring the example")
    sandbox.publish_batches("Ask for it")
    assert any(isinstance(event, ResultsCommit) for event in sandbox.local())
    sandbox.pull()
    return sandbox.root / "results/cifar10"


@pytest.mark.usefixtures("needs_kustomize")
@pytest.mark.full_suite("larger examples")
@pytest.mark.parametrize("form", ["nine-crlf", "seven-lf"])
def test_the_published_logs_give_the_published_table(form: str, sandbox: Sandbox) -> None:
    results = swept(sandbox, form)

    with (results / "summary.csv").open(newline="") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: int(row["index"]))
    assert [row["status"] for row in rows] == ["ok"] * 16
    for row, published in zip(rows, PUBLISHED, strict=True):
        assert float(row["metrics.test_acc"]) == float(published["test acc"])
        assert float(row["metrics.total_time"]) == float(published["total time"])
        assert float(row["metrics.train_loss"]) == 0.38534954896907214
        for name in ("max_learning_rate", "momentum", "data_aug_cutout_size", "batch_size"):
            assert float(row[f"params.{name}"]) == float(published[name])
        assert row["params.batch_norm"] == "on"
        assert ("metrics.epoch" in row, "metrics.lr" in row) == (form == "nine-crlf",) * 2
    best = max(rows, key=lambda row: float(row["metrics.test_acc"]))
    assert (int(best["index"]) + 1, best["metrics.test_acc"]) == (2, "0.9426")
    assert sandbox.git("log", "-1", "--format=%s").startswith(
        f"results(cifar10): 16/16 trials, best test_acc 0.9426 ({best['trial']}"
    )
    assert [path for path in results.rglob("*.svg") if "<svg" in path.read_text()]
    readme = (results / "README.md").read_text()
    assert best["trial"] in readme
    assert "0.9426" in readme
    for mean in ("0.934", "0.845"):
        assert mean in readme
