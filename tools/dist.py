"""Build wheel and sdist twice, from two clean copies, and keep them only if both are the same to the byte.

The time that goes into them is the last commit's.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> int:
    git = ("git", "-C", str(ROOT))
    when = subprocess.run([*git, "log", "-1", "--format=%ct"], check=True, capture_output=True, text=True)
    environment = {**os.environ, "SOURCE_DATE_EPOCH": when.stdout.strip()}
    with tempfile.TemporaryDirectory(prefix="sweep-dist-") as scratch:
        one, other = (built(Path(scratch) / name, environment) for name in ("one", "other"))
        differing = sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
    if differing:
        print(f"two builds differ: {', '.join(differing)}", file=sys.stderr)
        return 1
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    (ROOT / "dist").mkdir()
    for name, content in one.items():
        (ROOT / "dist" / name).write_bytes(content)
        print(f"dist/{name}")
    return 0


def built(place: Path, environment: dict[str, str]) -> dict[str, bytes]:
    """Build what is committed, from a clone: nothing that lies about in the work tree gets in."""
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(place)], check=True)
    argv = [sys.executable, "-m", "hatchling", "build", "--directory", str(place / "made")]
    subprocess.run(argv, cwd=place, env=environment, check=True, capture_output=True)
    return {path.name: path.read_bytes() for path in sorted((place / "made").iterdir())}


if __name__ == "__main__":
    sys.exit(main())
