"""Files as a whole: bytes, characters, caps, documents, and what no file may have."""

import time

import pytest

from sweepledger.problems import MAX_PROBLEMS, Problem
from sweepledger.reader import read_document
from sweepledger.reader.strict_yaml import MAX_BYTES


def problems(content: bytes | str) -> list[str]:
    errors = read_document(content.encode() if isinstance(content, str) else content, "f.yaml").problems
    assert list(errors) == sorted(errors)
    return [str(problem) for problem in errors]


def data(content: bytes | str) -> object:
    reading = read_document(content.encode() if isinstance(content, str) else content, "f.yaml")
    assert reading.problems == ()
    assert reading.document is not None
    return reading.document.data


@pytest.mark.parametrize("text", ["'1'", '"true"', "'~'", '""', "'on'", "|\n  010\n", ">-\n  1e400\n"])
def test_what_is_quoted_or_a_block_is_text(text: str) -> None:
    value = data(f"a: {text}")

    assert isinstance(value, dict)
    assert isinstance(value["a"], str)


@pytest.mark.parametrize("text", ["---\na: 1\n", "a: 1\n...\n", "\n# note\n--- # note\na: 1", "{a: 1}"])
def test_one_document_may_have_its_marks(text: str) -> None:
    assert data(text) == {"a": 1}


@pytest.mark.parametrize("text", ["", "# only a comment\n", "\n\n", "---\n", "null", "---\n...\n"])
def test_an_empty_file_is_a_document_without_data(text: str) -> None:
    reading = read_document(text.encode(), "f.yaml")

    assert reading.problems == ()
    assert reading.document is not None
    assert reading.document.is_empty


@pytest.mark.parametrize(
    ("text", "is_tuple"),
    [
        ("{x: (3, 5)}", True),
        ("a: [{x: (1, 2)}, {x: 3}]", True),
        ("{x: f(1, y=2)}", True),
        ("{x: f(1, 2, 3), y: 4}", True),
        ("{x: , y: 1}", False),
        ("{x: 1, f(2): }", False),
        ("{x: 1, f): ~}", False),
        ("x:", False),
    ],
)
def test_a_tuple_in_a_mapping_is_told_as_one(text: str, *, is_tuple: bool) -> None:
    problems = read_document(text.encode(), "f.yaml").problems

    assert any("YAML has no tuples" in (problem.hint or "") for problem in problems) is is_tuple


def test_a_byte_order_mark_and_windows_line_ends_change_nothing() -> None:
    clean = read_document(b"a: 1\nb: [2,\n  3]\n", "f.yaml")

    marked = read_document(b"\xef\xbb\xbfa: 1\r\nb: [2,\r\n  3]\r\n", "f.yaml")

    assert marked == clean


def test_bytes_that_are_no_utf8_are_refused_with_their_place() -> None:
    assert problems(b"a: 1\nb: \xc3\xa9 \xe9\n") == [
        "f.yaml:2:6: must be UTF-8, got byte 0xe9 at offset 11 [not-utf8]\n  hint: save the file as UTF-8"
    ]
    assert problems("a: 1".encode("utf-16"))[0].startswith(
        "f.yaml:1:1: must be UTF-8, got byte 0xff at offset 0"
    )


INVISIBLE = {
    **{one: f"U+{ord(one):04X} control character" for one in "\x00\x08\x0b\r\x1f\x7f\x85\x9f\ufffe"},
    "\u00ad": "U+00AD soft hyphen",
    "\u200b": "U+200B zero width space",
    "\u202e": "U+202E right-to-left override",
    "\u2060": "U+2060 word joiner",
    "\ufeff": "U+FEFF zero width no-break space",
    "\U000e0001": "U+E0001 language tag",
}


@pytest.mark.parametrize("character", INVISIBLE, ids=INVISIBLE.values())
def test_invisible_characters_are_refused_in_comments_and_in_values(character: str) -> None:
    results = problems(f"a: 1\n# x{character}y\nb: y{character}z\n")

    rule = f"must not hold an invisible character, got {INVISIBLE[character]} [invisible-character]"
    assert results == [f"f.yaml:2:4: {rule}\n  hint: delete it", f"f.yaml:3:5: {rule}\n  hint: delete it"]


