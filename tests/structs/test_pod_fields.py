"""Fields of pods that keys decide: what follows from their statement."""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Struct

from sweepledger.model.keys import EMPTY
from sweepledger.structs.pod_fields import PodField, allowed, decided, field_paths


class Kennel(Struct, frozen=True):
    """What pods of a kennel have."""

    leash: Annotated[str | None, PodField("leashName")] = None
    dots: Annotated[int | None, PodField("dnsConfig", lambda dots: {"dots": str(dots)})] = None


class House(Struct, frozen=True):
    """What all pods may have."""

    leash: Annotated[str | None, PodField("leashName")] = None
    leashes: Annotated[tuple[str, ...], PodField("leashName")] = ()
    kennels: Mapping[str, Kennel] = EMPTY


HOUSE = House("short", ("long", "none"))


def test_the_last_value_decides_and_a_list_only_allows() -> None:
    assert decided(HOUSE, Kennel()) == {"leashName": "short"}
    assert decided(HOUSE, Kennel("red", 2)) == {"leashName": "red", "dnsConfig": {"dots": "2"}}


def test_all_that_a_field_may_be_is_allowed() -> None:
    assert [*allowed(HOUSE)] == [("leashName", "short"), ("leashName", "long"), ("leashName", "none")]
    assert [*allowed(Kennel(dots=2))] == [("dnsConfig", {"dots": "2"})]


def test_the_paths_of_a_field_are_those_of_the_keys_that_state_it() -> None:
    assert field_paths(House) == {
        "leashName": [("leash",), ("leashes",), ("kennels", "*", "leash")],
        "dnsConfig": [("kennels", "*", "dots")],
    }
