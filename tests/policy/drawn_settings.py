"""Settings that combine options: every two options that go together are together in one of them."""

import json
import random
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import cache
from itertools import combinations
from types import MappingProxyType
from typing import Any

from sweepledger import spec
from sweepledger.problems import Problem
from sweepledger.render.manifest import merge
from sweepledger.structs.settings import Settings

Option = Mapping[str, Any]
Row = Mapping[str, str]
"""The name of an option for each axis."""

DIGEST = f"sha256:{'c' * 64}"
KEY = "ops@example.org ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
PLACE = {"cidrs": ["203.0.113.0/24"], "ports": [443]}
API_SERVER = {"api-server": {"cidrs": ["192.0.2.1/32"], "ports": [6443]}}
NODE = {"node": {"cpu": 8, "memory": "32Gi"}, "max_nodes": 4}
GPU_NODE = {"node": {"cpu": 8, "memory": "64Gi", "gpu": 2}, "max_nodes": 2, "gpu_type": "Tesla-T4"}
POD = {
    "runtime_class": "nvidia",
    "scheduler": "volcano",
    "priority_class": "low",
    "service_account": "trainer",
    "labels": {"example.org/mesh": "off"},
    "annotations": {"sidecar.istio.io/inject": "false"},
    "resources": {"vpc.amazonaws.com/efa": 1},
    "spread": {"topology.kubernetes.io/zone": 1},
    "tokens": {"vault": {"audience": "vault", "expires": "30m"}},
    "grace": "2m",
}
DEVICES = {"kubernetes": "1.34", "pools": {"dra": {**NODE, "pod": {"claims": {"gpu": "one-gpu"}}}}}
QUEUES = {
    "cpu": {**NODE, "queue": "cpu", "min_parallelism": 2, "cohort": "team", "spot": True},
    "gpu": {
        **GPU_NODE,
        "queue": "gpu",
        "tolerations": [{"key": "gpu", "effect": "NoSchedule"}],
        "topology": {"levels": ["example.org/rack", "kubernetes.io/hostname"], "require": "example.org/rack"},
        "provisioning": {
            "class": "check-capacity.autoscaling.x-k8s.io",
            "parameters": {"ValidUntilSeconds": "600"},
            "selector": {"example.org/request": "Name"},
            "retries": 1,
        },
    },
}


def _bucket(**how: Any) -> Option:
    url = {"url": "s3://ml-sweeps/vision", "egress": "bucket", **how}
    return {"results": {"store": "bucket", "bucket": url}, "egress": {"bucket": PLACE}}


