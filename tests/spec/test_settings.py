"""The repository's settings."""

import pytest

from generator.spec import parse_settings
from generator.structs.settings import Dataset, Defaults, Results, Settings
from tests.written_specs import DIGEST


def settings(text: str) -> Settings | list[tuple[str, str]]:
    found = parse_settings(text.encode(), "sweepledger.yaml")
    return [(problem.path, problem.code) for problem in found] if isinstance(found, tuple) else found


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "{}", "version: 1"])
def test_empty_settings_are_the_defaults(text: str) -> None:
    assert settings(text) == Settings()


def test_settings_say_all_that_they_can() -> None:
    found = settings(f"""\
version: 1
namespace: team-a
image: train@{DIGEST}
results: {{claim: records}}
branch: release/1.x
remote: upstream
datasets:
  mnist: {{claim: mnist-claim, digest: "{DIGEST}", prepare: [python, -m, trainer.data]}}
  cifar: {{claim: c, digest: "{DIGEST}"}}
""")

    assert found == Settings(
        namespace="team-a",
        defaults=Defaults(image=f"train@{DIGEST}"),
        results=Results(claim="records"),
        branch="release/1.x",
        remote="upstream",
        datasets={
            "mnist": Dataset("mnist", "mnist-claim", DIGEST, prepare=("python", "-m", "trainer.data")),
            "cifar": Dataset("cifar", "c", DIGEST),
        },
    )


def test_settings_with_one_key_keep_the_other_defaults() -> None:
    assert settings("branch: trunk") == Settings(branch="trunk")
    assert settings("results: {}") == Settings()


@pytest.mark.parametrize("name", ["a", "9a", "a-b", "a" * 63])
def test_names_in_the_cluster_are_dns_labels(name: str) -> None:
    found = settings(f'namespace: "{name}"\nresults: {{claim: "{name}"}}')

    assert found == Settings(namespace=name, results=Results(claim=name))


@pytest.mark.parametrize("name", ["", "A", "a_b", "-a", "a-", "a.b", "a" * 64])
def test_other_names_in_the_cluster_are_refused(name: str) -> None:
    dataset = f'"{name}": {{claim: "{name}", digest: "{DIGEST}"}}'

    found = settings(f'namespace: "{name}"\nresults: {{claim: "{name}"}}\ndatasets: {{{dataset}}}')

    assert isinstance(found, list)
    assert [code for _, code in found] == ["cluster-name"] * 4
    assert [path for path, _ in found][:2] == ["namespace", "results.claim"]


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_the_clusters_own_namespaces_are_refused(name: str) -> None:
    assert settings(f"namespace: {name}") == [("namespace", "cluster-name")]


@pytest.mark.parametrize("name", ["kubeflow", "default-2"])
def test_namespaces_that_only_look_alike_are_taken(name: str) -> None:
    assert settings(f"namespace: {name}") == Settings(namespace=name)


@pytest.mark.parametrize("name", ["main", "a", "release/1.x", "a-b_c", "x-", "a/b.c/d", "v1.0"])
def test_branches_and_remotes_are_plain_names(name: str) -> None:
    assert settings(f'branch: "{name}"\nremote: "{name}"') == Settings(branch=name, remote=name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "-x",
        "--x",
        "a..b",
        "a b",
        "a/",
        "/a",
        "a//b",
        "a.",
        ".a",
        "a/.b",
        "a.lock",
        "a.lock/b",
        "https://x",
        "a~1",
        "a:b",
    ],
)
def test_other_branches_and_remotes_are_refused(name: str) -> None:
    assert settings(f'branch: "{name}"\nremote: "{name}"') == [("branch", "git-name"), ("remote", "git-name")]


def test_a_git_name_is_taken_up_to_the_longest_length() -> None:
    assert settings(f"branch: {'a' * 200}") == Settings(branch="a" * 200)
    assert settings(f"branch: {'a' * 201}") == [("branch", "git-name")]


@pytest.mark.parametrize("digest", ["", "x", DIGEST[7:], DIGEST.upper(), DIGEST + "0", DIGEST[:-1], "md5:0"])
def test_digests_are_sha256(digest: str) -> None:
    assert settings(f'datasets: {{m: {{claim: m, digest: "{digest}"}}}}') == [
        ("datasets.m.digest", "data-digest")
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("datasets: {m: {}}", [("datasets.m.claim", "missing-key"), ("datasets.m.digest", "missing-key")]),
        ("datasets: {m: 1}", [("datasets.m", "wrong-type")]),
        ("datasets: [m]", [("datasets", "wrong-type")]),
        ("version: 2", [("version", "wrong-value")]),
        ("program: x", [("program", "unknown-key")]),
        ("nope: x", [("nope", "unknown-key")]),
        ("a: [", [("", "yaml-syntax")]),
        ("%A\n---\n", [("", "directive")]),
        ("image: x", [("image", "image-reference")]),
    ],
)
def test_other_settings_are_refused(text: str, found: list[tuple[str, str]]) -> None:
    assert settings(text) == found
