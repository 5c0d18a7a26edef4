"""Containers: images pinned by digest; environment variables set once and without secrets.

Secrets must not be in ConfigMaps either.
"""

import re
from collections import Counter
from collections.abc import Iterator

from sweepledger.policy.objects import Container, Finding, Object
from sweepledger.reader.messages import safe_repr
from sweepledger.structs.names import looks_secret

IMAGE_CODE = "image-not-pinned"

PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
HOST = (
    r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*(?::[0-9]+)?)"
)
REFERENCE = re.compile(
    rf"(?:{HOST}/)?{PART}(?:/{PART})*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}})?(?P<digest>@sha256:[0-9a-f]{{64}})?",
    re.ASCII,
)
NOWHERE = ".invalid/"
"""No registry can have this name, which is written if a program has no image."""


def check_images(obj: Object) -> Iterator[Finding]:
    """Yield the findings in the image of every container."""
    for container in obj.containers:
        if "image" in container.data or container.sort != "trainer":
            yield from _image((*container.path, "image"), container.data.get("image"))


def _image(path: tuple[str | int, ...], image: object) -> Iterator[Finding]:
    match = REFERENCE.fullmatch(image) if isinstance(image, str) else None
    if match is None:
        yield Finding(path, f"must be an image's reference, got {safe_repr(image)}", IMAGE_CODE)
    elif match["digest"] is None and NOWHERE not in match[0]:
        hint = "write name@sha256:…; a tag may be another image tomorrow"
        yield Finding(path, f"must have a digest, got {safe_repr(image)}", IMAGE_CODE, hint)


ENVIRONMENT_CODE, SECRET_CODE = "environment-invalid", "secret-exposed"

NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*", re.ASCII)
PRIVATE_KEY = "PRIVATE KEY-----"
AS_FILE = "mount the Secret as a read-only volume and let the program read the file"


def check_environment(obj: Object) -> Iterator[Finding]:
    """Yield the findings in the variables of every container, and secrets in ConfigMaps."""
    for container in obj.containers:
        yield from _variables(container)
    if obj.kind == "ConfigMap":
        for key, text in (obj.data.get("data") or {}).items():
            if PRIVATE_KEY in text:
                yield Finding(("data", key), "must not hold a private key", SECRET_CODE, AS_FILE)


def _variables(container: Container) -> Iterator[Finding]:
    variables = container.data.get("env") or ()
    counts = Counter(variable.get("name") for variable in variables)
    for index, variable in enumerate(variables):
        at, name = (*container.path, "env", index), str(variable.get("name"))
        if counts[variable.get("name")] > 1:
            message = f"must stand once: the last one wins, got {safe_repr(name)} again"
            yield Finding(at, message, ENVIRONMENT_CODE)
        if NAME.fullmatch(name) is None:
            message = f"must be a variable's name, got {safe_repr(name)}"
            yield Finding((*at, "name"), message, ENVIRONMENT_CODE)
        if "value" in variable and "valueFrom" in variable:
            yield Finding((*at, "valueFrom"), "must be absent beside value", ENVIRONMENT_CODE)
        if "secretKeyRef" in (variable.get("valueFrom") or ()):
            message = "must not take its value from a Secret: environments end in logs and crash reports"
            yield Finding((*at, "valueFrom"), message, SECRET_CODE, AS_FILE)
        if looks_secret(name, str(variable.get("value") or "")):
            message = f"must not be a secret in plain text, as {name} seems"
            yield Finding((*at, "value"), message, SECRET_CODE, AS_FILE)
