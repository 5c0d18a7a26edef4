"""ConfigMaps: keys that become file names, and a size that the cluster takes."""

import re
from collections.abc import Iterator

from generator.policy.findings import Finding
from generator.policy.workloads import Object
from generator.reader.shown import shown

KEY_CODE, SIZE_CODE = "config-map-key", "config-map-too-large"

KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}", re.ASCII)
BYTES = 1024 * 1024


def check(thing: Object) -> Iterator[Finding]:
    """Check a ConfigMap's keys and size."""
    if thing.kind != "ConfigMap":
        return
    size = 0
    for part in ("data", "binaryData"):
        for key, text in (thing.data.get(part) or {}).items():
            size += len(key) + len(str(text).encode())
            if KEY.fullmatch(key) is None or key.startswith(".."):
                allowed = "letters, digits, dashes, dots and underscores"
                message = f"must be a file's name of {allowed}, got {shown(key)}"
                yield Finding((part, key), message, KEY_CODE)
    if size > BYTES:
        yield Finding(("data",), f"must be at most {BYTES} bytes together, got {size}", SIZE_CODE)
