"""The page on volumes: its settings are valid, and its manifests are what the settings need."""

import re
from pathlib import Path

import yaml

from sweepledger.contract import kubernetes_schemas
from sweepledger.spec import parse_settings
from sweepledger.structs.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs/how-to/volumes.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_its_settings_are_valid() -> None:
    written = [block for block in BLOCKS if block.startswith("results:")]
    written += [f"{line}\n" for line in re.findall(r"`(results: \{.*?\})`", PAGE)]

    assert len(written) == 2
    for text in written:
        assert isinstance(parse_settings(text.encode(), "sweepledger.yaml"), Settings), text


def test_its_objects_have_the_claim_of_the_settings_and_a_handle_each() -> None:
    objects = [one for block in BLOCKS if "kind:" in block for one in yaml.safe_load_all(block)]

    claims = {one["spec"]["claimRef"]["name"] for one in objects if one["kind"] == "PersistentVolume"}
    claims |= {one["metadata"]["name"] for one in objects if one["kind"] == "PersistentVolumeClaim"}
    handles = [one["spec"]["csi"]["volumeHandle"] for one in objects if "csi" in one["spec"]]
    assert claims == {Settings().results.claim}
    assert len(set(handles)) == len(handles) == 2
    for one in objects:
        known = kubernetes_schemas.findings(one["apiVersion"], one["kind"], one)
        assert list(known) == []
