"""Changed files of every format through every reader of foreign files: how many ran, and what escaped.

    python benchmarks/fuzz_importers.py                   10^5 files of each format, about half an hour
    python benchmarks/fuzz_importers.py --runs 2000 --seed 7 --only wandb
    python benchmarks/fuzz_importers.py --journal runs.jsonl      stopped and started again, it continues

The files are made in chunks, each from the seed, its format and its number: equal arguments give equal files, and a
chunk in the journal does not run again. Exits 1 if an importer lets an exception out other than its refusal; the file
that did it is printed, as bytes.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.exchange.conformance import (  # noqa: E402 - the path is set above
    SEEDS,
    TRIALS,
    explore_written,
    mutations,
    survive_trials,
    written,
)
from tests.exchange.imported import READERS  # noqa: E402

READS: dict[str, tuple[Callable[[bytes], str | None], bytes]] = {
    **{name: (partial(written, READERS[name.partition(":")[0]]), content) for name, content in SEEDS.items()},
    **{f"trials:{form}": (partial(survive_trials, form), content) for form, content in TRIALS.items()},
}
"""What reads a file of a format, and the file that is changed."""
NICENESS = 10
"""Other work on the machine goes first."""
CHUNK = 2000
"""Files between two lines of the journal: some seconds."""
EXPLORED = 40
"""Different specs of a chunk whose trials are listed, which takes ten times as long as to import a file."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some files of one format."""

    name: str
    seed: str
    """The seed of the run, the format and the number of the chunk: all that the files depend on."""
    files: int

    def escaped(self) -> int:
        """Return how many files an importer answered with something else than a spec or a refusal."""
        escaped = 0
        read, seed = READS[self.name]
        explored: set[str] = set()
        for content in mutations(seed, self.seed, self.files):
            try:
                text = read(content)
                if text is not None and text not in explored and len(explored) < EXPLORED:
                    explored.add(text)
                    explore_written(text, content)
            except Exception as error:  # noqa: BLE001 - what escapes is what is counted
                escaped += 1
                print(f"  {self.name}: {error!r}: {content!r}", flush=True)
        return escaped


def chunks(names: list[str], runs: int, seed: int) -> Iterator[Chunk]:
    """Yield the chunks of a run, each format's in turn, so that a run that is stopped has seen all formats."""
    for start in range(0, runs, CHUNK):
        for name in names:
            yield Chunk(name, f"{seed}:{name}:{start}", min(CHUNK, runs - start))


def recorded(journal: Path | None) -> dict[str, dict[str, int]]:
    """Return the chunks of a journal by their seeds. A line is written at once, so that a kill cuts none."""
    lines = journal.read_text().splitlines() if journal and journal.exists() else []
    return {line["seed"]: line for line in map(json.loads, lines)}


def main() -> int:
    """Fuzz all formats in turn."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=100_000, help="files of each format")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=sorted(READS))
    parser.add_argument("--journal", type=Path)
    arguments = parser.parse_args()
    os.nice(NICENESS)
    names = [arguments.only] if arguments.only else sorted(READS)
    known = recorded(arguments.journal)
    ran = dict.fromkeys(names, 0)
    escaped, started = 0, time.monotonic()
    for chunk in chunks(names, arguments.runs, arguments.seed):
        line = known.get(chunk.seed)
        if line is None or line["files"] != chunk.files:
            line = {"files": chunk.files, "escaped": chunk.escaped()}
            if arguments.journal:
                with arguments.journal.open("a") as file:
                    file.write(json.dumps({"seed": chunk.seed, **line}) + "\n")
        ran[chunk.name] += line["files"]
        escaped += line["escaped"]
    for name, count in ran.items():
        print(f"{name:20} {count:>7} files")
    print(f"{sum(ran.values())} files, {escaped} escaped, {time.monotonic() - started:.0f} s")
    return int(escaped > 0)


if __name__ == "__main__":
    sys.exit(main())
