"""A thousand random edits of a recorded sweep: how many `sweep verify` finds, and names by row and column.

python benchmarks/mutations.py [COUNT]; every fourth is squashed into one commit with what it edits.
"""

import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from sweepledger.verbs.verify import VerificationState, verify_results  # noqa: E402
from tests.operations.mutating import mutate  # noqa: E402
from tests.operations.test_read import recorded  # noqa: E402
from tests.repository import Sandbox  # noqa: E402

COUNT = 1000
SEED = 7


def main() -> int:
    """Edit, commit, verify; start again from what was recorded."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else COUNT
    rng = random.Random(SEED)  # noqa: S311 - the same edits every time
    tally: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        sandbox = Sandbox.create(Path(folder))
        output = sandbox.git("rev-parse", "HEAD").strip()
        recorded(sandbox, Path(folder) / "volume", "1, 2")
        recorded(sandbox, Path(folder) / "volume", "1, 2, 3")
        start = sandbox.git("rev-parse", "HEAD").strip()
        for number in range(count):
            sandbox.git("reset", "-q", "--hard", start)
            sandbox.git("clean", "-q", "-fd", "results", "overlays")
            done = mutate(sandbox.root, "peak", rng)
            kind = "squashed" if number % 4 == 0 else "after"
            if kind == "squashed":
                sandbox.git("reset", "-q", "--soft", output)
            sandbox.commit("Edit it")
            (verification,) = verify_results(sandbox.workspace, "peak", revision="HEAD").sweeps
            tally[f"{kind}: made"] += 1
            tally[f"{kind}: found"] += verification.state is VerificationState.DIFFERS
            result = done.is_told_somewhere if kind == "squashed" else done.is_told
            is_named = result(verification.differences)
            tally[f"{kind}: named"] += is_named
            if verification.state is not VerificationState.DIFFERS or not is_named:
                print(f"missed: {number} {done} {verification.differences[:3]}")
    for name, number in sorted(tally.items()):
        print(f"{name:16} {number}")
    return int(any(tally[f"{kind}: named"] < tally[f"{kind}: made"] for kind in ("after", "squashed")))


if __name__ == "__main__":
    sys.exit(main())
