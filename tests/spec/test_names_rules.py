"""Names of sweeps and metrics at their bounds."""

import pytest

from tests.written_specs import a_spec, bad, good, hints, parsed


@pytest.mark.parametrize("name", ["a", "a" * 36, "lr-1", "l--r", "x9"])
def test_sweep_names_are_dns_labels_with_room_for_what_is_added(name: str) -> None:
    assert good(name=name).name == name


@pytest.mark.parametrize("name", ["a" * 37, "Lr", "", "..", "\u0455weep", "lr\n", "default"])
def test_other_sweep_names_are_refused(name: str) -> None:
    assert ("name", "sweep-name") in bad(name=name)


@pytest.mark.parametrize(("name", "hint"), [("9", None), ("B" * 40, "for example " + "b" * 36), ("__", None)])
def test_no_name_is_suggested_that_would_be_refused(name: str, hint: str | None) -> None:
    assert hint in hints(name=name)


def test_reserved_names_are_listed() -> None:
    sweep = parsed(a_spec(name="main"), path="sweeps/main.yaml")

    assert isinstance(sweep, tuple)
    assert [(problem.message, problem.hint) for problem in sweep] == [
        ("must not be a reserved name, got 'main'", "reserved: con, default, kube-system, main")
    ]


@pytest.mark.parametrize("name", ["a", "A1", "val_acc", "val/acc@5", "x.y-z", "a" * 63])
def test_metric_names_fit_a_column_and_a_line(name: str) -> None:
    assert good(metric={"name": name}).metric.name == name


@pytest.mark.parametrize("name", ["", "=x", "a,b", "a b", "1a", "_a", "a" * 64, "a\n", "ä"])
def test_other_metric_names_are_refused(name: str) -> None:
    assert bad(metric={"name": name, "goal": "minimize"}) == [("metric.name", "metric-name")]
