"""The page on Secrets: its objects are what the settings need, and `sweep lint` has nothing against them."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from sweepledger import policy
from sweepledger.problems import Problem
from sweepledger.reader import manifests
from sweepledger.render.platform import GitSource
from sweepledger.render.platform.manual_setup import required_secrets
from sweepledger.spec import parse_settings
from sweepledger.structs.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs/how-to/secrets.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
SOURCE = GitSource("ssh://git@git.example.org/team/sweeps.git", "main")


def settings() -> Settings:
    (text,) = (block for block in BLOCKS if block.startswith("namespace:"))
    made = parse_settings(text.encode(), "sweepledger.yaml")
    assert isinstance(made, Settings)
    return made


def objects(kind: str) -> list[dict[str, Any]]:
    listed = [one for block in BLOCKS for one in yaml.safe_load_all(block)]
    return [one for one in listed if one.get("kind") == kind]


def linted(*texts: str) -> tuple[Problem, ...]:
    read = [manifests.read(text.encode(), f"{number}.yaml") for number, text in enumerate(texts)]
    assert not [problem for one in read for problem in one.problems]
    return policy.lint([document for one in read for document in one.documents], settings()).problems


def test_each_secret_has_the_name_and_the_keys_that_bootstrap_lists() -> None:
    listed = {(one.namespace, one.name): {*one.keys} for one in required_secrets(settings(), SOURCE)}
    made: list[tuple[Mapping[str, Any], set[str]]] = [
        (one, {item["secretKey"] for item in one["spec"]["data"]}) for one in objects("ExternalSecret")
    ]
    made += [(one, {*one["stringData"]}) for one in objects("Secret")]

    assert len(made) == 3
    for one, keys in made:
        assert listed[one["metadata"]["namespace"], one["metadata"]["name"]] == keys
    for one in objects("ExternalSecret"):
        assert one["spec"]["target"]["name"] == one["metadata"]["name"]


def test_lint_accepts_them_and_says_what_it_cannot_check() -> None:
    problems = linted(*(block for block in BLOCKS if "kind: " in block and "apiVersion: " in block))

    assert {problem.code for problem in problems} == {"kind-skipped"}
    assert all("no schema for ExternalSecret" in problem.message for problem in problems)


def test_a_secret_with_one_value_in_the_clear_is_refused() -> None:
    (text,) = (block for block in BLOCKS if "kind: Secret\n" in block)

    problems = linted(text.replace("stringData:", "stringData:\n  user: admin"))

    assert "secret-exposed" in {problem.code for problem in problems}
