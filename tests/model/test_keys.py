"""Classes state the keys of documents: what is decoded, what is checked, and what the JSON Schema says."""

from collections.abc import Mapping
from typing import Annotated, Any

import pytest
from msgspec import Meta, Struct

from sweepledger.model.keys import (
    EMPTY,
    GROUP,
    NAME,
    UNWRITTEN,
    Absent,
    EntryName,
    Key,
    OneOf,
    decode,
    keys_of,
    texts,
)
from sweepledger.model.text_forms import LabelKey, LabelValue
from sweepledger.model.text_forms import Name as ObjectName
from sweepledger.structs.quantities import Seconds
from tools import json_schemas

WORD = Annotated[str, Meta(description="A word.", examples=["a"])]


class Shelf(Struct, frozen=True):
    """One shelf."""

    name: Annotated[str, NAME]
    width: Annotated[int, Meta(ge=1, examples=[80])]
    """Centimetres."""
    room: Annotated[str | None, Absent(None), Meta(examples=["hall"])]
    """Where it is. Default: nowhere."""
    content: Annotated[str, OneOf((("books", WORD), ("records", WORD)))] = ""
    wait_seconds: Annotated[Seconds, Meta(examples=["2m"])] = 90
    """How long it waits."""
    is_lost: Annotated[bool, Key("lost"), Meta(examples=[True])] = False
    """Whether it is lost."""
    noted: Annotated[str, UNWRITTEN] = ""
    labels: Annotated[Mapping[LabelKey, LabelValue], Meta(max_length=2, examples=[{"a": "b"}])] = EMPTY
    """Its labels."""


class Garden(Struct, frozen=True):
    """What a house has around it."""

    trees: Annotated[int, Meta(examples=[2])] = 0
    """How many trees."""
    wall: Annotated[str | None, Absent("none"), Meta(examples=["stone"])] = None


class House(Struct, frozen=True):
    """A house."""

    garden: Annotated[Garden, GROUP]
    shelves: Annotated[Mapping[ObjectName, Shelf], EntryName("first")]
    """Shelves by name."""


def test_a_class_has_the_keys_that_documents_have() -> None:
    assert [*keys_of(Shelf)] == ["width", "room", "books", "records", "wait", "lost", "labels"]
    assert [key for key, stated in keys_of(Shelf).items() if stated.is_required] == ["width"]


def test_a_document_becomes_values_and_what_is_left_out_its_default() -> None:
    data = {
        "shelves": {"low": {"width": 3.0, "wait": "2m", "lost": True, "records": "x"}, "top": {"width": 1}}
    }

    assert decode(House, {"trees": 3, **data}) == House(
        Garden(3, "none"),
        {"low": Shelf("low", 3, None, "x", 120, is_lost=True), "top": Shelf("top", 1, None)},
    )


@pytest.mark.parametrize(
    ("shelf", "path", "code", "is_key"),
    [
        ({"wait": "2 m"}, ("shelves", "a", "wait"), "duration", False),
        ({"labels": {"a b": "c"}}, ("shelves", "a", "labels", "a b"), "label", True),
        ({"labels": {"a": "b c"}}, ("shelves", "a", "labels", "a"), "label", False),
    ],
)
def test_each_text_with_a_form_is_found_at_its_path(
    shelf: dict[str, Any], path: tuple[str, ...], code: str, *, is_key: bool
) -> None:
    wrong = []
    for place, text, stated, at_key in texts(House, {"shelves": {"a": shelf}}):
        try:
            assert stated.form is None or stated.form.read(text)
        except ValueError:
            wrong.append((place, stated.form and stated.form.code, at_key))

    assert wrong == [(path, code, is_key)]


def test_the_schema_says_what_the_class_says() -> None:
    house = json_schemas.Schemas(House).of_class(House)["properties"]
    shelves = house["shelves"]
    shelf = shelves["additionalProperties"]

    assert [*house] == ["trees", "wall", "shelves"]
    assert house["trees"]["description"] == "How many trees."
    assert shelves["examples"] == [{"first": {"width": 80, "room": "hall"}}]
    assert shelves["propertyNames"] == {"pattern": "^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$"}
    assert (shelf["description"], shelf["required"]) == ("One shelf.", ["width"])
    assert shelf["properties"]["width"] == {
        "description": "Centimetres.",
        "type": "integer",
        "minimum": 1,
        "examples": [80],
    }
    assert shelf["properties"]["wait"]["default"] == "90s"
    assert shelf["properties"]["books"]["description"] == "A word."
    assert shelf["properties"]["labels"]["maxProperties"] == 2
