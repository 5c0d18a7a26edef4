"""How texts of documents are written: names and labels of Kubernetes, digests, folders, addresses."""

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
LABEL_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", re.ASCII)
DOMAIN_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*", re.ASCII)
LONGEST_DOMAIN = 253
LABEL_KEY = re.compile(
    rf"(?:(?=[^/]{{1,{LONGEST_DOMAIN}}}/){DOMAIN_NAME.pattern}/)?{LABEL_NAME.pattern}", re.ASCII
)

Name = Annotated[str, like(DNS_LABEL.pattern, NAME_RULE, code="cluster-name")]
"""The name of an object in a cluster, and one by which specs refer to an entry of the settings."""


def _label_key(rule: str) -> TextForm:
    return like(LABEL_KEY.pattern, rule, code="label")


LabelKey = Annotated[str, _label_key("must be a label's key such as example.org/team")]
NodeLabel = Annotated[str, _label_key("must be a label of nodes such as topology.kubernetes.io/zone")]
AnnotationKey = Annotated[str, _label_key("must be an annotation's key such as example.org/team")]
LabelValue = Annotated[
    str,
    like(
        f"(?:{LABEL_NAME.pattern})?",
        "must be at most 63 letters, digits and inner - _ ., beginning and ending with a letter or digit",
        code="label",
    ),
]
Labels = Mapping[LabelKey, LabelValue]
Port = Annotated[int, Meta(ge=1, le=65535)]

Reference = Annotated[str, Meta(pattern=f"^{DNS_LABEL.pattern}$")]
"""A name of another part of the settings, which a rule looks up."""
VolumeName = Annotated[str, like(DNS_LABEL.pattern, NAME_RULE, code="wrong-form")]
TeamName = Annotated[
    str,
    like(DNS_LABEL.pattern, "must have lower-case letters, digits and inner hyphens only", code="name-form"),
]
SweepPattern = Annotated[
    str,
    like(
        "[a-z0-9*-]{1,63}",
        "must be the name of a sweep, or one with stars",
        code="name-form",
        hint="for example vision-*",
    ),
]
Currency = Annotated[
    str, like("[A-Za-z€$£¥]{1,8}", "must be a currency code or sign", code="currency", hint="for example EUR")
]
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
ImagePrefix = Annotated[
    str,
    like(
        "[a-z0-9](?:[a-z0-9._:/-]{0,253}[a-z0-9])?",
        "must be a registry, or the beginning of a repository",
        code="wrong-form",
        hint="for example registry.example.org",
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
        description=(
            "Digest of the folder: sha256 over its sorted lines `<sha256>  <name>`, as `sweep cluster data PATH` "
            "computes it."
        ),
        examples=[DIGEST_EXAMPLE],
    ),
]

FOLDER_NAME = r"(?!\.\.?(?:/|$))[A-Za-z0-9_.][A-Za-z0-9_.-]{0,254}"
INNER_PATH = f"{FOLDER_NAME}(?:/{FOLDER_NAME})*"
"""A relative path that stays inside its folder and has only plain characters."""


def _folder(rule: str, hint: str) -> TextForm:
    form = like(f"{INNER_PATH}/?", rule, code="data-path", hint=hint)
    return replace(form, read=lambda text: form.read(text).removesuffix("/"))


