"""The forms of texts in documents: names and labels of Kubernetes, digests, folders, addresses."""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta
from msgspec.structs import replace

from sweepledger.model.keys import TextForm, like

DNS_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
NAME_RULE = "must be lower-case letters, digits and inner hyphens and have at most 63 characters"
LONGEST_DOMAIN = 253
_DOMAIN_NAME = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*"
_DOMAIN = rf"(?=.{{1,{LONGEST_DOMAIN}}}$){_DOMAIN_NAME}"
_LABEL_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
_LABEL_KEY = rf"(?:(?=[^/]{{1,{LONGEST_DOMAIN}}}/){_DOMAIN_NAME}/)?{_LABEL_NAME}"
_LABEL_RULE = (
    "must be at most 63 letters, digits and inner - _ ., beginning and ending with a letter or digit"
)

Name = Annotated[str, like(DNS_LABEL.pattern, NAME_RULE, code="cluster-name")]
"""The name of an object in a cluster, and one by which specs refer to an entry of the settings."""
Reference = Annotated[str, Meta(pattern=f"^{DNS_LABEL.pattern}$")]
"""A name of another part of the settings, which a rule looks up."""
PodName = Annotated[str, like(DNS_LABEL.pattern, NAME_RULE, code="pool-pod")]
CLAIM_TEMPLATE = like(
    DNS_LABEL.pattern, f"must be the name of a ResourceClaimTemplate: {NAME_RULE[8:]}", "one-gpu", "pool-pod"
)
VOLUME_NAME = like(DNS_LABEL.pattern, NAME_RULE, "istio-envoy")
TEAM_NAME = like(
    DNS_LABEL.pattern, "must have lower-case letters, digits and inner hyphens only", code="name-form"
)
FLAVOR_NAME = like(_DOMAIN, "must be the name of a ResourceFlavor", "a100", "cluster-name")
PROVISIONING_CLASS = like(
    _DOMAIN, "must be a provisioning class", "check-capacity.autoscaling.x-k8s.io", "pool-queue"
)
LabelKey = Annotated[str, like(_LABEL_KEY, "must be a label's key such as example.org/team", code="label")]
NodeLabel = Annotated[
    str, like(_LABEL_KEY, "must be a label of nodes such as topology.kubernetes.io/zone", code="label")
]
ANNOTATION_KEY = like(_LABEL_KEY, "must be an annotation's key such as example.org/team", code="label")
LabelValue = Annotated[str, like(f"(?:{_LABEL_NAME})?", _LABEL_RULE, code="label")]
Labels = Mapping[LabelKey, LabelValue]
Text = Annotated[str, Meta(max_length=4096)]
Port = Annotated[int, Meta(ge=1, le=65535, examples=[443])]
CLUSTER_NAME = like(
    r"[a-z](?:[a-z0-9-]{0,28}[a-z0-9])?",
    "must be at most 30 lower-case letters, digits and inner hyphens, beginning with a letter",
)
"""It is the name of a folder, and part of names of objects."""
SWEEP_PATTERN = like(
    "[a-z0-9*-]{1,63}", "must be the name of a sweep, or one with stars", "vision-*", "name-form"
)
CURRENCY = like("[A-Za-z€$£¥]{1,8}", "must be a currency code or sign", "EUR", "currency")

DIGEST = re.compile("sha256:[0-9a-f]{64}")
DIGEST_EXAMPLE = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
DIGEST_RULE = "must be sha256: and 64 lower-case hex digits"
_HOST = r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[0-9]{1,5})?"
_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
IMAGE_REPOSITORY = rf"(?:{_HOST}/)?{_COMPONENT}(?:/{_COMPONENT})*"
IMAGE_TAG = "[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
IMAGE = re.compile(
    f"(?P<repository>{IMAGE_REPOSITORY})(?::(?P<tag>{IMAGE_TAG}))?(?:@(?P<digest>{DIGEST.pattern}))?",
    re.ASCII,
)
LONGEST_IMAGE = 512
IMAGE_EXAMPLE = f"registry.example.org/team/train:1.4@{DIGEST_EXAMPLE}"
ImageName = Annotated[str, Meta(examples=["train", IMAGE_EXAMPLE, "local"])]
"""The name of an image of the settings, a reference with its digest, or `local`."""
ImagePrefix = Annotated[
    str,
    like(
        "[a-z0-9](?:[a-z0-9._:/-]{0,253}[a-z0-9])?",
        "must be a registry, or the beginning of a repository",
        "registry.example.org",
    ),
]


