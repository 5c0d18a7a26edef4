"""The repository's settings."""

import json

import pytest

from sweepledger.model.keys import decode, keys_of
from sweepledger.spec import parse_settings
from sweepledger.structs.node_pool import NodeCapacity, PodSettings, Pool, Toleration
from sweepledger.structs.settings import (
    BucketSettings,
    CodeSource,
    Controller,
    Dataset,
    Egress,
    Image,
    ResultsMode,
    ResultsSettings,
    SecretReference,
    Settings,
    TeamBudget,
)
from sweepledger.structs.settings.platform import AddedContainer, SubmitSettings
from sweepledger.structs.settings.results import Nfs, SyncTarget
from sweepledger.structs.settings.trials import Defaults
from tests.sweeps import POD_SETTINGS, with_every_key, with_keys
from tests.written_specs import DIGEST


def settings(text: str) -> Settings | list[tuple[str, str]]:
    found = parse_settings(text.encode(), "sweepledger.yaml")
    return [(problem.path, problem.code) for problem in found] if isinstance(found, tuple) else found


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "{}", "version: 1"])
def test_empty_settings_are_the_defaults(text: str) -> None:
    assert settings(text) == Settings()


EGRESS = "egress: {a: {cidrs: [203.0.113.0/24], ports: [443]}, api-server: {cidrs: [203.0.113.0/24], ports: [443]}}"
SIGNER = "ops@example.org ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
SEVERAL_KEYS = f"""\
version: 1
namespace: team-a
defaults: {{image: train, pool: gpu, retries: 2, timeout: 30m}}
branch: release/1.x
repository: https://git.example/team/sweeps.git
controller: argocd
results:
  claim: records
  checkpoints: checkpoints
  artifacts: artifacts
  mode: branch
  every: 10m
  progress: 15m
  keep: 90d
  nfs: nfs.example.org:/export/results
  sync: {{mlflow: {{to: "https://mlflow.example.org", egress: store, secret: mlflow}}}}
budgets:
  vision: {{sweeps: ["vision-*"], gpu_hours: 100, money: 20.5}}
  everybody: {{money: 500}}
submit: {{ttl: 2d}}
code: {{url: "https://git.example.org/team/sweeps.git", image: train, secret: code-read}}
images:
  train: registry.example.org:5000/team/train:1.4@{DIGEST}
datasets:
  mnist: {{claim: mnist-claim, path: mnist/v1/, digest: "{DIGEST}", prepare: [python, -m, trainer.data]}}
  cifar: {{claim: c, version: torchvision-1, examples: 50000, nfs: "[2001:db8::7]:/"}}
secrets:
  wandb: {{secret: wandb-account, key: api.key, variable: WANDB_API_KEY}}
egress:
  store: {{cidrs: [203.0.113.0/24, "2001:db8::/32"], ports: [443, 8443]}}
pools:
  gpu:
    selector: {{example.org/pool: gpu}}
    tolerations: [{{key: nvidia.com/gpu}}, {{key: spot, value: "yes", effect: NoExecute}}]
    node: {{cpu: 7.5, memory: 28Gi, gpu: 7}}
    startup: 10m
signers: ["{SIGNER}"]
sidecars: {{istio-proxy: {{image: docker.io/istio/proxyv2, volumes: [envoy, token]}}}}
"""


def test_settings_become_values() -> None:
    found = settings(SEVERAL_KEYS)

    assert found == with_keys(
        Settings(),
        namespace="team-a",
        defaults=Defaults("train", "gpu", 2, 1800),
        branch="release/1.x",
        repository="https://git.example/team/sweeps.git",
        controller=Controller.ARGOCD,
        results=ResultsSettings(
            "records",
            "checkpoints",
            "artifacts",
            ResultsMode.BRANCH,
            every_minutes=10,
            progress_minutes=15,
            keep_days=90,
            nfs=Nfs("nfs.example.org", "/export/results"),
            sync={"mlflow": SyncTarget("https://mlflow.example.org", "store", "mlflow")},
        ),
        budgets={
            "vision": TeamBudget("vision", ("vision-*",), 100, 20.5),
            "everybody": TeamBudget("everybody", ("*",), None, 500),
        },
        submit=SubmitSettings(172_800),
        code=CodeSource("https://git.example.org/team/sweeps.git", "train", "code-read"),
        images={"train": Image("train", "registry.example.org:5000/team/train", DIGEST, "1.4")},
        datasets={
            "mnist": Dataset(
                "mnist", "mnist-claim", DIGEST, path="mnist/v1", prepare=("python", "-m", "trainer.data")
            ),
            "cifar": Dataset(
                "cifar", "c", "version:torchvision-1", nfs=Nfs("2001:db8::7", "/"), examples=50_000
            ),
        },
        secrets={"wandb": SecretReference("wandb", "wandb-account", "api.key", "WANDB_API_KEY")},
        egress={"store": Egress("store", ("203.0.113.0/24", "2001:db8::/32"), (443, 8443))},
        pools={"gpu": GPUS},
        signers=(SIGNER,),
        sidecars={
            "istio-proxy": AddedContainer("istio-proxy", "docker.io/istio/proxyv2", ("envoy", "token"))
        },
    )
    assert found.trials.image_of(None) == f"registry.example.org:5000/team/train:1.4@{DIGEST}"


