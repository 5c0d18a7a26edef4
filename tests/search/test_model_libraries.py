"""The libraries that propose: limited to versions whose private names exist, and each required only by its methods."""

import sys

import cmaes
import numpy as np
import pytest
from optuna.samplers import NSGAIISampler
from optuna.trial import Trial

from sweepledger.errors import ToolError
from sweepledger.operations.scaffold.init import new_spec
from sweepledger.operations.scaffold.starter import Starter
from sweepledger.problems import Severity
from sweepledger.search.adaptive import Round, next_round
from sweepledger.structs.methods import METHODS, Method
from tests.repository import Sandbox, check_specs
from tests.search.rounds_conformance import a_sweep_of
from tests.searches import hill

MODULES = ("optuna_proposer", "tpe", "nsga2", "cma_es", "gaussian_process")


def test_the_private_names_that_the_proposers_use_exist() -> None:
    optimizer = cmaes.CMA(mean=np.zeros(2), sigma=1.0)

    assert hasattr(Trial, "_suggest")
    assert hasattr(NSGAIISampler(), "_elite_population_selection_strategy")
    assert hasattr(optimizer, "_rng")


def hide(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    for module in {library, *(name for name in sys.modules if name.split(".")[0] == library)}:
        monkeypatch.setitem(sys.modules, module, None)
    for name in MODULES:
        monkeypatch.delitem(sys.modules, f"sweepledger.search.adaptive.{name}", raising=False)


def test_cma_es_does_not_require_optuna(monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, "optuna")

    assert isinstance(next_round(a_sweep_of(METHODS["cma-es"]), [], number=1), Round)


@pytest.mark.parametrize(
    ("method", "library", "extra"),
    [
        (METHODS["tpe"], "optuna", "adaptive"),
        (METHODS["nsga2"], "optuna", "adaptive"),
        (METHODS["cma-es"], "cmaes", "adaptive"),
        (METHODS["bayes"], "egobox", "bayes"),
    ],
)
def test_missing_ones(method: Method, library: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, library)

    with pytest.raises(ToolError, match="which is not installed") as caught:
        next_round(a_sweep_of(method), [], number=1)

    assert str(method) in str(caught.value)
    assert library in str(caught.value).lower()
    assert f"pip install 'sweepledger[{extra}]'" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("method", "library", "extra"),
    [
        ("tpe", "optuna", "adaptive"),
        ("bayes", "egobox", "bayes"),
    ],
)
def test_validate_says_which_library_a_method_lacks_and_how_to_install_it(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, method: str, library: str, extra: str
) -> None:
    hill(sandbox, method=method)
    assert check_specs(sandbox.workspace)[1] == ()
    # What a package that is not installed looks like to importlib.
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == library else object())

    (problem,) = check_specs(sandbox.workspace)[1]

    assert (problem.code, problem.path, problem.severity) == ("library-missing", "method", Severity.WARNING)
    assert problem.message == f"method: {method} requires {library}, which is not installed"
    assert problem.hint == f"`pip install 'sweepledger[{extra}]'`"


@pytest.mark.parametrize(
    ("absent", "method"),
    [((), "bayes"), (("egobox",), "tpe"), (("optuna",), "bayes"), (("egobox", "optuna"), "bayes")],
)
def test_a_new_search_has_a_method_whose_library_is_installed(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, absent: tuple[str, ...], method: str
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name in absent else object())
    starter = Starter(("python", "code/train.py"), ("x=0.1..1",))

    new_spec(sandbox.workspace, "fresh", starter)

    text = (sandbox.root / "sweeps/fresh.yaml").read_text()
    assert f"\nmethod: {method}   # a search" in text
    assert ("pip install 'sweepledger[" in text) is ("egobox" in absent)
    found = {problem.code for problem in check_specs(sandbox.workspace, ["fresh"])[1]}
    assert ("library-missing" in found) is (len(absent) == 2)
