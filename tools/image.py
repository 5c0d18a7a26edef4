"""Build an image of `images/` twice to the same id, and push it. Needs buildah.

    python tools/image.py build trainer
    python tools/image.py push trainer registry.example.org/vision/trainer:v1 [--checksums FILE]

The base is named, by digest, in `images/base.txt`; $BASE names another, $BUILD_FLAGS gives buildah more.
"""

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
IMAGES = ("collector", "trainer")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("build").add_argument("image", choices=IMAGES)
    push = verbs.add_parser("push")
    push.add_argument("image", choices=IMAGES)
    push.add_argument("place")
    push.add_argument(
        "--checksums", type=Path, help="a file for the digest and the name, as sha256sum writes them"
    )
    asked = parser.parse_args()
    if asked.verb == "push":
        name = pushed(asked.image, asked.place)
        if asked.checksums:
            asked.checksums.write_text(checksum_line(name), encoding="utf-8")
        print(name)
        return 0
    first, second = built(asked.image), built(asked.image)
    print(f"{asked.image}: {first}")
    if first != second:
        print(f"built again it is another: {second}", file=sys.stderr)
        return 1
    return 0


def built(image: str) -> str:
    """Build from what is committed, and give the id: the digest of all layers and of the configuration."""
    base = os.environ.get("BASE") or (ROOT / "images/base.txt").read_text(encoding="utf-8").strip()
    with tempfile.TemporaryDirectory(prefix="sweep-image-") as scratch:
        tree, told = Path(scratch) / "tree", Path(scratch) / "id"
        subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(tree)], check=True)
        flags = [
            "--timestamp=0",
            "--no-cache",
            "--quiet",
            "--iidfile",
            str(told),
            "--build-arg",
            f"BASE={base}",
        ]
        more = shlex.split(os.environ.get("BUILD_FLAGS", ""))
        file = tree / "images" / image / "Containerfile"
        argv = ["buildah", "build", *flags, *more, "--file", str(file), "--tag", local(image), str(tree)]
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
        return told.read_text(encoding="utf-8").strip()


def pushed(image: str, place: str) -> str:
    """Push what was built, and give its name by the digest that the registry has."""
    with tempfile.TemporaryDirectory(prefix="sweep-image-") as scratch:
        told = Path(scratch) / "digest"
        argv = ["buildah", "push", "--quiet", "--digestfile", str(told), local(image), f"docker://{place}"]
        subprocess.run(argv, check=True)
        return f"{place}@{told.read_text(encoding='utf-8').strip()}"


def checksum_line(name: str) -> str:
    """Return the digest of an image and its name without tag, as `sha256sum` writes those of files."""
    place, _, digest = name.partition("@sha256:")
    folder, slash, last = place.rpartition("/")
    return f"{digest}  {folder}{slash}{last.partition(':')[0]}\n"


def local(image: str) -> str:
    return f"localhost/sweepledger-{image}"


if __name__ == "__main__":
    sys.exit(main())
