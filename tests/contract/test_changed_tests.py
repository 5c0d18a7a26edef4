"""`make test-changed` finds tests for a change of any package, and few of them."""

from pathlib import Path

import pytest

from tools import changed_tests

PACKAGES = sorted(
    path.parent.name
    for path in (changed_tests.SOURCES / "sweepledger").glob("*/__init__.py")
    if path.parent.name not in {"schemas", "workflows"}
)


@pytest.fixture(scope="module")
def importers() -> dict[Path, frozenset[str]]:
    tests = sorted((changed_tests.ROOT / "tests").rglob("test_*.py"))
    return {test: changed_tests.imported(test) for test in tests}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_module_of_a_package_has_tests_and_never_hundreds(
    package: str, importers: dict[Path, frozenset[str]]
) -> None:
    modules = [*(changed_tests.SOURCES / "sweepledger" / package).glob("*.py")]

    chosen = {module.name: [*changed_tests.tests_of(module, importers)] for module in modules}

    without = [name for name, tests in chosen.items() if not tests]
    assert len(without) < len(chosen)
    assert all(
        sum(map(changed_tests.size, tests[1:])) <= changed_tests.MOST_LINES for tests in chosen.values()
    )
