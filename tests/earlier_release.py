"""An earlier release of this project, installed into an environment of its own: what repositories upgrade from."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
COMMIT = "1e13127"
"""The last commit before the second launcher and the light archive; it wrote the first collector, too."""
PACKAGE = ("generator", "base", "pyproject.toml", "README.md", "LICENSE")


def installed(folder: Path) -> Path | None:
    """Install the release below a folder, and return its Python; None where this clone does not have its commit."""
    archive = ["git", "-C", str(ROOT), "archive", COMMIT, "--", *PACKAGE]
    archived = subprocess.run(archive, capture_output=True, check=False)
    if archived.returncode:
        return None
    (folder / "source").mkdir(parents=True)
    subprocess.run(["tar", "-x", "-C", str(folder / "source")], input=archived.stdout, check=True)
    environment = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    python = environment / "bin/python"
    (site,) = environment.glob("lib/python*/site-packages")
    # It has the libraries of this environment, but not its editable installation of the package.
    libraries = [path for path in sys.path if path.endswith("site-packages")]
    (site / "libraries.pth").write_text("".join(f"{path}\n" for path in libraries))
    install = ["install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(python), *install, str(folder / "source")],
        check=True,
        capture_output=True,
    )
    return python