ROLE = {"eks.amazonaws.com/role-arn": "arn:aws:iam::111122223333:role/sweeps"}
AXES: Mapping[str, Mapping[str, Option]] = MappingProxyType(
    {
        "controller": {name: {"controller": name} for name in ("argocd", "flux")},
        "namespace": {"short": {"namespace": "vision"}, "long": {"namespace": "n" * 53}},
        "store": {
            "volume": {"results": {"claim": "results"}},
            "volumes with NFS": {
                "results": {
                    "claim": "results",
                    "checkpoints": "fast",
                    "artifacts": "large",
                    "nfs": {"server": "nfs.example.org", "path": "/export/sweeps"},
                }
            },
            "api": {"results": {"store": "api"}},
            "claim": {"results": {"store": "claim", "claim": "disk", "checkpoints": "fast"}},
            "bucket with a Secret": _bucket(secret="sweep-bucket", seals="sweep-seals"),  # noqa: S106
            "bucket with an identity": _bucket(identity=ROLE, collector_identity=ROLE, region="eu-central-1"),
            "bucket of Azure": _bucket(url="az://ml-sweeps/vision", account="store"),
            "bucket of Google with data": {
                **_bucket(url="gs://ml-sweeps/vision"),
                "datasets": {
                    name: {"bucket": f"data/{name}", "size": "2Gi", "digest": DIGEST}
                    for name in ("bytes", "texts")
                },
            },
        },
        "keep": {"for ever": {}, "a month": {"results": {"keep": "30d"}}},
        "progress": {"none": {}, "each quarter": {"results": {"progress": "15m"}}},
        "mode": {"push": {}, "branch": {"results": {"mode": "branch"}}},
        "sync": {
            "nowhere": {},
            "both": {
                "results": {
                    "sync": {
                        "mlflow": {
                            "to": "https://mlflow.example.org",
                            "egress": "mlflow",
                            "secret": "account",
                        },
                        "optuna": {"to": "postgresql+psycopg://db.example.org/optuna", "egress": "mlflow"},
                    }
                },
                "egress": {"mlflow": PLACE},
                "images": {"sync": {"repository": "registry.example.org/sync", "digest": DIGEST}},
            },
        },
        "pools": {
            "plain": {"pools": {"cpu": NODE, "gpu": GPU_NODE}, "defaults": {"pool": "cpu"}},
            "none": {},
            "pods": {"pools": {"gpu": {**GPU_NODE, "pod": POD}, "cpu": {**NODE, "spot": True}}},
            "devices": DEVICES,
            "queues": {"pools": QUEUES},
            "one queue": {"pools": {"cpu": {**NODE, "queue": "cpu"}, "plain": NODE}},
            "shares": {"pools": {"gpu": {**GPU_NODE, "gpu_shares": {"by": "mps", "count": 4}}}},
        },
        "collector": {
            "anywhere": {},
            "placed": {
                "collector": {"memory": "512Mi", "disk": "2Gi", "watch": True, "priority_class": "services"}
            },
            "in a pool": {"collector": {"pool": "cpu"}},
        },
        "clusters": {
            "one": {},
            "two": {"clusters": {"eu": {"weight": 3, "egress": API_SERVER}, "us": {}}},
            "one lost": {"clusters": {"eu": {"dns": {"cidrs": ["192.0.2.53/32"]}}, "us": {"lost": True}}},
        },
        "argocd": {"here": {}, "elsewhere": {"argocd": {"namespace": "gitops", "cluster": "gpu-eu"}}},
        "egress": {
            "any host": {},
            "all": {
                "egress": {
                    "git": PLACE,
                    "hub": {"cidrs": ["198.51.100.0/24"], "ports": [443, 22]},
                    **API_SERVER,
                }
            },
            "by name": {"egress": {"hub": {"hosts": ["*.example.org"], "ports": [443]}, "git": PLACE}},
        },
        "dns": {
            "usual": {},
            "elsewhere": {"dns": {"cidrs": ["169.254.169.254/32"]}},
            "OpenShift": {"dns": {"namespace": "openshift-dns", "labels": {"dns": "default"}, "port": 5353}},
        },
        "proxy": {
            "none": {},
            "proxy": {
                "proxy": {"address": "http://proxy.example.org:3128", "egress": "proxy"},
                "egress": {"proxy": PLACE},
                "authorities": {"config_map": "company-authorities"},
            },
        },
        "sidecars": {
            "none": {},
            "mesh": {
                "sidecars": {"istio-proxy": {"image": "docker.io/istio/proxyv2", "volumes": ["istio-envoy"]}},
                "mirrors": {"docker.io": "mirror.example.org/hub"},
            },
        },
        "code": {
            "image": {},
            "clone": {
                "code": {"url": "https://git.example.org/team/sweeps.git", "image": "git", "secret": "read"}
            },
        },
        "datasets": {
            "none": {},
            "claims": {
                "datasets": {
                    "mnist": {"claim": "mnist", "digest": DIGEST, "path": "v2"},
                    "cifar": {
                        "claim": "cifar",
                        "version": "1",
                        "nfs": {"server": "nfs.example.org", "path": "/export/cifar"},
                    },
                }
            },
        },
        "monitoring": {
            "none": {},
            "all": {
                "monitoring": {
                    "enabled": True,
                    "labels": {"release": "prometheus"},
                    "notify": {"service": "slack", "channel": "sweeps"},
                    "commit_status": True,
                }
            },
        },
        "more": {
            "nothing": {},
            "all": {
                "labels": {"example.org/cost": "4711"},
                "image_pull_secret": "registry",
                "priority_class": "batch",
                "allowed_variables": ["LD_LIBRARY_PATH"],
                "secrets": {"hub": {"secret": "hub", "key": "token", "variable": "HF_TOKEN"}},
                "signers": [KEY],
                "limits": {"max_trials": 500},
            },
        },
    }
)
"""The first option of each axis goes with every other."""
ALWAYS: Option = {
    "version": 1,
    "images": {
        name: {"repository": f"registry.example.org/{name}", "digest": DIGEST}
        for name in ("collector", "git", "train")
    },
}
TRIES = 8

