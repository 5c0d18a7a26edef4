"""Hostile settings of collector, monitoring, logs and stores, and files of monitoring beside what the settings give."""

import pytest

from sweepledger.operations.scaffold.bootstrap import BootstrapRequest, bootstrap
from sweepledger.structs.settings import Controller
from tests.attacks.changing import SETTINGS
from tests.attacks.edits import Edit, errors, put, replaced
from tests.operations.test_bootstrap import URL
from tests.repository import Sandbox
from tests.spec.test_settings import settings

STORE = """egress: {{store: {{cidrs: [203.0.113.0/24], ports: [443]}}}}
results: {{sync: {{{store}: {{to: '{to}', egress: store, secret: {name}}}}}}}"""
PROXY = "egress: {{p: {{cidrs: [203.0.113.0/24], ports: [443]}}}}\nproxy: {{egress: p, {}}}"
FORMS = [
    *(
        f"controller: flux\nclusters: {{{text}: {{}}}}"
        for text in ("'../x'", "'a/b'", "A", '"a\\n"', "'{{x}}'", "-a")
    ),
    *(f"kubernetes: {text}" for text in ("latest", "'1.9'", "'2.0'", '"1.34\\n"', "'1.34; id'")),
    *(
        PROXY.format(f"address: {text}")
        for text in ("'http://u:p@x y'", '"http://x\\n"', "file:///etc", "'http://x/$(id)'")
    ),
    *(PROXY.format(f"address: 'http://x:1', except: [{text}]") for text in ("'a b'", "'a,b'", '"a\\nb"')),
    *(f"authorities: {text}" for text in ("ca/../../etc/x", '"ca/a\\nb"', "ca/a/b", "ca", "ca/", "A/b")),
    *(f"mirrors: {{{text}: mirror.example.org}}" for text in ("''", "'.*'", "'a b'", "'docker.io/'", "A")),
    *(
        f"mirrors: {{docker.io: {text}}}"
        for text in ("''", "'.*'", "'a@sha256:1'", '"a\\nb"', "'a.example/.*'")
    ),
    *(f"sidecars: {{mesh: {{image: {text}}}}}" for text in ("''", "'.*'", "'a|b'", "'a.example/x@sha256:1'")),
    "sidecars: {mesh: {image: a.example/b, volumes: ['a b']}}",
]
"""Texts of which the schema says the form, and no other rule says more."""
REFUSED = [
    *FORMS,
    *(
        f"argocd: {{cluster: {text}}}"
        for text in ("'https://x/{{.path}}'", "'http://x'", "'a b'", "''", '"a\\nb"')
    ),
    *(
        f"collector: {{memory: {text}}}"
        for text in ("1", "1k", "1Ki", "0Mi", "-1Mi", "0.5Mi", "1023Ti", "[1]")
    ),
    *(
        f"collector: {{memory: {text}}}"
        for text in ("'256Mi\\n'", "\uff12\uff15\uff16Mi", "99999999999999999999Ti")
    ),
    *(f"collector: {{disk: {text}}}" for text in ("1Ki", "0Gi", "1000000Ti")),
    *(
        f"collector: {{priority_class: {text}}}"
        for text in ('"a\\nb"', '"{{.x}}"', "''", "A", "'..'", "true")
    ),
    *(
        place.format(name)
        for place in (
            "priority_class: {}",
            "collector: {{priority_class: {}}}",
            "pools: {{a: {{node: {{cpu: 4, memory: 8Gi}}, pod: {{priority_class: {}}}}}}}",
        )
        for name in ("system-node-critical", "system-cluster-critical", "system-own")
    ),
    *(f"collector: {{pool: {text}}}" for text in ("nowhere", "''", '"a\\nb"')),
    "collector: {namespace: kube-system}",
    "collector: {command: [sh]}",
    "collector: []",
    "monitoring: []",
    *(f"monitoring: {{labels: {{{text}: c}}}}" for text in ('"a b"', '"a\\nb"', "app.kubernetes.io/name")),
    *(f"monitoring: {{labels: {{{text}: c}}}}" for text in ("argocd.argoproj.io/instance", "job-name")),
    "monitoring: {labels: {kustomize.toolkit.fluxcd.io/name: c}}",
    *(f"monitoring: {{labels: {{release: {text}}}}}" for text in ('"{{ x }}"', '"a\\nb"', "1", "a" * 64)),
    *(
        f"monitoring: {{notify: {{service: slack, channel: {text}}}}}"
        for text in ('"a\\nb"', '"\\e[31m"', '"a\\u202eb"', "a" * 5000)
    ),
    "monitoring: {notify: {service: email, channel: x}}",
    *(
        f"secrets: {{a: {{secret: {text}, key: a, variable: A}}}}"
        for text in ("sweep-git-read", "sweep-git-signing", "sweep-git-write")
    ),
    *(
        f"pools: {{a: {{node: {{cpu: 4, memory: 8Gi}}, pod: {{{text}}}}}}}"
        for text in (
            'labels: {"sweepledger.dev/egress-all": "true"}',
            'labels: {"kueue.x-k8s.io/queue-name": a}',
            'labels: {"statefulset.kubernetes.io/pod-name": a}',
            'annotations: {"sweepledger.dev/trial": t0}',
            'annotations: {"batch.kubernetes.io/job-completion-index": "0"}',
            'annotations: {"batch.kubernetes.io/job-index-ignored-failure-count": "0"}',
            'annotations: {"a b": c}',
            'runtime_class: "../x"',
            'scheduler: ""',
            'service_account: "a\\nb"',
            "tokens: {vault: {audience: vault}}",
            "service_account: sweep-trial, tokens: {vault: {audience: vault}}",
            *(
                f"service_account: trainer, tokens: {text}"
                for text in (
                    "{../x: {audience: vault}}",
                    "{vault: {audience: https://kubernetes.default.svc.cluster.local}}",
                    "{vault: {audience: Kubernetes}}",
                    '{vault: {audience: "vault\\n"}}',
                    '{vault: {audience: ""}}',
                    "{vault: {audience: vault, expires: 1s}}",
                    "{vault: {audience: vault, expires: 400d}}",
                    "{vault: {}}",
                )
            ),
            "resources: {cpu: 100}",
            'resources: {"nvidia.com/gpu": 1}',
            'resources: {"kubernetes.io/x": 1}',
            'resources: {"example.org/x": -1}',
            "grace: 100h",
            "grace: -1s",
        )
    ),
    *(f"results: {{store: {text}}}" for text in ("API", "null", "[api]", "api, claim: x", "api, keep: 30d")),
    "budgets: {'{{x}}': {gpu_hours: 1}}",
    *(f"logs: '{text}'" for text in ("javascript:alert(1)", "file:///etc/passwd", "https://x/{")),
    *(f"logs: '{text}'" for text in ("https://x/{0}", "https://x/{trial.__class__}")),
    *(f"logs: {text}" for text in ("https://user:password@x/{trial}", '"https://x/\\e]8;;"')),
    *(
        STORE.format(store=store, to=to, name=name)
        for store, to, name in (
            ("mlflow", "--x", "a"),
            ("mlflow", "file:///etc", "a"),
            ("mlflow", "https://x", "../a"),
            ("mlflow", "https://x", "sweep-git-write"),
            ("optuna", "postgresql://host/db", "sweep-git-read"),
            ("optuna", "sqlite:////etc/passwd", "a"),
            ("optuna", "postgresql://user:password@host/db", "a"),
            ("wandb", "https://x", "a"),
        )
    ),
]
ACCEPTED = [
    "controller: flux\nclusters: {eu: {}, us-2: {}}",
    "kubernetes: '1.34'",
    "argocd: {cluster: gpu-eu}",
    "argocd: {cluster: 'https://[2001:db8::1]:6443/k8s/clusters/c-1'}",
    PROXY.format("address: 'http://[2001:db8::1]:3128', except: [.example.org, 192.0.2.0/24]"),
    "authorities: company-ca/bundle.pem",
    "mirrors: {docker.io: mirror.example.org:5000/cache, registry.example.org/team: other.example/team}",
    "sidecars: {istio-proxy: {image: docker.io/istio/proxyv2, volumes: [istio-envoy]}}",
    "collector: {memory: 512Mi, disk: 2Gi, priority_class: platform-services}",
    "priority_class: systems",
    "results: {store: api}",
    'pools: {a: {node: {cpu: 4, memory: 8Gi}, pod: {annotations: {"kubernetes.io/egress-bandwidth": 1G}}}}',
    "pools: {a: {node: {cpu: 4, memory: 8Gi}, pod: {priority_class: batch-system-low}}}",
    "pools: {a: {node: {cpu: 4, memory: 8Gi}, pod: {service_account: b, tokens: {c: {audience: https://kubernetes.example.org/}}}}}",
    "monitoring: {labels: {release: kube-prometheus-stack, example.org/team: a}}",
    "monitoring: {notify: {service: slack, channel: sweeps}}",
    "secrets: {a: {secret: wandb, key: a, variable: A}}",
    "logs: 'https://logs.example.org/{namespace}/{batch}/{trial}'",
    STORE.format(store="mlflow", to="https://mlflow.example.org", name="mlflow"),
]


