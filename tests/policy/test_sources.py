"""What kustomize never gets to see."""

from collections.abc import Mapping

import pytest

from sweepledger.contract import check_kustomization
from sweepledger.formats import yaml

PLACE = "overlays/active/lr-b1-00000000"
KUSTOMIZATION: Mapping[str, object] = {
    "apiVersion": "kustomize.config.k8s.io/v1beta1",
    "kind": "Kustomization",
    "namespace": "sweeps",
    "resources": ["../../../base/trial/v1"],
    "components": ["../../../base/components/gpu/v1"],
    "patches": [{"path": "job.yaml", "target": {"kind": "Job", "name": "trial"}}],
    "configMapGenerator": [{"name": "lr-launcher", "namespace": "sweeps", "files": ["launch.py"]}],
    "generatorOptions": {"disableNameSuffixHash": True, "immutable": True},
}
TRIAL = yaml.dump(
    {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": ["job.yaml"]}
)
GPU = yaml.dump(
    {
        "apiVersion": "kustomize.config.k8s.io/v1alpha1",
        "kind": "Component",
        "patches": [{"path": "patch.yaml", "target": {"kind": "Job"}}],
    }
)
JOB = yaml.dump({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "trial"}})
BASES = {
    "trial/v1/kustomization.yaml": TRIAL,
    "trial/v1/job.yaml": JOB,
    "components/gpu/v1/kustomization.yaml": GPU,
    "components/gpu/v1/patch.yaml": JOB,
}


def lint_messages(changes: Mapping[str, object] = {}, more: Mapping[str, str] = {}) -> list[str]:
    files = {
        "kustomization.yaml": yaml.dump({**KUSTOMIZATION, **changes}),
        "job.yaml": JOB,
        "launch.py": "# &anchor *alias !tag",
        **{path: text for path, text in more.items() if "/" not in path},
    }
    below = {**BASES, **{path: text for path, text in more.items() if "/" in path}}
    problems = check_kustomization(encoded(files), encoded(below), place=PLACE)
    assert {problem.code for problem in problems} <= {"kustomization-unsafe"}
    return [f"{problem.file}: {problem.path}: {problem.message}" for problem in problems]


def encoded(files: Mapping[str, str]) -> dict[str, bytes]:
    return {path: text.encode() for path, text in files.items()}


def test_what_the_generator_writes_is_let_through() -> None:
    assert lint_messages() == []


RENAMING = {
    "patch": "- op: replace\n  path: /metadata/name\n  value: lr-b1-00000000-launcher\n",
    "target": {"kind": "ConfigMap", "name": "launcher"},
    "options": {"allowNameChange": True},
}
MERGING = {"name": "launcher", "behavior": "merge", "files": ["launch.json"]}
LAUNCHER = {
    "launcher/v1/launch.py": "pass\n",
    "launcher/v1/kustomization.yaml": yaml.dump(
        {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "configMapGenerator": [{"name": "launcher", "files": ["launch.py"]}],
            "generatorOptions": {"disableNameSuffixHash": True, "immutable": True},
        }
    ),
    "launch.json": "{}",
}


def with_launcher(renaming: object = RENAMING, merging: object = MERGING) -> list[str]:
    changes = {
        "resources": ["../../../base/launcher/v1", "../../../base/trial/v1"],
        "patches": [renaming],
        "configMapGenerator": [merging],
    }
    return lint_messages(changes, LAUNCHER)


def test_the_launcher_of_the_base_gets_the_batchs_name_and_launch_file() -> None:
    assert with_launcher() == []


@pytest.mark.parametrize(
    "renaming",
    [
        {**RENAMING, "patch": RENAMING["patch"].replace("/metadata/name", "/data/launch.py")},  # type: ignore[attr-defined]
        {**RENAMING, "patch": f"{RENAMING['patch']}- op: remove\n  path: /immutable\n"},
        {**RENAMING, "patch": "metadata: {name: other}\n"},
        {**RENAMING, "target": {"kind": "Job", "name": "launcher"}},
        {**RENAMING, "target": {"kind": "ConfigMap"}},
        {**RENAMING, "options": {"allowNameChange": True, "allowKindChange": True}},
    ],
    ids=range(6),
)
def test_no_other_patch_is_written_into_a_kustomization(renaming: object) -> None:
    assert [message for message in with_launcher(renaming) if ": patches: " in message]