VolumeFolder = Annotated[
    str,
    _folder(
        "must be a folder inside the volume, relative to it",
        "for example mnist/v1; for all of the volume delete the key",
    ),
]
BucketFolder = Annotated[
    str, _folder("must be a folder of the bucket, relative to its address", "for example data/mnist")
]
BucketUrl = Annotated[
    str,
    like(
        "(?:s3|gs|az)://[a-z0-9][a-z0-9._-]{1,61}[a-z0-9](?:/[A-Za-z0-9][A-Za-z0-9._-]{0,99}){0,8}",
        "must be s3://, gs:// or az://, a bucket and folders",
        code="bucket",
        hint="for example s3://ml-sweeps/vision",
    ),
]
Endpoint = Annotated[
    str,
    like(
        r"https?://(?:[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|\[[0-9a-fA-F:]{2,39}\])(?::[0-9]{1,5})?"
        r"(?:/[A-Za-z0-9._-]{1,63})?",
        "must be http:// or https://, a host and at most one folder, without credentials",
        code="bucket",
    ),
]
Region = Annotated[
    str, like(DNS_LABEL.pattern, "must be lower-case letters, digits and inner hyphens", code="bucket")
]
StorageAccount = Annotated[
    str, like("[a-z0-9]{3,24}", "must be 3 to 24 lower-case letters and digits", code="bucket")
]

CodeUrl = Annotated[
    str,
    like(
        r"https?://[A-Za-z0-9.:\[\]-]+(?:/[A-Za-z0-9_.~%+-]+)+/?",
        "must be an https address without credentials",
        code="code-url",
        hint="for example https://git.example.org/team/sweeps.git; credentials belong in code.secret",
    ),
]
BranchName = Annotated[
    str,
    like(
        "[A-Za-z0-9_](?:[A-Za-z0-9_./-]{0,198}[A-Za-z0-9_-])?",
        "must be the name of a branch",
        code="name-form",
        fits=lambda name: (
            ".." not in name
            and all(part and part[0] != "." and not part.endswith(".lock") for part in name.split("/"))
        ),
    ),
]
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
        "for example ops@example.org and, behind it, the contents of a file such as id_ed25519.pub",
    ),
]


def one_line(most: int, hint: str | None = None) -> TextForm:
    """Return the form of texts of one line that are shown to people."""
    return like(
        f".{{1,{most}}}",
        f"must be one line of at most {most} characters",
        code="name-form",
        hint=hint,
        fits=lambda text: text.isprintable() and bool(text.strip()),
    )


Channel = Annotated[str, one_line(100, "for example sweeps")]


def _resource(code: str, example: str) -> TextForm:
    return like(
        rf"(?!(?:[^/]*\.)?kubernetes\.io/)(?=[^/]+/){LABEL_KEY.pattern}",
        "must be a resource with its domain",
        code=code,
        hint=f"for example {example}, as `kubectl describe node` shows it",
    )


PodResource = Annotated[str, _resource("pool-pod", "vpc.amazonaws.com/efa")]
GpuResource = Annotated[str, _resource("pool-gpu", "nvidia.com/mig-1g.5gb")]
PodName = Annotated[str, like(DNS_LABEL.pattern, NAME_RULE, code="pool-pod")]
ClaimTemplate = Annotated[
    str,
    like(DNS_LABEL.pattern, f"must be the name of a ResourceClaimTemplate: {NAME_RULE[8:]}", code="pool-pod"),
]
_DOMAIN = rf"(?=.{{1,{LONGEST_DOMAIN}}}$){DOMAIN_NAME.pattern}"
FlavorName = Annotated[str, like(_DOMAIN, "must be the name of a ResourceFlavor", code="cluster-name")]
ProvisioningClass = Annotated[
    str,
    like(
        _DOMAIN,
        "must be a provisioning class",
        code="pool-queue",
        hint="for example check-capacity.autoscaling.x-k8s.io",
    ),
]
API_SERVERS = re.compile(
    r"(https?://)?(kubernetes|kube-apiserver|api)(\.default.*)?/?", re.ASCII | re.IGNORECASE
)
"""Audiences by which API servers commonly know themselves."""
Audience = Annotated[
    str,
    like(
        "[!-~]{1,256}",
        "must be a service outside of Kubernetes, in one word",
        code="pool-pod",
        hint="the audience that its configuration requires, for example https://vault.example.org",
        fits=lambda audience: API_SERVERS.fullmatch(audience) is None,
    ),
]
