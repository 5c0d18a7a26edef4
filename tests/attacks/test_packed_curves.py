"""A short message of a pod unpacks to a curve that is none: reading it takes little memory and time."""

import base64
import json
import time
import tracemalloc
import zlib

import pytest

from sweepledger.formats import record_json
from sweepledger.formats.record_json import CorruptRecord


def steps(*texts: str) -> str:
    """Return a curve with these differences of steps, each with the value 0."""
    return f'{{"loss":[[{",".join(texts)}],[{",".join("0" for _ in texts)}]]}}'


CURVES = {
    "lists that are joined": steps(f"[{','.join('0' * 8000)}]", *(["[]"] * 3200)),
    "texts that are joined": steps(f'"{"x" * 16_000}"', *(['""'] * 3200)),
    "many steps": steps(*(["1"] * 8000)),
    "numbers that grow": steps(*(["9" * 4000] * 7)),
    "fractions": steps("0.5", "0.5"),
    "truth values": steps("true", "true"),
    "an object": '{"loss":[{"1":0,"2":0},[0,0]]}',
    "a text": '{"loss":["12",[0,0]]}',
    "a number": '{"loss":[1,2]}',
    "one list": '{"loss":[[1]]}',
    "curves without names": "[[[1],[1]]]",
    "many curves": json.dumps({str(name): [[1], [1]] for name in range(2000)}),
    "no text": "\udcff".encode("utf-8", "surrogatepass").decode("latin-1"),
    "many levels": "[" * 30_000,
    "more than a record": " " * 10_000_000 + steps("1"),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("curve", CURVES)
def test_what_is_no_curve_is_refused_before_it_grows(curve: str) -> None:
    packed = base64.b64encode(zlib.compress(CURVES[curve].encode(), 9)).decode()
    message = json.dumps({"version": 1, "curves_zlib": packed, "sha256": "0" * 64}).encode()
    began = time.process_time()
    tracemalloc.start()

    read = record_json.read_message(message)

    assert isinstance(read, CorruptRecord)
    assert tracemalloc.get_traced_memory()[1] < 2**22
    tracemalloc.stop()
    assert time.process_time() - began < 1