@pytest.mark.parametrize(
    "merging",
    [
        {**MERGING, "behavior": "replace"},
        {**MERGING, "files": ["launch.json", "launch.py"]},
        {**MERGING, "files": ["job.yaml"]},
        {**MERGING, "files": ["pack.py"]},
    ],
    ids=["replaced", "with a program", "another file", "the program of packs"],
)
def test_the_program_of_the_launcher_is_never_replaced(merging: object) -> None:
    assert [message for message in with_launcher(merging=merging) if ": configMapGenerator: " in message]


@pytest.mark.parametrize(
    ("folder", "file", "is_safe"),
    [
        ("components/pack/v1", "pack.py", True),
        ("components/pack/v1", "launch.py", False),
        ("components/gpu/v2", "pack.py", False),
    ],
    ids=["packs", "the launcher", "another component"],
)
def test_only_the_component_of_packs_adds_its_program(folder: str, file: str, *, is_safe: bool) -> None:
    component = {
        "apiVersion": "kustomize.config.k8s.io/v1alpha1",
        "kind": "Component",
        "configMapGenerator": [{**MERGING, "files": [file]}],
    }
    more = {f"{folder}/kustomization.yaml": yaml.dump(component), f"{folder}/{file}": "pass"}

    assert (lint_messages({"components": [f"../../../base/{folder}"]}, more) == []) is is_safe


@pytest.mark.parametrize(("base", "is_safe"), [("components/pack/v1", True), ("launcher/v1", False)])
def test_the_component_of_packs_alone_changes_the_pod(base: str, *, is_safe: bool) -> None:
    path = f"{base}/kustomization.yaml"
    component = {
        "apiVersion": "kustomize.config.k8s.io/v1alpha1",
        "kind": "Component",
        "configMapGenerator": [{**MERGING, "files": ["pack.py"]}],
    }
    known = yaml.load(LAUNCHER[path]) if path in LAUNCHER else component
    more = {
        **LAUNCHER,
        path: yaml.dump({**known, "patches": [{"path": "patch.yaml", "target": {"kind": "Job"}}]}),
        f"{base}/patch.yaml": JOB,
        f"{base}/pack.py": "pass",
    }
    key = "components" if base.startswith("components") else "resources"

    messages = lint_messages({key: [f"../../../base/{base}", *(() if is_safe else ("job.yaml",))]}, more)

    assert (messages == []) is is_safe


RESOURCES = [
    *("https://example.org/job.yaml", "http://127.0.0.1:9/x", "github.com/kubernetes/examples"),
    *("git@example.org:a/b.git", "git::https://example.org/a", "ssh://git@example.org/a", "ext::sh -c id"),
    *("file:///etc", "/etc", "..", "../../../..", "../lr-b1-11111111", "../../../base/trial/v1/job.yaml"),
    *("../../../base/trial/v2", "../../../base/trial/v1?ref=main"),
    "../../../base/trial/v1/../../../clusters",
    *("../../../base/components/gpu/v1", "../../../base/trial/v1\n", "nowhere.yaml", "kustomization.yaml"),
    ["job.yaml"],
    {"path": "job.yaml"},
]


@pytest.mark.parametrize("entry", RESOURCES, ids=repr)
def test_a_resource_is_a_file_beside_it_or_a_base_that_is_there(entry: object) -> None:
    (message,) = lint_messages({"resources": [entry]})

    assert "resources: must be a file beside it or a base of the repository" in message


OTHER_BASES = ["job.yaml", "../../../base/trial/v1", "../../../base/components/gpu/v2"]


@pytest.mark.parametrize("entry", [*RESOURCES[:9], *OTHER_BASES], ids=repr)
def test_a_component_is_one_of_the_repository_that_is_there(entry: object) -> None:
    (message,) = lint_messages({"components": [entry]})

    assert "components: must be a component of the repository" in message


OTHER_KEYS = """
bases crds generators helmCharts helmGlobals namePrefix nameSuffix openapi patchesJson6902
patchesStrategicMerge replacements secretGenerator sortOptions transformers validators vars
buildMetadata commonLabels commonAnnotations configurations inventory <<
"""


@pytest.mark.parametrize("key", OTHER_KEYS.split())
def test_no_other_key_is_allowed(key: str) -> None:
    (message,) = lint_messages({key: ["x"]})

    assert f": {key}: must be one of apiVersion, components" in message


