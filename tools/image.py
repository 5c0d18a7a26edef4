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
    arguments = parser.parse_args()
    if arguments.verb == "push":
        name = pushed(arguments.image, arguments.place)
        if arguments.checksums:
            arguments.checksums.write_text(checksum_line(name), encoding="utf-8")
        print(name)
        return 0
    first, second = built(arguments.image), built(arguments.image)
    print(f"{arguments.image}: {first}")
    if first != second:
        print(f"built again it is another: {second}", file=sys.stderr)
        return 1
    return 0


def built(image: str) -> str:
    """Build the committed files and return the id: the digest of all layers and of the configuration."""
    base = os.environ.get("BASE") or (ROOT / "images/base.txt").read_text(encoding="utf-8").strip()
    with tempfile.TemporaryDirectory(prefix="sweep-image-") as scratch:
        tree, id_file = Path(scratch) / "tree", Path(scratch) / "id"
        subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(tree)], check=True)
        flags = [
            "--timestamp=0",
            "--no-cache",
            "--quiet",
            "--iidfile",
            str(id_file),
            "--build-arg",
            f"BASE={base}",
        ]
        more = shlex.split(os.environ.get("BUILD_FLAGS", ""))
        file = tree / "images" / image / "Containerfile"
        argv = ["buildah", "build", *flags, *more, "--file", str(file), "--tag", local(image), str(tree)]
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
        return id_file.read_text(encoding="utf-8").strip()


def pushed(image: str, place: str) -> str:
    """Push a built image and return its name with the digest in the registry."""
    with tempfile.TemporaryDirectory(prefix="sweep-image-") as scratch:
        digest_file = Path(scratch) / "digest"
        argv = [
            "buildah",
            "push",
            "--quiet",
            "--digestfile",
            str(digest_file),
            local(image),
            f"docker://{place}",
        ]
        subprocess.run(argv, check=True)
        return f"{place}@{digest_file.read_text(encoding='utf-8').strip()}"


def checksum_line(name: str) -> str:
    """Return the digest of an image and its name without tag, as `sha256sum` writes those of files."""
    place, _, digest = name.partition("@sha256:")
    folder, slash, last = place.rpartition("/")
    return f"{digest}  {folder}{slash}{last.partition(':')[0]}\n"


def local(image: str) -> str:
    return f"localhost/sweepledger-{image}"


if __name__ == "__main__":
    sys.exit(main())
