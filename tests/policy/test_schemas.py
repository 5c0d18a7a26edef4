"""What the vendored schemas hold, and how a broken one is told."""

import importlib.util
import json
from pathlib import Path
from typing import Any

from sweepledger.contract import kubernetes_schemas
from sweepledger.contract.kubernetes_schemas import FOLDER

ROOT = Path(__file__).parent.parent.parent
LARGEST_TOGETHER = 400_000
"""Bytes that every installation carries."""


def files() -> dict[str, dict[str, Any]]:
    return {path.name: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}


def tool() -> Any:
    spec = importlib.util.spec_from_file_location("schemas", ROOT / "tools/schemas.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_schemas_are_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.glob("*.json")) <= LARGEST_TOGETHER


def test_every_kind_that_the_tool_takes_is_there_in_every_release() -> None:
    given, documents = tool(), files()
    core = {f"{api} {kind}" for api, kinds in given.KINDS.items() for kind in kinds}
    custom = {kind for _, _, kinds in given.CUSTOM for kind in kinds}

    for release in given.RELEASES:
        assert documents[f"kubernetes-{release}.json"]["kinds"].keys() == core
    assert {name.partition(" ")[2] for name in documents["custom.json"]["kinds"]} == custom


def test_trainer_is_known_in_its_oldest_and_newest_release() -> None:
    releases = files()["custom.json"]["kinds"]["trainer.kubeflow.org/v1alpha1 TrainJob"]

    assert [release for release, _ in releases] == ["trainer v2.0.0", "trainer v2.3.0"]


def test_nothing_in_them_is_for_reading_and_every_reference_leads_somewhere() -> None:
    documents = files()
    core = documents["kubernetes-1.30.json"]["$defs"]
    for name, document in documents.items():
        text = json.dumps(document["$defs"])
        assert "https://" not in text
        there = document["$defs"].keys() | (core.keys() if name == "custom.json" else set())
        assert {ref.rpartition("/")[2] for ref in tool().references(document["$defs"])} <= there


def test_the_pods_of_custom_kinds_are_the_cores() -> None:
    text = json.dumps(files()["custom.json"]["$defs"])

    assert "#/$defs/core.v1.PodSpec" in text
    assert "dnsPolicy" not in text


def broken(kind: str, api: str, **spec: Any) -> list[str]:
    data = {"apiVersion": api, "kind": kind, "metadata": {"name": "x"}, "spec": spec}
    return [finding.message for finding in kubernetes_schemas.findings(api, kind, data)]


def test_messages_name_rule_and_value_in_our_words() -> None:
    assert broken("Job", "batch/v1", template={"spec": {"containers": []}}, backoffLimit="two") == [
        "must be a whole number, got 'two'"
    ]
    assert broken("Job", "batch/v1", template={"spec": {}}) == ["must have 'containers'"]
    assert broken("Job", "batch/v1", template={"spec": {"containers": []}}, trials=3) == [
        "must be absent: Kubernetes 1.37 has no such field"
    ]


def test_a_field_that_only_the_newest_kubernetes_has_is_refused() -> None:
    pod = {"containers": [], "resources": {"limits": {"cpu": "1"}}}

    assert broken("Job", "batch/v1", template={"spec": pod}) == [
        "must be absent: Kubernetes 1.30 has no such field"
    ]


def test_a_custom_kind_is_right_if_one_of_its_releases_takes_it() -> None:
    api = "trainer.kubeflow.org/v1alpha1"
    reference = {"name": "runtime"}
    old = broken("TrainJob", api, runtimeRef=reference, podSpecOverrides=[{"targetJobs": [{"name": "node"}]}])
    none = broken("TrainJob", api, runtimeRef=reference, podOverrides=[])

    assert old == []
    assert none == ["must be absent: trainer v2.3.0 has no such field"]