def _version(text: str) -> str:
    if not re.fullmatch("[A-Za-z0-9][A-Za-z0-9._+-]{0,62}", text, re.ASCII):
        raise ValueError("must be at most 63 letters, digits and any of . _ + -")
    return f"{VERSION_PREFIX}{text}"


VERSION_PREFIX = "version:"
"""Prefix of the identity of a dataset without a digest."""
DataVersion = Annotated[
    str,
    TextForm(_version, "data-digest"),
    Meta(
        description="Instead of a digest, for data that is too large for one: a word that you change with the data.",
        examples=["torchvision-1"],
    ),
]
DataDigest = Annotated[
    str,
    like(DIGEST.pattern, DIGEST_RULE, code="data-digest"),
    Meta(
        description="Digest of the folder: sha256 over its sorted lines `<sha256>  <name>`, as `sweep cluster data "
        "PATH` computes it.",
        examples=[DIGEST_EXAMPLE],
    ),
]

FOLDER_NAME = r"(?!\.\.?(?:/|$))[A-Za-z0-9_.][A-Za-z0-9_.-]{0,254}"
INNER_PATH = f"{FOLDER_NAME}(?:/{FOLDER_NAME})*"
"""A relative path that stays inside its folder and has only plain characters."""


def _folder(rule: str, example: str, note: str = "") -> TextForm:
    form = like(f"{INNER_PATH}/?", rule, example, "data-path", note=note)
    return replace(form, read=lambda text: form.read(text).removesuffix("/"))


VOLUME_FOLDER = _folder(
    "must be a folder inside the volume, relative to it", "mnist/v1", "; for all of the volume delete the key"
)
BUCKET_FOLDER = _folder("must be a folder of the bucket, relative to its address", "data/mnist")
BUCKET_URL = like(
    "(?:s3|gs|az)://[a-z0-9][a-z0-9._-]{1,61}[a-z0-9](?:/[A-Za-z0-9][A-Za-z0-9._-]{0,99}){0,8}",
    "must be s3://, gs:// or az://, a bucket and folders",
    "s3://ml-sweeps/vision",
    "bucket",
)
ENDPOINT = like(
    r"https?://(?:[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|\[[0-9a-fA-F:]{2,39}\])(?::[0-9]{1,5})?"
    r"(?:/[A-Za-z0-9._-]{1,63})?",
    "must be http:// or https://, a host and at most one folder, without credentials",
    "https://objects.example.org:9000",
    "bucket",
)
REGION = like(
    DNS_LABEL.pattern, "must be lower-case letters, digits and inner hyphens", "eu-central-1", "bucket"
)
STORAGE_ACCOUNT = like(
    "[a-z0-9]{3,24}", "must be 3 to 24 lower-case letters and digits", "mlsweeps", "bucket"
)
PROXY = like(
    r"https?://[A-Za-z0-9.:\[\]-]+", "must be http:// or https:// and a host", "http://proxy.example.org:3128"
)
HOST_OR_NETWORK = like("[A-Za-z0-9.:/*-]{1,253}", "must be a host or a network", ".example.org")
RUNBOOKS = like(
    r"https?://[A-Za-z0-9.-]+(?::[0-9]{1,5})?(?:/[A-Za-z0-9._~/-]*)?",
    "must be an address without a query",
    "https://docs.example.org/sweepledger/how-to/monitor.html",
)
CODE_URL = like(
    r"https?://[A-Za-z0-9.:\[\]-]+(?:/[A-Za-z0-9_.~%+-]+)+/?",
    "must be an https address without credentials",
    "https://git.example.org/team/sweeps.git",
    "code-url",
    note="; credentials belong in code.secret",
)
BRANCH = like(
    r"(?!.*(?:\.\.|(?:^|/)\.|\.lock(?:/|$)|//))[A-Za-z0-9_](?:[A-Za-z0-9_./-]{0,198}[A-Za-z0-9_-])?",
    "must be the name of a branch",
    "main",
    "name-form",
)
REGISTERED_CLUSTER = like(
    rf"(?:{DNS_LABEL.pattern}|https://[A-Za-z0-9.:\[\]-]+(?:/[A-Za-z0-9._/-]*)?)",
    "must be the name of a registered cluster or the https address of an API server",
    "gpu-eu",
    "cluster-name",
)
GROUP = like(
    r"[A-Za-z0-9](?:[A-Za-z0-9 _.:@/-]{0,251}[A-Za-z0-9])?",
    "must be letters, digits and inner spaces and _ . : @ / -",
    "research",
)
SIGNATURE_KEY = like("[0-9A-F]{16}", "must be the 16 hex digits of a GnuPG key's id", "B5690EEEBB952194")
SERVICE_ACCOUNT = like(
    "[a-z0-9][a-z0-9-]{0,62}/[a-z0-9][a-z0-9.-]{0,252}",
    "must be a namespace and a service account, with a slash between them",
    "queues/kueue-controller-manager",
)


