"""MLflow's folder of a model: `MLmodel`, and the trial's files below `artifacts/`.

Its only flavor is `sweepledger`, which MLflow's registry stores like any other: what loads the files is up to whoever
knows what the trial wrote.
"""

from sweepledger.exchange.models.promoted_trial import PromotedTrial
from sweepledger.exchange.models.statement import SUFFIX, statement
from sweepledger.formats import json, yaml
from sweepledger.structs.file_tree import FileTree
from sweepledger.structs.values import digest

MODEL_FILE = "MLmodel"
ARTIFACTS = "artifacts"
FLAVOR = "sweepledger"


def model_files(trial: PromotedTrial) -> FileTree:
    """Return the folder without the files of the trial, which belong below `artifacts/`."""
    identity = digest([trial.name, trial.program.digest, trial.inputs_digest])
    model = {
        "artifact_path": trial.sweep,
        "flavors": {
            FLAVOR: {
                "artifacts": ARTIFACTS,
                "sweep": trial.sweep,
                "trial": trial.trial,
                "code": trial.program.code.tree,
                "values": dict(trial.assignment),
            }
        },
        "metadata": {
            "commit": trial.commit,
            trial.metric.name: trial.value,
            "interval": None if trial.interval is None else list(trial.interval),
            "inputs_digest": trial.inputs_digest,
        },
        "model_uuid": identity[:32],
        "run_id": trial.trial,
        "utc_time_created": trial.finished.removesuffix("Z").replace("T", " "),
    }
    subjects = {f"{ARTIFACTS}/{artifact.path}": artifact.sha256 for artifact in trial.artifacts}
    return FileTree(
        {
            MODEL_FILE: yaml.dump(model).encode(),
            f"{MODEL_FILE}{SUFFIX}": json.dump(statement(trial, subjects)).encode(),
        }
    )