GPUS = Pool(
    "gpu",
    NodeCapacity("7.5", "28Gi", 7),
    selector={"example.org/pool": "gpu"},
    tolerations=(Toleration("nvidia.com/gpu"), Toleration("spot", "yes", "NoExecute")),
    startup_seconds=600,
)


@pytest.mark.parametrize("name", keys_of(Settings))
def test_a_key_with_its_example_is_taken_or_lacks_another(name: str) -> None:
    key = keys_of(Settings)[name]
    example = with_every_key(key.annotation)

    found = settings(json.dumps({name: example}))

    if isinstance(found, Settings):
        groups = [found, *(getattr(found, group) for group in found.__struct_fields__)]
        (value,) = (getattr(group, key.attribute) for group in groups if type(group) is key.owner)
        assert value == decode(key.annotation, example)
    else:
        assert not {code for _, code in found} & {"unknown-key", "wrong-type", "wrong-form", "out-of-range"}


def test_a_pool_may_have_every_key_of_pods() -> None:
    pool = {"node": {"cpu": 1, "memory": "1Gi"}, "pod": with_every_key(PodSettings)}

    found = settings(json.dumps({"pools": {"a": pool}, "kubernetes": "1.34"}))

    assert isinstance(found, Settings), found
    assert found.trials.pools["a"].pod == POD_SETTINGS


NAMES = ["a", "9a", "a-b", "a" * 53, "kubeflow", "default-2"]
NO_NAMES = ["", "A", "a_b", "-a", "a-", "a.b", "a" * 54, "default", "kube-system", "kube-public"]
BRANCHES = ["main", "a", "release/1.x", "a-b_c", "x-", "a/b.c/d", "v1.0", "a" * 200]
NO_BRANCHES = [
    *("", "-x", "--x", "a..b", "a b", "a/", "/a", "a//b", "a.", "a" * 201),
    *(".a", "a/.b", "a.lock", "a.lock/b", "https://x", "a~1", "a:b"),
]
NO_DIGESTS = ["", "x", DIGEST[7:], DIGEST.upper(), DIGEST + "0", DIGEST[:-1], "md5:0"]
LINK = "https://logs.example.org/".ljust(2000, "a")
KEYS = [
    ("namespace", "namespace: '{}'", "cluster-name", NAMES, NO_NAMES),
    ("branch", "branch: '{}'", "name-form", BRANCHES, NO_BRANCHES),
    ("datasets.m.digest", "datasets: {{m: {{claim: m, digest: '{}'}}}}", "data-digest", [], NO_DIGESTS),
    ("logs", "logs: '{}'", "log-link", [LINK], [f"{LINK}a"]),
]


@pytest.mark.parametrize(
    ("key", "text", "value"), [(key, text, value) for key, text, _, taken, _ in KEYS for value in taken]
)
def test_values_at_the_bounds_are_taken(key: str, text: str, value: str) -> None:
    found = settings(text.format(value))

    assert isinstance(found, Settings)
    (group,) = (group for group in (found.trials, found.git, found.platform) if hasattr(group, key))
    assert value in repr(getattr(group, key))


@pytest.mark.parametrize(
    ("key", "text", "code", "value"),
    [(key, text, code, value) for key, text, code, _, refused in KEYS for value in refused],
)
def test_values_beyond_the_bounds_are_refused(key: str, text: str, code: str, value: str) -> None:
    assert settings(text.format(value)) == [(key, code)]