def test_escapes_cannot_bring_invisible_characters_back() -> None:
    reading = read_document(b'a: "\\u202e"\nb: "\\ud800"\nc: "\\t\\n"\n"k\\0": 1\n', "f.yaml")

    rule = "must not hold an invisible character, got"
    assert [str(problem) for problem in reading.problems] == [
        f"f.yaml:1:4: a: {rule} U+202E right-to-left override [invisible-character]",
        f"f.yaml:2:4: b: {rule} U+D800 control character [invisible-character]",
        f"f.yaml:4:1: ['k\\x00']: {rule} U+0000 control character [invisible-character]",
    ]
    assert reading.document is not None
    assert reading.document.unread == {("a",), ("b",)}
    assert reading.document.data == {"a": None, "b": None, "c": "\t\n"}


def test_a_file_of_the_largest_size_is_read_and_one_byte_more_is_not() -> None:
    largest = b"a: 1\n" + b"#" * (MAX_BYTES - 5)

    assert MAX_BYTES == 262144
    assert data(largest) == {"a": 1}
    assert problems(largest + b"#") == ["f.yaml: must be at most 262144 bytes, got 262145 [too-large]"]


def test_the_deepest_nesting_is_read_and_one_level_more_is_not() -> None:
    assert data("a: " + "[" * 31 + "]" * 31)
    assert problems("a: " + "[" * 32 + "]" * 32) == [
        "f.yaml:1:35: must nest at most 32 levels deep [too-large]"
    ]


def test_as_many_nodes_as_allowed_are_read_and_one_more_is_not() -> None:
    assert data("[" + "1," * 9999 + "]")
    assert problems("[" + "1," * 10000 + "]") == [
        "f.yaml:1:20000: must hold at most 10000 keys and values [too-large]"
    ]


HOSTILE = {
    "open brackets": "[" * 200_000,
    "dashes": "- " * 100_000,
    "keys": "a: 1\n" * 40_000,
    "directives": "%A\n" * 60_000 + "---\na: 1",
    "invisible": "#\u202e\n" * 40_000,
    "one text": "a: " + "x" * 250_000,
    "one sexagesimal": "a: 1" + ":1" * 125_000,
    "ambiguous": "[" + "on," * 9_900 + "]",
    "aliases": "a: &a [x]\nb: [" + "*a," * 60_000 + "]",
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_files_of_any_kind_are_judged_in_seconds(text: str) -> None:
    start = time.process_time()

    read_document(text.encode()[:MAX_BYTES], "f.yaml")

    assert time.process_time() - start < 10  # quadratic time would be minutes


def test_an_alias_bomb_is_refused_without_being_expanded() -> None:
    levels = [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 10)]

    reading = read_document("\n".join(["l0: &l0 lol", *levels]).encode(), "f.yaml")

    assert {problem.code for problem in reading.problems} == {"alias", "too-many-problems"}
    assert reading.document is not None
    assert reading.document.data["l9"] == [None] * 9


def test_aliases_anchors_and_merge_keys_are_refused_and_the_rest_is_read() -> None:
    reading = read_document(b"a: &x 1\nb: *x\nc: {<<: *x, d: 2}\ne: &y [1]\n*x : 3\n", "f.yaml")

    assert [(problem.line, problem.column, problem.code) for problem in reading.problems] == [
        *((1, 4, "alias"), (2, 4, "alias"), (3, 5, "alias"), (4, 4, "alias"), (5, 1, "key-type"))
    ]
    assert reading.document is not None
    assert reading.document.data == {"a": 1, "b": None, "c": {"d": 2}, "e": [1]}
    assert reading.document.unread == {("b",)}


@pytest.mark.parametrize(
    ("value", "tag"),
    [
        ("!!str 1", "!!str"),
        ("! 1", "!"),
        ("!mine x", "!mine"),
        ("!!binary aGk=", "!!binary"),
        ("!<x> on", "x"),
    ],
)
def test_tagged_scalars_are_refused_and_not_read(value: str, tag: str) -> None:
    reading = read_document(f"a: {value}".encode(), "f.yaml")

    assert [str(problem) for problem in reading.problems] == [
        f"f.yaml:1:4: a: must not have a tag, got {tag} [tag]\n  hint: delete it; quotes make a text"
    ]
    assert reading.document is not None
    assert reading.document.unread == {("a",)}