Choice = tuple[str, str]
Pair = tuple[Choice, Choice]

MORE_CLUSTERS = ("two", "one lost")
WITHOUT_PROGRESS = sorted(AXES["store"].keys() - {"volume", "volumes with NFS"})
REFUSED: frozenset[Pair] = frozenset(
    {
        *((("argocd", "elsewhere"), ("clusters", name)) for name in MORE_CLUSTERS),
        *((("clusters", name), ("mode", "branch")) for name in MORE_CLUSTERS),
        *((("clusters", name), ("progress", "each quarter")) for name in MORE_CLUSTERS),
        *((("collector", "in a pool"), ("pools", name)) for name in ("devices", "none", "shares")),
        (("controller", "flux"), ("pools", "queues")),
        (("keep", "a month"), ("store", "api")),
        *((("progress", "each quarter"), ("store", name)) for name in WITHOUT_PROGRESS),
    }
)
"""Options that the rules of the settings refuse beside each other."""


def parse(row: Row) -> Settings | tuple[Problem, ...]:
    """Read the settings of a row, or every problem that the rules have with them."""
    made: dict[str, Any] = dict(ALWAYS)
    for axis, name in row.items():
        made = merge(made, dict(AXES[axis][name]))
    return spec.parse_settings(json.dumps(made).encode(), "sweepledger.yaml")


def pairs(row: Row) -> frozenset[Pair]:
    """List every two options of a row."""
    return frozenset(combinations(sorted(row.items()), 2))


def possible_pairs() -> frozenset[Pair]:
    """List every two options that go together."""
    listed = (
        ((one, name), (other, second))
        for one, other in combinations(sorted(AXES), 2)
        for name in AXES[one]
        for second in AXES[other]
    )
    return frozenset(listed) - REFUSED


@cache
def draw_rows(seed: int) -> tuple[Row, ...]:
    """Draw rows until every two options that go together are together in one of them; the same for a seed."""
    chance = random.Random(seed)  # noqa: S311 - a draw that repeats
    missing = set(possible_pairs())
    rows: list[Row] = []
    while missing:
        pair = chance.choice(sorted(missing))
        drawn = [_fill(dict(pair), missing, chance) for _ in range(TRIES)]
        best = max(drawn, key=lambda row: len(pairs(row) & missing))
        missing -= pairs(best)
        rows.append(best)
    return tuple(rows)


def _fill(chosen: Mapping[str, str], missing: AbstractSet[Pair], chance: random.Random) -> Row:
    """Complete a row by the options with most missing pairs; the first option of an axis goes with every other."""
    row = dict(chosen)
    for axis in chance.sample(sorted(AXES.keys() - chosen.keys()), len(AXES) - len(chosen)):
        beside = {name: _new_pairs(row, (axis, name)) for name in AXES[axis]}
        row[axis] = max(
            (name for name in beside if not beside[name] & REFUSED),
            key=lambda name: len(beside[name] & missing),
        )
    return row


def _new_pairs(row: Row, choice: Choice) -> frozenset[Pair]:
    return frozenset((one, choice) if one < choice else (choice, one) for one in row.items())