def test_every_name_of_an_object_is_a_dns_label() -> None:
    text = """\
namespace: A
results: {claim: A, checkpoints: A, artifacts: A, bucket: {secret: A, seals: A}, sync: {mlflow: {secret: A}}}
code: {secret: A}
image_pull_secret: A
priority_class: A
collector: {priority_class: A}
argocd: {namespace: A, cluster: A}
dns: {namespace: A}
datasets: {d: {claim: A}}
secrets: {s: {secret: A}}
pools: {p: {queue: A, pod: {runtime_class: A, scheduler: A, priority_class: A, service_account: A}}}
clusters: {c: {argocd: {namespace: A, cluster: A}, dns: {namespace: A}}}
"""

    found = settings(text)

    assert isinstance(found, list)
    assert len([path for path, code in found if code == "cluster-name"]) == text.count(" A")


@pytest.mark.parametrize("mapping", ["images", "datasets", "secrets", "egress", "pools"])
def test_names_that_specs_refer_to_are_dns_labels(mapping: str) -> None:
    found = settings(f"{mapping}: {{A_b: {{}}}}")

    assert isinstance(found, list)
    assert (f"{mapping}.A_b", "cluster-name") in found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("datasets: {m: {}}", [("datasets.m.claim", "missing-key"), ("datasets.m.digest", "missing-key")]),
        ("version: 2", [("version", "wrong-value")]),
        ("program: x", [("program", "unknown-key")]),
        ("a: [", [("", "yaml-syntax")]),
        ("%A\n---\n", [("", "directive")]),
    ],
)
def test_other_settings_are_refused(text: str, found: list[tuple[str, str]]) -> None:
    assert settings(text) == found


IMAGE = f"train@{DIGEST}"
NODE = "node: {cpu: 8, memory: 32Gi}"


@pytest.mark.parametrize(
    "text",
    [
        f"defaults: {{image: train@{DIGEST}}}",
        "defaults: {image: local}",
        f"defaults: {{image: train}}\nimages: {{train: {IMAGE}}}",
        f"images: {{train: a/b_c/d-e.f/g__h:v1_2.3-rc@{DIGEST}}}",
        f'code: {{url: "http://git.example.org/x.git", image: git}}\nimages: {{git: {IMAGE}}}',
        f"pools: {{a: {{{NODE}}}}}",
        f"pools: {{a: {{{NODE}, tolerations: [{{key: a}}]}}}}",
        f"labels: {{team: vision, {'a' * 63}: ''}}",
        "egress: {a: {cidrs: [203.0.113.7/32], ports: [1, 65535]}}",
        "results: {every: 1m}",
        "results: {every: 30m}",
        "submit: {ttl: 6m}",
        f"signers: ['a@b,c@d namespaces=\"git\" {SIGNER.partition(' ')[2]} a comment']",
        "datasets: {m: {claim: m, version: 1.0.0-rc.1+2_3}}",
    ],
)
def test_settings_take_what_the_cluster_takes(text: str) -> None:
    assert isinstance(settings(text), Settings), settings(text)