def one_line(most: int, example: str = "") -> TextForm:
    """Return the form of texts of one line that are shown to people."""
    rule = f"must be one line of at most {most} characters"
    return like(rf"(?=.*\S).{{1,{most}}}", rule, example, "name-form", fits=str.isprintable)


CHANNEL = one_line(100, "sweeps")

KEY_TYPE = re.compile("(?:ssh|ecdsa|sk-ssh|sk-ecdsa)-[a-z0-9@.-]+", re.ASCII)
LENGTH_BYTES = 4
"""Bytes of the length before each part of a public key."""


def _signer(line: str) -> str:
    """Return a line that is valid for ssh-keygen, which ignores lines that it cannot read."""
    parts = line.split()
    at = next((at for at, part in enumerate(parts) if at and KEY_TYPE.fullmatch(part)), len(parts))
    try:
        key = base64.b64decode("".join(parts[at + 1 : at + 2]), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    # The key begins with its own type.
    size = int.from_bytes(key[:LENGTH_BYTES])
    named = key[LENGTH_BYTES : LENGTH_BYTES + size]
    is_whole = len(key) > LENGTH_BYTES + size and [named] == [part.encode() for part in parts[at : at + 1]]
    if not is_whole or "\n" in line or line.startswith("#"):
        raise ValueError("must be principals, a key type and a public key")
    return line


Signer = Annotated[
    str,
    TextForm(
        _signer,
        "signer",
        note="for example ops@example.org and, behind it, the contents of a file such as id_ed25519.pub",
    ),
    Meta(
        examples=[
            "ops@example.org ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
        ]
    ),
]


def _resource(code: str, example: str) -> TextForm:
    pattern = rf"(?!(?:[^/]*\.)?kubernetes\.io/)(?=[^/]+/){_LABEL_KEY}"
    note = ", as `kubectl describe node` shows it"
    return like(pattern, "must be a resource with its domain", example, code, note=note)


POD_RESOURCE = _resource("pool-pod", "vpc.amazonaws.com/efa")
GPU_RESOURCE = _resource("pool-gpu", "nvidia.com/mig-1g.5gb")
API_SERVERS = re.compile(
    r"(https?://)?(kubernetes|kube-apiserver|api)(\.default.*)?/?", re.ASCII | re.IGNORECASE
)
"""Audiences by which API servers commonly know themselves."""
AUDIENCE = like(
    "[!-~]{1,256}",
    "must be a service outside of Kubernetes, in one word",
    code="pool-pod",
    note="the audience that its configuration requires, for example https://vault.example.org",
    fits=lambda audience: API_SERVERS.fullmatch(audience) is None,
)
