"""What a batch asks for, read back from what the generator wrote."""

from pathlib import Path

import pytest

from sweepledger.formats import batch_yaml, excerpts
from sweepledger.structs.run_config import Resources, RunConfig, Shape

CASES = Path(__file__).parents[1] / "golden/cases"
DISTRIBUTED = Resources("4", "16Gi", 1)
EXPECTED = {
    "indexed": RunConfig(parallelism=1),
    "jobs": RunConfig(resources=Resources("1500m", "4Gi", 1), parallelism=2, timeout_seconds=7200),
    "options-indexed": RunConfig(resources=Resources("2", "8Gi", 2), parallelism=2, timeout_seconds=7200),
    "options-jobs": RunConfig(resources=Resources("2", "8Gi", 1), parallelism=1, timeout_seconds=7200),
    "mpi-job": RunConfig(resources=DISTRIBUTED, nodes=2, parallelism=2, timeout_seconds=7200),
    "train-job": RunConfig(resources=DISTRIBUTED, nodes=4, parallelism=2, timeout_seconds=7200),
    "job-set": RunConfig(resources=DISTRIBUTED, nodes=2, parallelism=2, timeout_seconds=7200),
    "pytorch-job": RunConfig(resources=DISTRIBUTED, nodes=3, parallelism=2, timeout_seconds=7200),
    "tf-job": RunConfig(resources=DISTRIBUTED, nodes=4, parallelism=2, timeout_seconds=7200),
}


@pytest.mark.parametrize("longer", [0, 100_000])
@pytest.mark.parametrize("case", sorted(EXPECTED))
def test_every_shape_says_what_its_trials_ask_for(case: str, longer: int) -> None:
    """However long the command is: what could not be read would be no reservation in a budget."""
    (folder,) = (CASES / case / "expected").iterdir()
    held = batch_yaml.read((folder / "batch.yaml").read_text())

    config = excerpts.read_run_config(
        (folder / "job.yaml").read_bytes().replace(b"\nkind: ", b"\n# " + b"x" * longer + b"\nkind: ", 1),
        (folder / "launch.json").read_bytes(),
        held.shape,
        trials=held.trials,
    )

    assert config == EXPECTED[case]


@pytest.mark.parametrize("manifests", [b"", b"\xff", b"kind: Job\n"])
def test_what_cannot_be_read_asks_for_nothing_known(manifests: bytes) -> None:
    assert excerpts.read_run_config(manifests, b'{"timeout_seconds": 1}', Shape.INDEXED, trials=1) is None
