"""What a server says of many files at once, cut into stable words: file → who refuses it, and why."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.apiserver import Server

OF_A_FILE = re.compile(
    r'(?:when creating|unable to decode|from|error validating) "(?P<path>[^"]+\.(?:yaml|json))"'
)

REASONS = (
    re.compile(r'violates PodSecurity "restricted[^"]*": (?P<why>[^(]+?) \('),
    re.compile(r'(?P<why>unknown field "[^"]+")'),
    re.compile(r'(?P<why>no matches for kind "[^"]+" in version "[^"]+")'),
    re.compile(r"Go struct field (?P<why>[\w.]+) of type"),
    re.compile(
        r"(?P<why>(?:[a-z]+\.)?(?:spec|metadata|data)[\w.]*(?:\[[^\]]*\][\w.]*)*: "
        r"(?:Invalid value|Required value|Unsupported value|Duplicate value|Not found|Forbidden|Too long))"
    ),
    re.compile(r"\[\]: (?P<why>Too long)"),
    re.compile(r"(?P<why>quantities must match|kind not set|error looking up service account)"),
    re.compile(r"is forbidden: (?P<why>[^\n:]{1,60})"),
)
"""Where the words of a refusal lie, the most telling first; values and regular expressions are left out."""

UNKNOWN = 80
"""Letters of a message in which none of them is found."""


@dataclass(frozen=True)
class Refusals:
    """What a server said of files, by their stems."""

    messages: Mapping[str, str]

    def why(self, name: str) -> str | None:
        """Give the reason in a few stable words; None if the file was accepted."""
        message = self.messages.get(name)
        if message is None:
            return None
        for pattern in REASONS:
            if result := pattern.search(message):
                return result["why"]
        return message[:UNKNOWN]


def judged(server: Server, folder: Path) -> Refusals:
    """Put all files of a folder to the server in one dry run."""
    arguments = ("create", "--dry-run=server", "--validate=strict", "-f", str(folder))
    files = [path for path in folder.iterdir() if path.suffix in {".json", ".yaml"}]
    for _ in range(3):
        done = server.kubectl(*arguments, check=False)
        text = done.stderr
        matches = list(OF_A_FILE.finditer(text))
        if done.stdout.count("(server dry run)") + len(matches) >= len(files):
            break  # else it was too busy for a connection, and said nothing of some
    messages: dict[str, str] = {}
    for number, match in enumerate(matches):
        end = matches[number + 1].start() if number + 1 < len(matches) else len(text)
        stem = Path(match["path"]).stem
        messages[stem] = messages.get(stem, "") + text[match.end() : end]
    assert messages or not done.returncode, text
    return Refusals(messages)


def write_list(folder: Path, name: str, manifests: Iterable[Mapping[str, Any]]) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
    (folder / f"{name}.json").write_text(json.dumps(listed))
