"""Environment variables: named once, and never the place of a secret. Nor is a ConfigMap, or git."""

import re
from collections import Counter
from collections.abc import Iterator

from generator.policy.findings import Finding
from generator.policy.workloads import Container, Object
from generator.reader.shown import shown
from generator.structs.secretive import looks_secret

CODE, SECRET = "environment-invalid", "secret-exposed"

NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*", re.ASCII)
PRIVATE_KEY = "PRIVATE KEY-----"
AS_FILE = "mount the Secret as a read-only volume and let the program read the file"


def check(thing: Object) -> Iterator[Finding]:
    """Check the variables of every container, and what ConfigMaps and Secrets in git hold."""
    for container in thing.containers:
        yield from _variables(container)
    if thing.kind == "Secret" and (thing.data.get("data") or thing.data.get("stringData")):
        hint = "make it in the cluster, or let git hold a sealed form of it"
        yield Finding((), "must not stand in git: whoever reads the repository has it", SECRET, hint)
    if thing.kind == "ConfigMap":
        for key, text in (thing.data.get("data") or {}).items():
            if PRIVATE_KEY in text:
                yield Finding(("data", key), "must not hold a private key", SECRET, AS_FILE)


def _variables(container: Container) -> Iterator[Finding]:
    variables = container.data.get("env") or ()
    counts = Counter(variable.get("name") for variable in variables)
    for index, variable in enumerate(variables):
        at, name = (*container.path, "env", index), str(variable.get("name"))
        if counts[variable.get("name")] > 1:
            yield Finding(at, f"must stand once: the last one wins, got {shown(name)} again", CODE)
        if NAME.fullmatch(name) is None:
            yield Finding((*at, "name"), f"must be a variable's name, got {shown(name)}", CODE)
        if "value" in variable and "valueFrom" in variable:
            yield Finding((*at, "valueFrom"), "must be absent beside value", CODE)
        if "secretKeyRef" in (variable.get("valueFrom") or ()):
            message = "must not take its value from a Secret: environments end in logs and crash reports"
            yield Finding((*at, "valueFrom"), message, SECRET, AS_FILE)
        if looks_secret(name, str(variable.get("value") or "")):
            yield Finding(
                (*at, "value"), f"must not be a secret in plain text, as {name} seems", SECRET, AS_FILE
            )
    for index, source in enumerate(container.data.get("envFrom") or ()):
        if "secretRef" in source:
            message = "must not take variables from a Secret: environments end in logs and crash reports"
            yield Finding((*container.path, "envFrom", index), message, SECRET, AS_FILE)