@pytest.mark.parametrize(
    "patch",
    [
        {"patch": "- op: remove"},
        {"path": "../../../base/trial/v1/job.yaml"},
        {"path": "https://example.org/p.yaml"},
        {"path": "job.yaml", "patch": "x"},
        {"path": "job.yaml", "target": {"namespace": "kube-system"}},
        {"path": "job.yaml", "target": {"labelSelector": "a=b"}},
        {"path": "job.yaml", "target": "Job"},
        {"path": "job.yaml", "options": {"unknown": True}},
        {"path": ["job.yaml"]},
        "job.yaml",
    ],
    ids=repr,
)
def test_a_patch_is_a_file_beside_it_and_its_target_an_object_of_the_batch(patch: object) -> None:
    assert lint_messages({"patches": [patch]})


@pytest.mark.parametrize(
    "generator",
    [
        {"name": "a", "envs": ["launch.py"]},
        {"name": "a", "literals": ["a=b"]},
        {"name": "a", "files": ["../../../etc/passwd"]},
        {"name": "a", "files": ["x=/etc/passwd"]},
        {"name": "a", "files": [["launch.py"]]},
        "launch.py",
    ],
    ids=repr,
)
def test_a_config_map_holds_files_beside_it(generator: object) -> None:
    (message,) = lint_messages({"configMapGenerator": [generator]})

    assert "configMapGenerator: must name files beside it" in message


@pytest.mark.parametrize(
    "changes",
    [
        {"labels": [{"pairs": {"a": "b"}, "includeSelectors": True}]},
        {"labels": ["a"]},
        {"images": [{"name": "a", "unknown": "b"}]},
        {"kind": "Component"},
        {"apiVersion": "v1"},
    ],
    ids=repr,
)
def test_labels_touch_no_selector_and_nothing_calls_itself_otherwise(changes: Mapping[str, object]) -> None:
    assert len(lint_messages(changes)) == 1


BOMB = "a: &a [x, x]\n" + "".join(
    f"{name}: &{name} [*{before}, *{before}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
HARMFUL = {
    "bomb": (BOMB, "must hold no anchor or alias, got one in line 1"),
    "circle": ("a: &a [*a]\n", "must hold no anchor or alias"),
    "tag": ("a: !!binary aGk=\n", "must hold no tag"),
    "deep": ("[" * 200 + "]" * 200, "must nest at most 32 levels"),
    "very deep": ("[" * 20_000, "must"),
    "deep blocks": ("- " * 200 + "x", "must nest at most 32 levels"),
    "broken": ("a: [", "must be YAML"),
    "control": ("a: \x07", "must be YAML"),
}


@pytest.mark.parametrize(("text", "result"), HARMFUL.values(), ids=HARMFUL)
@pytest.mark.parametrize(
    "path",
    [
        "kustomization.yaml",
        "job.yaml",
        *(path for path in BASES if path != "components/gpu/v1/kustomization.yaml"),
    ],
)
def test_no_bomb_reaches_kustomize_from_the_overlay_or_a_base(path: str, text: str, result: str) -> None:
    (message,) = lint_messages(more={path: text})

    where = f"base/{path}" if "/" in path else f"{PLACE}/{path}"
    assert message.startswith(f"{where}: ")
    assert result in message


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("resources", ["https://example.org/x.yaml"]),
        ("resources", ["../../jobs/v1"]),
        ("resources", ["../../../base/trial/v1"]),
        ("components", ["../../../base/components/gpu/v1"]),
        ("configMapGenerator", [{"name": "x", "files": ["job.yaml"]}]),
        ("helmCharts", [{"name": "x"}]),
        ("patches", [{"path": "../../../sweepledger.yaml"}]),
    ],
    ids=repr,
)
@pytest.mark.parametrize("base", ["trial/v1", "components/gpu/v1"])
def test_a_base_of_the_same_change_is_vetted_as_well(base: str, key: str, value: object) -> None:
    text = yaml.dump({**yaml.load(BASES[f"{base}/kustomization.yaml"]), key: value})

    messages = lint_messages(more={f"{base}/kustomization.yaml": text})

    assert messages
    assert all(message.startswith(f"base/{base}/kustomization.yaml: {key}") for message in messages)


@pytest.mark.parametrize("name", ["kustomization.yml", "Kustomization"])
def test_a_folder_has_one_kustomization(name: str) -> None:
    assert "the folder's only kustomization" in lint_messages(more={f"trial/v1/{name}": TRIAL})[0]


@pytest.mark.parametrize("text", ["", "[]", "a: 1\n---\nb: 1\n", "text"], ids=repr)
def test_what_is_no_mapping_is_no_kustomization(text: str) -> None:
    assert len(lint_messages(more={"kustomization.yaml": text})) == 1