@pytest.mark.parametrize("text", REFUSED)
def test_settings_that_a_controller_or_a_shell_would_interpret_are_refused(text: str) -> None:
    refused = settings(text)

    assert isinstance(refused, list)
    assert text not in FORMS or {code for _, code in refused} == {"wrong-form"}


@pytest.mark.parametrize("text", ACCEPTED)
def test_their_valid_twins_are_accepted(text: str) -> None:
    assert not isinstance(settings(text), list)


MONITORING = "clusters/monitoring/"
REMOTE = "resources: [https://evil.example/x?ref=main]\n"
REPLACED: dict[str, tuple[str, str, str]] = {
    "an alert that never fires": ("alerts.yaml", 'severity: "warning"', 'severity: "none"'),
    "an alert about another namespace": ("prometheus-rules.yaml", "sweeps-collector", "other"),
    "messages to another channel": ("notifications.yaml", 'channel: "sweeps"', 'channel: "evil"'),
    "messages with another Secret": ("notifications.yaml", '"sweep-notify"', '"sweep-git-write"'),
    "messages to another address": ("notifications.yaml", 'type: "slack"', 'address: "https://evil"'),
    "a dashboard that runs a script": ("dashboard.json", '"Sweeps of', '"<script>alert(1)</script>'),
    "a resource from elsewhere": ("kustomization.yaml", 'resources:\n- "', 'resources:\n- "https://e/'),
    "metrics of Secrets": ("kube-state-metrics.yaml", 'kind: "Kustomization"', 'kind: "Secret"'),
}
EDITS: dict[str, Edit] = {
    **{name: replaced(MONITORING + file, old, new) for name, (file, old, new) in REPLACED.items()},
    "kustomization.yml": put(f"{MONITORING}kustomization.yml", REMOTE),
    "Kustomization": put(f"{MONITORING}Kustomization", REMOTE),
    "a further object": put(f"{MONITORING}binding.yaml", "kind: ClusterRoleBinding\n"),
    "a rule without its file": lambda root: (root / f"{MONITORING}alerts.yaml").unlink(),
}


@pytest.fixture(scope="module")
def monitored(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    sandbox = Sandbox.create(tmp_path_factory.mktemp("monitored"))
    notify = "notify: {service: slack, channel: sweeps}"
    sandbox.write("sweepledger.yaml", f"{SETTINGS}monitoring: {{{notify}}}\n")
    bootstrap(sandbox.workspace, BootstrapRequest(Controller.FLUX, URL, "main"))
    sandbox.publish("Bootstrap")
    return sandbox


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", EDITS)
def test_files_of_monitoring_are_what_the_settings_give(name: str, monitored: Sandbox) -> None:
    monitored.git("reset", "-q", "--hard", "origin/main")
    monitored.git("clean", "-q", "-ffdx")
    assert errors(monitored) == set()
    EDITS[name](monitored.root)

    refused = errors(monitored)

    assert refused
    assert all(file.startswith(MONITORING) and code in {"platform-edited", "drift"} for file, code in refused)
