"""The page on Secrets: its objects are what the settings need, and `sweep check` has nothing against them."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from sweepledger.operations.checks.cluster_files import is_sealed
from sweepledger.spec import parse_settings
from sweepledger.structs.platform import GitSource
from sweepledger.structs.settings import Settings
from tests.render.platforms import secrets_of

PAGE = (Path(__file__).parents[2] / "docs/how-to/secrets.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
SOURCE = GitSource("ssh://git@git.example.org/team/sweeps.git", "main")
WEB = GitSource("https://github.com/team/sweeps.git", "main")


def settings() -> Settings:
    (text,) = (block for block in BLOCKS if block.startswith("namespace:"))
    made = parse_settings(text.encode(), "sweepledger.yaml")
    assert isinstance(made, Settings)
    return made


def objects(kind: str) -> list[dict[str, Any]]:
    listed = [one for block in BLOCKS for one in yaml.safe_load_all(block)]
    return [one for one in listed if one.get("kind") == kind]


def test_each_secret_has_the_name_and_the_keys_that_bootstrap_lists() -> None:
    listed = {(one.namespace, one.name): {*one.keys} for one in secrets_of(settings(), SOURCE)}
    made: list[tuple[Mapping[str, Any], set[str]]] = [
        (one, {item["secretKey"] for item in one["spec"]["data"]})
        for one in objects("ExternalSecret")
        if "template" not in one["spec"]["target"]
    ]
    made += [(one, {*one["stringData"]}) for one in objects("Secret")]

    assert len(made) == 4
    for one, keys in made:
        assert listed[one["metadata"]["namespace"], one["metadata"]["name"]] == keys


def test_the_secret_with_a_token_of_an_app_has_the_keys_of_an_address_with_a_password() -> None:
    listed = {(one.namespace, one.name): {*one.keys} for one in secrets_of(settings(), WEB)}
    (made,) = (one for one in objects("ExternalSecret") if "template" in one["spec"]["target"])
    (generator,) = objects("GithubAccessToken")
    written = made["spec"]["target"]["template"]["data"]

    assert listed[made["metadata"]["namespace"], made["metadata"]["name"]] == {*written}
    (source,) = made["spec"]["dataFrom"]
    assert source["sourceRef"]["generatorRef"] == {
        "apiVersion": generator["apiVersion"],
        "kind": generator["kind"],
        "name": generator["metadata"]["name"],
    }
    assert generator["metadata"]["namespace"] == made["metadata"]["namespace"]
    # What a generator makes, by the name with which the template reads it; the signing key is a Secret of its own.
    assert {text.strip("{} .") for text in written.values()} == {"x-access-token", "token"}
    assert ("sweeps-collector", "sweep-git-signing") in listed


def test_what_is_made_has_the_name_of_what_asks_for_it() -> None:
    for one in objects("ExternalSecret"):
        assert one["spec"]["target"]["name"] == one["metadata"]["name"]


def test_the_sealed_secret_of_the_page_is_accepted_and_a_value_in_the_clear_is_not() -> None:
    (text,) = (block for block in BLOCKS if "kind: Secret\n" in block)
    sealed = yaml.safe_load(text)

    assert is_sealed(sealed)
    assert not is_sealed({**sealed, "stringData": {**sealed["stringData"], "user": "admin"}})
