from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from sweepledger.formats import yaml
from sweepledger.problems import TextError
from sweepledger.repo import kustomize

TRICKY = [
    "1e-4", "1e4", "1E5", "0o17", "012", "0x1f", "1_000", "1234e567", "1234567e8", "y", "n", "yes", "no",
    "on", "off", "True", "null", "~", ".inf", ".nan", "nan", "12:30:45", "2024-01-01", "=", "<<", "-", "?",
    ":", "a:b", "a:", "#x", "x#y", "[a]", "{a}", "*", "&", "!", "%", "@", "`", "+5", ".5", "5.", "-0", "",
    " ", "a b ", "a\nb", "é", "\t", '"', "'", "\\",
]  # fmt: skip

DATA = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text() | st.sampled_from(TRICKY),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(TRICKY), inner),
)


def ruamel(text: str) -> object:
    return YAML(typ="safe", pure=True).load(text)


@given(DATA)
def test_both_generations_of_yaml_read_the_same_data(data: object) -> None:
    text = yaml.dump(data)

    assert yaml.load(text) == data
    assert ruamel(text) == data


def test_kustomize_reads_every_tricky_text_as_text(tmp_path: Path) -> None:
    values = {f"key-{number}": text for number, text in enumerate(TRICKY) if text.isprintable()}
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "tricky"}, "data": values}
    (tmp_path / "tricky.yaml").write_text(yaml.dump(config_map))
    (tmp_path / "kustomization.yaml").write_text("resources: [tricky.yaml]\n")

    (built,) = kustomize.build(tmp_path)

    assert built["data"] == values


def test_texts_are_quoted_and_keys_bare_where_that_is_safe() -> None:
    text = yaml.dump({"kind": "Job", "on": True, "app.kubernetes.io/name": "x", "1a": 1, "parts": ["a", 2]})

    assert text == 'kind: "Job"\n"on": true\napp.kubernetes.io/name: "x"\n"1a": 1\nparts:\n- "a"\n- 2\n'


def test_several_documents_are_marked_and_shared_parts_written_out() -> None:
    shared = ["x"]

    text = yaml.dump({"a": shared, "b": shared}, {"c": shared})

    assert text == '---\na:\n- "x"\nb:\n- "x"\n---\nc:\n- "x"\n'
    assert yaml.load_all(text) == ({"a": ["x"], "b": ["x"]}, {"c": ["x"]})


@pytest.mark.parametrize(
    "text",
    ["a: &x 1\nb: *x\n", "a: !!str 1\n", "a: " + "[" * 100 + "]" * 100, "--- 1\n--- {a: &x [*x]}\n", "a: ]"],
)
def test_a_stream_with_aliases_tags_or_great_depth_is_refused(text: str) -> None:
    with pytest.raises(TextError):
        yaml.load_all(text)
    with pytest.raises(TextError):
        yaml.load_all(text.encode())


def test_documents_above_a_limit_are_not_parsed() -> None:
    large = b"a: " + b"x" * (2 << 20)

    assert yaml.find_hazard(large) is None
    assert yaml.find_hazard(large, max_bytes=len(large)) is None
    results = yaml.find_hazard(large, max_bytes=len(large) - 1)
    assert results is not None
    assert str(results) == "must have at most 2 MiB of YAML, got 2"
    assert yaml.find_hazard(b" " * yaml.MAX_BYTES) is None
    assert yaml.find_hazard(b" " * (yaml.MAX_BYTES + 1)) is not None


def test_a_document_has_at_most_32_levels() -> None:
    assert yaml.find_hazard(b"[" * 32 + b"]" * 32) is None
    assert yaml.find_hazard(b"[" * 33 + b"]" * 33) is not None