def a_pool(text: str) -> str:
    return f"pools: {{a: {{{NODE}, {text}}}}}"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"images: {{local: {IMAGE}}}", ("images.local", "image-reference")),
        (f"images: {{a: a@b@{DIGEST}}}", ("images.a", "image-reference")),
        (f"images: {{a: 'a:@{DIGEST}'}}", ("images.a", "image-reference")),
        (f'code: {{url: "https://a/b", image: train@{DIGEST}}}', ("code.image", "not-in-settings")),
        (f'code: {{url: "ssh://a/b", image: a}}\nimages: {{a: {IMAGE}}}', ("code.url", "code-url")),
        (f'code: {{url: "https://a/b?x=1", image: a}}\nimages: {{a: {IMAGE}}}', ("code.url", "code-url")),
        (a_pool("pod: {grace: 29s}"), ("pools.a.pod.grace", "duration")),
        (a_pool("pod: {grace: 61m}"), ("pools.a.pod.grace", "duration")),
        (a_pool("pod: {resources: {cpu: 1}}"), ("pools.a.pod.resources.cpu", "pool-pod")),
        (
            a_pool("pod: {labels: {kueue.sweepledger.dev/x: mine}}"),
            ("pools.a.pod.labels['kueue.sweepledger.dev/x']", "label-reserved"),
        ),
        (a_pool("selector: {b: c/d}"), ("pools.a.selector.b", "label")),
        (a_pool("selector: {}"), ("pools.a.selector", "out-of-range")),
        (a_pool("gpu_type: A100"), ("pools.a.gpu_type", "pool-gpu")),
        (
            "pools: {a: {node: {cpu: 1, memory: 1Gi, gpu: 1}, gpu_resource: kubernetes.io/gpu}}",
            ("pools.a.gpu_resource", "pool-gpu"),
        ),
        ("pools: {a: {node: {cpu: 0, memory: 1Gi}}}", ("pools.a.node.cpu", "quantity")),
        ("egress: {a: {cidrs: [203.0.113.0/24], ports: [0]}}", ("egress.a.ports[0]", "out-of-range")),
        ("egress: {a: {cidrs: [203.0.113.0/24], ports: [65536]}}", ("egress.a.ports[0]", "out-of-range")),
        ("egress: {a: {cidrs: [203.0.113.0/33], ports: [443]}}", ("egress.a.cidrs[0]", "cidr")),
        ("secrets: {a: {secret: a, key: a, variable: PATH}}", ("secrets.a.variable", "environment-name")),
        ("secrets: {a: {secret: a, key: a, variable: A-B}}", ("secrets.a.variable", "environment-name")),
        ("secrets: {a: {secret: a, key: .., variable: A}}", ("secrets.a.key", "name-form")),
        ("results: {nfs: a b:/a}", ("results.nfs", "nfs")),
        ("results: {nfs: a:/a/../b}", ("results.nfs", "nfs")),
        (
            f'{EGRESS}\nresults: {{sync: {{optuna: {{to: "sqlite:///o.db", egress: a}}}}}}',
            ("results.sync.optuna.to", "store-address"),
        ),
        (
            f"{EGRESS}\nresults: {{sync: {{optuna: {{to: 'mysql+pymysql://db/o', egress: api-server}}}}}}",
            ("results.sync.optuna.egress", "not-in-settings"),
        ),
        ("results: {every: 60m}", ("results.every", "duration")),
        ("results: {every: 90s}", ("results.every", "duration")),
        ("results: {keep: 36h}", ("results.keep", "duration")),
        ("results: {keep: 3651d}", ("results.keep", "duration")),
        ("submit: {ttl: 5m}", ("submit.ttl", "duration")),
        ("labels: {kueue.x-k8s.io/queue-name: a}", ("labels['kueue.x-k8s.io/queue-name']", "label-reserved")),
        ("labels: {job-name: a}", ("labels.job-name", "label-reserved")),
        *(
            (f"monitoring: {{labels: {{{key}: a}}}}", (f"monitoring.labels['{key}']", "label-reserved"))
            for key in ("app.kubernetes.io/part-of", "argocd.argoproj.io/instance")
        ),
        ("labels: {a/b/c: d}", ("labels['a/b/c']", "label")),
        ("labels: {/b: d}", ("labels['/b']", "label")),
        ("signers: [a@b ssh-ed25519]", ("signers[0]", "signer")),
        (f"signers: ['# {SIGNER}']", ("signers[0]", "signer")),
        ("limits: {}", ("limits", "out-of-range")),
    ],
)
def test_settings_that_a_cluster_would_refuse(text: str, found: tuple[str, str]) -> None:
    assert settings(text) == [found]


def test_signatures_are_required_only_where_people_merge_results_of_one_cluster() -> None:
    keys = "argocd: {signature_keys: [B5690EEEBB952194]}"
    clusters = "clusters: {a: {argocd: {signature_keys: [B5690EEEBB952194]}}}\ncontroller: argocd"

    problems = parse_settings(clusters.encode(), "sweepledger.yaml")

    assert settings(keys) == [("argocd.signature_keys", "wrong-value")]
    assert isinstance(settings(f"{keys}\nresults: {{mode: branch}}"), Settings)
    assert isinstance(problems, tuple)
    (problem,) = [each for each in problems if "signature_keys" in each.path]
    assert problem.hint == "protect the branch by rules of the git server"


@pytest.mark.parametrize(
    ("url", "names"),
    [
        ("s3://b/x", ("AWS_ALLOW_HTTP", "AWS_ENDPOINT_URL")),
        ("az://b/x", ("AZURE_ALLOW_HTTP", "AZURE_STORAGE_ENDPOINT")),
        ("gs://b/x", ("GOOGLE_ALLOW_HTTP", "GOOGLE_BASE_URL")),
    ],
)
def test_an_endpoint_is_given_to_the_client_of_each_cloud(url: str, names: tuple[str, str]) -> None:
    in_the_clear, endpoint = names

    assert BucketSettings(url, "store").variables == {}
    assert BucketSettings(url, "store", "https://s.example").variables == {endpoint: "https://s.example"}
    assert BucketSettings(url, "store", "http://s.example").variables == {
        endpoint: "http://s.example",
        in_the_clear: "true",
    }
