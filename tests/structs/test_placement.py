"""The cluster of a sweep's next batch."""

from collections import Counter

from sweepledger.structs.run_config import RunConfig
from sweepledger.structs.settings import FleetSettings, Settings
from sweepledger.structs.settings.platform import ClusterSettings
from tests.sweeps import with_keys

NAMES = [f"sweep-{number}" for number in range(2000)]


def a_fleet(**clusters: ClusterSettings) -> Settings:
    return with_keys(Settings(), clusters=clusters)


def of_weight(name: str, weight: int = 1) -> ClusterSettings:
    return ClusterSettings(name, weight=weight)


def placed(
    settings: Settings, run: RunConfig | None = None, *, last: str | None = None
) -> dict[str, str | None]:
    return {name: settings.fleet.choose_cluster(name, run or RunConfig(), last=last) for name in NAMES}


TWO = a_fleet(eu=of_weight("eu"), us=of_weight("us"))


def test_the_choice_is_the_same_in_every_version() -> None:
    chosen = [
        TWO.fleet.choose_cluster(name, RunConfig(), last=None) for name in ("a", "b", "lr", "peak", "vision")
    ]

    assert chosen == ["eu", "us", "us", "eu", "eu"]


def test_a_new_cluster_takes_sweeps_and_moves_no_other() -> None:
    before = placed(TWO)

    after = placed(a_fleet(**TWO.fleet.clusters, asia=of_weight("asia")))

    moved = {name for name in NAMES if before[name] != after[name]}
    assert moved
    assert {after[name] for name in moved} == {"asia"}


def test_the_spec_decides_then_where_the_newest_batch_ran_and_then_the_weights() -> None:
    counts = Counter(placed(a_fleet(eu=of_weight("eu", 3), us=of_weight("us"))).values())

    assert {*placed(TWO, RunConfig(cluster="eu"), last="us").values()} == {"eu"}
    assert {*placed(TWO, last="us").values()} == {"us"}
    assert 0.7 < counts["eu"] / len(NAMES) < 0.8
    assert FleetSettings().choose_cluster("peak", RunConfig(), last=None) is None


def test_a_sweep_leaves_a_cluster_that_was_given_up() -> None:
    settings = a_fleet(eu=of_weight("eu"), us=ClusterSettings("us", is_lost=True))

    assert {*placed(settings, last="us").values()} == {"eu"}


def test_only_a_cluster_with_the_pool_runs_a_sweep() -> None:
    settings = a_fleet(eu=ClusterSettings("eu", pools=("cpu",)), us=ClusterSettings("us", pools=("gpu",)))

    assert {*placed(settings, RunConfig(pool="gpu")).values()} == {"us"}
    assert {*placed(settings, RunConfig(pool="none")).values()} == {None}


def test_a_cluster_without_weight_runs_only_what_names_it_or_ran_there() -> None:
    settings = a_fleet(eu=of_weight("eu"), us=of_weight("us", 0))

    assert {*placed(settings).values()} == {"eu"}
    assert {*placed(settings, last="us").values()} == {"us"}
    assert {*placed(settings, RunConfig(cluster="us")).values()} == {"us"}


def test_the_settings_of_a_cluster_are_those_of_all_but_for_what_differs_there() -> None:
    settings = a_fleet(eu=of_weight("eu"), us=ClusterSettings("us", is_lost=True))

    (own,) = settings.in_clusters

    assert own.fleet.cluster == "eu"
    assert settings.fleet.live_clusters == ("eu",)
    assert Settings().in_clusters == (Settings(),)