def test_directives_are_refused_each_in_its_line() -> None:
    rule = "must not have directives [directive]\n  hint: delete the line"

    assert problems("# x\n%YAML 1.3\n\n%FOO bar\n---\na: 1") == [f"f.yaml:2:1: {rule}", f"f.yaml:4:1: {rule}"]
    assert data("a: 'x\n  %y'") == {"a": "x %y"}


def test_a_second_document_is_refused_and_not_read() -> None:
    reading = read_document(b"a: 1\n---\nb: on\n---\n[", "f.yaml")

    assert [(problem.line, problem.code) for problem in reading.problems] == [(2, "several-documents")]
    assert reading.document is not None
    assert reading.document.data == {"a": 1}


def test_repeated_keys_are_refused_with_both_places_and_the_first_is_kept() -> None:
    reading = read_document(b"a: {lr: 1, \"lr\": 2}\nb: 1\n'b': on\nb: 3\n", "f.yaml")

    rule = "must not repeat the key at line"
    assert [str(problem) for problem in reading.problems] == [
        f"f.yaml:1:12: a.lr: {rule} 1, column 5, got 'lr' [duplicate-key]\n  hint: keep one of them",
        f"f.yaml:3:1: b: {rule} 2, column 1, got 'b' [duplicate-key]\n  hint: keep one of them",
        f"f.yaml:4:1: b: {rule} 2, column 1, got 'b' [duplicate-key]\n  hint: keep one of them",
    ]
    assert reading.document is not None
    assert reading.document.data == {"a": {"lr": 1}, "b": 1}


def test_keys_that_are_no_text_are_refused() -> None:
    reading = read_document(
        b"1: a\ntrue: b\n? [x]\n: c\n? {x: 1}\n: d\n: e\n1.5: f\n~: g\n'2': h\n.inf: i\n", "f.yaml"
    )

    assert {problem.code for problem in reading.problems} == {"key-type"}
    assert [(problem.line, problem.column, problem.path) for problem in reading.problems] == [
        *((1, 1, "['1']"), (2, 1, "true"), (3, 3, ""), (5, 3, ""), (7, 1, "['']")),
        *((8, 1, "['1.5']"), (9, 1, "['~']"), (11, 1, "['.inf']")),
    ]
    assert reading.document is not None
    assert ("1",) in reading.document.unread
    assert reading.document.data["2"] == "h"


def test_a_missing_value_is_reported_at_its_key() -> None:
    assert problems("a:\n  b:\n  c: 1\nd:\n")[0].startswith("f.yaml:2:3: a.b: must have a value, got nothing")
    assert problems("a:\n  b: 2\nd:\n")[0].startswith("f.yaml:3:1: d: must have a value, got nothing")


SYNTAX = {
    "a: [1, 2": "f.yaml:1:9: must be valid YAML: while parsing a flow sequence, expected ',' or ']', "
    "but got the end of the file [yaml-syntax]\n  hint: it begins at line 1, column 4",
    "a: @x": "f.yaml:1:4: must be valid YAML: while scanning for the next token, found character '@' "
    "that cannot start any token [yaml-syntax]\n  hint: put it in quotes",
    "a: 1\nb\nc: 2": "f.yaml:3:1: must be valid YAML: while scanning a simple key, "
    "could not find expected ':' [yaml-syntax]\n  hint: a key is followed by a colon and a space",
    "a: 1\n...\n%YAML 1.3\n---\nb": "f.yaml:2:4: must be valid YAML: "
    "version minor part can only be 2 or 1, got (1, 3) [yaml-syntax]",
}


@pytest.mark.parametrize("text", SYNTAX, ids=repr)
def test_what_is_no_yaml_is_refused_at_its_place(text: str) -> None:
    reading = read_document(text.encode(), "f.yaml")

    assert [str(problem) for problem in reading.problems] == [SYNTAX[text]]
    assert reading.document is None


def test_no_more_problems_are_shown_than_a_person_wants_to_see() -> None:
    assert MAX_PROBLEMS == 50
    assert len(problems("[" + "on," * MAX_PROBLEMS + "]")) == MAX_PROBLEMS

    errors = read_document(("[" + "on," * (MAX_PROBLEMS + 2) + "]").encode(), "f.yaml").problems

    assert len(errors) == MAX_PROBLEMS + 1
    message = "at least 2 more problems are not shown"
    assert errors[-1] == Problem("f.yaml", 1, 149, "", message, "too-many-problems")
