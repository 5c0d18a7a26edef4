"""What a page tells people to type, and somebody who types it."""

import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"^```console\n(.*?)^```$|^<!-- (.*?) -->$", re.DOTALL | re.MULTILINE)


def page_steps(page: str) -> Iterator[tuple[str, str]]:
    """Give what a page says to type, and, by its remarks, what happens in between."""
    for item in BLOCK.finditer((DOCS / page).read_text()):
        yield item[1] or "", item[2] or ""


class Person:
    """Somebody at a shell, who types what a page says, with words of one's own in the place of the page's."""

    def __init__(self, at: Path, environment: Mapping[str, str], words: Mapping[str, str]) -> None:
        self.at, self.output = at, ""
        self._environment, self._words = environment, words

    def type(self, text: str) -> None:
        """Type some lines; go on where they led to. Fails with the first that fails."""
        for word, meant in self._words.items():
            text = re.sub(rf"\b{word}\b", meant, text)
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", f"{text}\npwd > ~/at\n"],
            cwd=self.at,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
        self.output += done.stdout
        self.at = Path((Path(self._environment["HOME"]) / "at").read_text().strip())
