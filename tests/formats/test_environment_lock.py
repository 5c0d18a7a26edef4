"""Lock files of every known format, and how installed versions differ from them."""

import pytest

from sweepledger.formats.environment_lock import differences, is_lock_name, read

UV = """version = 1
[[package]]
name = "NumPy"
version = "2.1.0"
source = { registry = "https://index.example/simple" }
[[package]]
name = "numpy"
version = "2.2.0"
source = { registry = "https://index.example/simple" }
[[package]]
name = "project"
version = "0.1"
source = { editable = "." }
"""
PYLOCK = """lock-version = "1.0"
[[packages]]
name = "numpy"
version = "2.1.0"
[[packages]]
name = "colorama"
version = "0.4"
marker = "sys_platform == 'win32'"
"""
CONDA = """version: 1
package:
- {name: numpy, version: 2.1.0, manager: conda, platform: linux-64}
"""
REQUIREMENTS = """# made by a tool
--index-url https://index.example/simple
numpy[extra]==2.1.0 \\
    --hash=sha256:aaaa \\
    --hash=sha256:bbbb
colorama==0.4 ; sys_platform == "win32" --hash=sha256:cccc
"""


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("uv.lock", UV),
        ("a/pylock.toml", PYLOCK),
        ("pylock.dev.toml", PYLOCK),
        ("conda-lock.yml", CONDA),
        ("requirements-train.txt", REQUIREMENTS),
    ],
)
def test_an_upgraded_package_is_named_in_every_format(path: str, text: str) -> None:
    pinned = read(path, text.encode())

    (difference,) = differences(pinned, {"NUMPY": "2.3.0", "pip": "24"})
    assert difference.startswith("numpy is 2.3.0, and 2.1.0")
    assert differences(pinned, {"numpy": "2.1", "project": "9"}) == ()
    assert is_lock_name(path)


def test_a_package_that_every_platform_needs_must_not_be_missing() -> None:
    assert differences(read("requirements.txt", REQUIREMENTS.encode()), {}) == (
        "numpy is missing, and 2.1.0 is locked",
    )


def test_a_local_version_counts_only_if_the_lock_has_one() -> None:
    def differs(installed: str, locked: str) -> bool:
        return bool(differences([("torch", locked, False)], {"torch": installed}))

    assert not differs("2.4.1+cpu", "2.4.1")
    assert not differs("2.4.1+cpu", "2.4.1+cpu")
    assert differs("2.4.1+cu121", "2.4.1+cpu")
    assert differs("2.4.10", "2.4.1")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("requirements.txt", "numpy==2.1.0"),
        ("requirements.txt", "numpy>=2 --hash=sha256:a"),
        ("requirements.txt", ""),
        ("uv.lock", "package = 1"),
        ("uv.lock", "["),
        ("conda-lock.yml", "package: [1]"),
        ("pylock.toml", "packages = []"),
        ("environment.yml", "dependencies: []"),
    ],
)
def test_a_file_that_pins_nothing_reliable_is_refused(path: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"pin|read|is not"):
        read(path, text.encode())
