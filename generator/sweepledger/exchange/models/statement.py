"""Attestations: in-toto statements with SLSA provenance of what was made from a trial.

A statement is not signed by itself. In git, the signature of the commit or the tag that contains it covers it.
"""

from collections.abc import Mapping
from typing import Any

from sweepledger.exchange.models.promoted_trial import PromotedTrial

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "https://sweepledger.dev/promotion/v1"
BUILDER = "https://sweepledger.dev/promote"
MEDIA_TYPE = "application/vnd.in-toto+json"
SUFFIX = ".intoto.json"
"""Ending of the file with the statement of another file."""
SHA256 = "sha256:"


def statement(trial: PromotedTrial, subjects: Mapping[str, str]) -> dict[str, Any]:
    """Return the statement that files, given by name with their SHA-256, were made from a trial."""
    return {
        "_type": STATEMENT_TYPE,
        "subject": [
            {"name": name, "digest": {"sha256": digest}} for name, digest in sorted(subjects.items())
        ],
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {
                    "sweep": trial.sweep,
                    "trial": trial.trial,
                    "values": dict(trial.assignment),
                    "seed": trial.seed,
                    "command": list(trial.program.command),
                },
                "internalParameters": {
                    "metric": trial.metric.name,
                    "goal": str(trial.metric.goal),
                    "value": trial.value,
                    "interval": None if trial.interval is None else list(trial.interval),
                    "verdict": trial.verdict,
                },
                "resolvedDependencies": [*_dependencies(trial)],
            },
            "runDetails": {
                "builder": {"id": BUILDER},
                "metadata": {
                    "invocationId": trial.name,
                    "startedOn": trial.started,
                    "finishedOn": trial.finished,
                },
            },
        },
    }


def _dependencies(trial: PromotedTrial) -> list[dict[str, Any]]:
    program = trial.program
    dependencies: list[dict[str, Any]] = [
        {"name": "results", "digest": {"gitCommit": trial.commit}},
        {"name": "inputs", "digest": {"sha256": trial.inputs_digest.removeprefix(SHA256)}},
        {"name": "code", "uri": program.code.path, "digest": {"gitTree": program.code.tree}},
    ]
    if "@" in program.image:
        reference, _, digest = program.image.rpartition("@")
        dependencies.append(
            {"name": "image", "uri": reference, "digest": {"sha256": digest.removeprefix(SHA256)}}
        )
    if program.data is not None and program.data.digest.startswith(SHA256):
        digest = program.data.digest.removeprefix(SHA256)
        dependencies.append({"name": "data", "uri": program.data.name, "digest": {"sha256": digest}})
    return dependencies


def promoted_from(data: Any) -> tuple[str, str, dict[str, str]] | None:
    """Return sweep, trial, and the SHA-256 of each file of a statement that `statement` returned; None for others."""
    try:
        definition = data["predicate"]["buildDefinition"]
        if definition["buildType"] != BUILD_TYPE:
            return None
        parameters = definition["externalParameters"]
        subjects = {one["name"]: one["digest"]["sha256"] for one in data["subject"]}
        texts = (parameters["sweep"], parameters["trial"], *subjects, *subjects.values())
        return (*texts[:2], subjects) if all(isinstance(text, str) for text in texts) else None
    except (KeyError, TypeError):
        return None
