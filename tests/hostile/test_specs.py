"""The catalogue of hostile specs: S is what YAML can hide, N is names, values and sizes.

Every row has its id; `ACCEPTED` says which inputs must work and what they mean, `APART` why a row is met in
another way than by refusing.
"""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from sweepledger import search
from sweepledger.errors import SpecError
from sweepledger.problems import Problem
from sweepledger.search import Expansion
from sweepledger.structs.settings import Settings
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import canonical_json
from tests.command_line import captured
from tests.repository import Sandbox
from tests.sweeps import SETTINGS, a_batch, overlay_of, real_bases, real_launcher
from tests.written_specs import parse_sweep

SPEC = """\
name: lr
method: grid
metric: {name: score, goal: minimize}
parameters:
  other: {value: 1}
command: [train, "${args}"]
"""


def spec(old: str = "", new: str = "") -> bytes:
    """Write the spec with one text in the place of another."""
    assert old in SPEC
    return SPEC.replace(old, new, 1).encode()


def value(text: str) -> bytes:
    return spec("{value: 1}", f"\n    value: {text}")


def values(*texts: str) -> list[bytes]:
    return [value(text) for text in texts]


def parameter(text: str, *, top: str = "method: grid") -> bytes:
    return spec("  other: {value: 1}", f"  other: {text}").replace(b"method: grid", top.encode(), 1)


def named(*names: str) -> list[bytes]:
    return [spec("name: lr", f"name: {name}") for name in names]


def run(text: str) -> bytes:
    return SPEC.encode() + f"run: {text}\n".encode()


def metric(text: str) -> bytes:
    return spec("{name: score, goal: minimize}", text)


RANDOM = "method: random\nseed: 1\nrun_cap: 4"
DIGEST = "sha256:" + "0" * 64
TEN = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"
FIFTY = "".join(f"  p{number}: {{values: {TEN}}}\n" for number in range(50))

Group = tuple[list[bytes], set[str]]


def refused(codes: str, *contents: bytes) -> Group:
    """Return inputs, each of which has a problem with one of the codes."""
    return [*contents], {*codes.split()}


def with_key(*lines: str | bytes) -> list[bytes]:
    """Return the spec with each of these lines at its end."""
    return [SPEC.encode() + (line if isinstance(line, bytes) else line.encode()) + b"\n" for line in lines]


def runs(*texts: str) -> list[bytes]:
    return [run(f"{{{text}}}") for text in texts]


IMAGES = ("train", "train:latest", f"tr ain@{DIGEST}", f"Train@{DIGEST}", f"{'a' * 600}@{DIGEST}")
BOMB = b"a: &a [x, x]\n" + b"".join(b"b%d: &b%d [*a, *a]\n" % (n, n) for n in range(9))
TEMPLATES = ("{{ .Values.x }}", "${{ secrets.X }}", "{% x %}", "$(POD_NAME)", "${VAR}", "$(touch x)")
REFUSED: dict[str, list[Group]] = {
    "S2": [refused("duplicate-value", parameter("{values: [1e-1, 1.0e-1, 0.1]}"))],
    "S3": [refused("ambiguous-scalar", parameter("{values: [on, off]}"))],
    "S4": [refused("ambiguous-scalar", *values("yes", "no", "y", "N", "On"))],
    "S5": [refused("ambiguous-scalar", *values("010", "0777", "08", "0o10"))],
    "S6": [
        refused("number-form", *values("0x1F", "+5")),
        refused("ambiguous-scalar", *values("0b101", "1_000")),
    ],
    "S7": [refused("ambiguous-scalar", *values("12:30:45", "1:30"))],
    "S8": [refused("ambiguous-scalar", *values("2024-01-01"))],
    "S9": [
        refused("not-finite", *values(".nan", ".inf", "-.inf", "NaN", "Infinity", "1e400")),
        refused("wrong-type", parameter('{min: ".inf", max: 1}', top=RANDOM)),
    ],
    "S10": [refused("number-range", *values("1e-400"))],
    "S11": [refused("number-range", *values("1" * 30, str(2**53 + 1)))],
    "S12": [refused("wrong-type", *with_key("description: 1.10"))],
    "S13": [
        refused("empty-value", *values("", "~")),
        refused("wrong-type", *with_key("description: null")),
    ],
    "S14": [
        refused("duplicate-key", *with_key('"name": lr', "method: grid")),
        refused("duplicate-key", parameter("{value: 1}\n  other: {value: 2}")),
        refused("duplicate-key", parameter("{value: 1, value: 1}")),
    ],
    "S15": [refused("alias", *values("&a 1", "*a", "{<<: *a}"))],
    "S16": [refused("alias", BOMB, b"a: &a [*a]\n")],
    "S17": [refused("tag", *values("!!python/object/apply:os.system [ls]", "!mine 1", "!!binary aGk="))],
    "S18": [
        refused("several-documents", *with_key(b"---\n" + SPEC.encode())),
        refused("directive", b"%YAML 1.1\n---\n" + SPEC.encode()),
    ],
    "S19": [
        refused("yaml-syntax", spec("  other", "\tother")),
        refused("wrong-type", spec("{value: 1}", "value:1")),
    ],
    "S20": [
        refused("not-utf8", SPEC.encode("utf-16"), *with_key(b"# gr\xfc\xdfe", b"# \x80")),
        refused("invisible-character", *with_key("# \x00")),
    ],
    "S22": [
        refused("too-large", b"#" * (1024 * 1024 + 1), b"name: " + b"x" * 10_000_000),
        refused("too-large", b"".join(b"k%d: 1\n" % n for n in range(30_000)), b"[" * 1000 + b"]" * 1000),
    ],
    "S23": [
        refused("number-range", *values("9" * 5000)),
        refused("not-finite", *values("0." + "9" * 5000 + "e9999")),
    ],
    "S24": [refused("empty-file", b"", b"# nothing\n"), refused("wrong-type", b"- 1\n", b"text\n")],
    "S25": [refused("unknown-key", spec("parameters:", "paramters:"))],
    "S26": [refused("wrong-value", *with_key("version: 2"))],
    "S27": [refused("key-type", *(spec("  other:", f"  {key}:") for key in ("1", "true", "? [a] ")))],
    "S28": [refused("invisible-character", *with_key("# \u202e", "# a\u200bb"))],
    "N1": [
        refused("sweep-name", *named("../../etc", "/abs", "a/b", ".", "..", '""')),
        refused("empty-value", *named("~")),
    ],
    "N2": [refused("sweep-name", *named("Sweep_1", "a-", "1a", "a" * 37, "a" * 64))],
    "N3": [
        refused("sweep-name", *named("\u0455weep", "\uff53weep", "s\u0301weep", '"sweep\\n"')),
        refused("invisible-character", *named("sw\u200beep")),
    ],
    "N5": [refused("sweep-name", *named("con", "kube-system", "default", ".git", "main"))],
    "N6": [refused("name-mismatch", *named("other"))],
    "N8": [
        refused("template-syntax", *values(*(f'"{text}"' for text in TEMPLATES))),
        refused("template-syntax", *with_key('description: "{{ x }}"')),
        refused("template-syntax", *(spec('"${args}"', f'"{text}"') for text in ("$(POD_NAME)", "${{ x }}"))),
    ],
    "N9": [
        refused("sweep-name", *named("-a", "--upload-pack=x")),
        refused("image-reference", *runs(f"image: '-x@{DIGEST}'")),
        refused("code-path", *runs("code: {path: --upload-pack=x}", "code: {path: -c}")),
    ],
    "N10": [
        refused("image-reference", *runs(*(f"image: '{image}'" for image in IMAGES))),
        refused("image-reference", *runs(f"image: 'user:pass@host/train@{DIGEST}'")),
    ],
    "N12": [
        refused("quantity", *runs(*(f"resources: {{cpu: {cpu}}}" for cpu in ("lots", "'-1'", "'1e3'")))),
        refused("quantity", *runs("resources: {memory: 1e40Gi}")),
        refused("wrong-type", *runs("resources: {gpu: 0.5}")),
        refused("unknown-key", *runs("resources: {requests: {cpu: 2}, limits: {cpu: 1}}")),
    ],
    "N13": [
        refused(
            "budget-exceeded",
            *with_key("run: {resources: {gpu: 64}, timeout: 1d}\nbudget: {max_gpu_hours: 100}"),
        )
    ],
    "N14": [refused("too-many-trials", parameter("{value: 1}\n" + FIFTY.rstrip()))],
    "N15": [
        refused(
            "range-inverted",
            *(parameter(f"{{min: {low}, max: {high}}}", top=RANDOM) for low, high in ((2, 1), (1, 1))),
        ),
        refused(
            "range-step out-of-range",
            *(parameter(f"{{min: 0, max: 1, step: {step}}}") for step in ("0", "0.3")),
        ),
        refused("log-range", parameter("{min: 0, max: 1, distribution: log_uniform_values}", top=RANDOM)),
        refused("too-many-values", parameter("{linspace: [0, 1, 1000000000]}")),
    ],
    "N16": [
        refused("missing-key", parameter("{min: 0, max: 1}", top="method: random\nrun_cap: 4")),
        refused(
            "out-of-range wrong-type number-range",
            *(
                parameter("{min: 0, max: 1}", top=f"method: random\nrun_cap: 4\nseed: {seed}")
                for seed in ("-1", "1.5", f"{2**64}")
            ),
        ),
    ],
    "N17": [
        refused(
            "parameter-name", *(spec("  other:", f"  {name}:") for name in ("__class__", "--lr", "a" * 300))
        ),
        refused("parameter-collision", parameter("{value: 1}\n  a-b: {value: 1}\n  a_b: {value: 1}")),
    ],
    "N18": [
        refused("out-of-range", parameter("{values: []}")),
        refused("duplicate-value", parameter("{values: [1, 1.0]}")),
        refused("wrong-type", parameter("{values: [{a: 1}]}")),
    ],
    "N19": [
        refused("dependency-cycle", parameter("{value: 1, when: {other: 1}}")),
        refused("unknown-parameter", parameter("{value: 1, when: {nobody: 1}}")),
    ],
    "N20": [refused("unknown-key", *with_key("labels: {a: b}"), *runs("annotations: {a: b}"))],
    "N21": [refused("value-too-long", *values(f'"{"x" * 5000}"'))],
    "N22": [
        refused("duration", *runs("timeout: 0s", "timeout: -1s", "timeout: 3650d")),
        refused("out-of-range", *runs("retries: 1000000", "retries: -1")),
    ],
    "N23": [
        refused("missing-key", spec("metric: {name: score, goal: minimize}\n", "")),
        refused("wrong-value", *(metric(f"{{name: score, goal: {goal}}}") for goal in ("maximise", "MAX"))),
        refused("metric-name", *(metric(f"{{name: {name}}}") for name in ('"acc,loss"', "=x", '"a\\nb"'))),
    ],
    "N24": [
        refused(
            "unknown-key", *runs("pvc: x", "serviceAccount: x", "nodeSelector: x", "hostPath: x", "nfs: x")
        )
    ],
}

ACCEPTED: dict[str, list[tuple[bytes, Any]]] = {
    "S1": [(value("1e-3"), 0.001)],
    "S4": [(value("true"), True), (value("TRUE"), True), (value("False"), False)],
    "S10": [(value("-0.0"), 0)],
    "S12": [(value("1.10"), 1.1)],
    "S13": [(value("null"), None)],
    "S21": [(b"\xef\xbb\xbf" + SPEC.replace("\n", "\r\n").encode(), 1)],
    "S26": [(SPEC.encode(), 1), (SPEC.encode() + b"version: 1\n", 1)],
    "S28": [(SPEC.rstrip("\n").encode(), 1)],
    "N7": [(value(json.dumps(text)), text) for text in ("`id`", ";rm -r x", "a && b", "a\nb", "--lr=1", "'")],
    "N17": [(spec("  other:", "  path:"), 1), (spec("  other:", "  LD_PRELOAD:"), 1)],
    "N18": [(parameter("{values: [7]}"), 7), (parameter('{values: [7, "7", null]}'), 7)],
    "N22": [(run("{parallelism: 1000}"), 1)],
}

APART = {
    "S1": "the float is written 0.001 in tables: a form on which all readers agree",
    "S12": "parameters declare no type: 1.10 is a number, text is quoted; a key that is text refuses it",
    "S13": "null is a value of parameters, and refused where a key cannot be null",
    "S21": "such files are read as the clean file is",
    "S26": "a spec without version is of version 1",
    "N4": "a sweep is called like its file and names are lower-case, so no two can clash",
    "N7": "values are data: no shell ever reads them, arguments and environment carry them byte by byte",
    "N11": "specs hold no addresses; the settings' remote and branch are names, held to a pattern",
    "N13": "quotas are the cluster's; a spec's budget bounds GPU hours before the merge",
    "N17": "environment variables are prefixed, so no parameter can replace one that a system reads",
    "N18": "kinds may be mixed: the column is JSON then; one value is a warning",
    "N21": "tables are cut into shards of 512 KiB, and no value may have more than 4 KiB",
    "N22": "a parallelism beyond the trials asks for no more than there are",
}


def test_every_row_of_the_catalogue_is_accounted_for() -> None:
    rows = {f"S{number}" for number in range(1, 29)} | {f"N{number}" for number in range(1, 25)}

    assert REFUSED.keys() | ACCEPTED.keys() | APART.keys() == rows
    assert rows - REFUSED.keys() <= APART.keys()


def problems(content: bytes) -> tuple[Problem, ...]:
    """Return the problems of a spec, or of its trials."""
    sweep = parse_sweep(content, "sweeps/lr.yaml", Settings())
    expansion = search.explore(sweep) if isinstance(sweep, Sweep) else sweep
    return () if isinstance(expansion, Expansion) else expansion


@pytest.mark.parametrize("row", REFUSED)
def test_a_hostile_spec_is_refused_in_its_place(row: str) -> None:
    for contents, codes in REFUSED[row]:
        for content in contents:
            refused = problems(content)

            assert codes & {problem.code for problem in refused}, content[:1000]
            assert all(problem.file == "sweeps/lr.yaml" for problem in refused)
            assert all(len(str(problem)) < 1000 for problem in refused), "a message repeats a whole document"


def test_nothing_is_generated_from_a_hostile_spec(sandbox: Sandbox) -> None:
    sandbox.write("sweeps/lr.yaml", SPEC + "x: &a [*a]\n")

    with pytest.raises(SpecError):
        sandbox.generate("lr")

    assert not (sandbox.root / "overlays").exists()


@pytest.mark.parametrize("row", ACCEPTED)
def test_an_odd_spec_that_is_right_means_one_thing(row: str) -> None:
    for content, wanted in ACCEPTED[row]:
        sweep = parse_sweep(content, "sweeps/lr.yaml", SETTINGS)

        assert isinstance(sweep, Sweep), "\n".join(map(str, sweep))
        expansion = search.explore(sweep)
        assert isinstance(expansion, Expansion)
        assert canonical_json(next(iter(expansion.configurations[0].values()))) == canonical_json(wanted)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("text", [text for _, text in ACCEPTED["N7"]])
def test_text_that_a_shell_would_obey_arrives_byte_by_byte(text: str, tmp_path: Path) -> None:
    content = value(json.dumps(text)).replace(
        b"[train,", f"[{json.dumps(sys.executable)}, probe.py,".encode()
    )
    sweep = parse_sweep(content, "sweeps/lr.yaml", SETTINGS)
    assert isinstance(sweep, Sweep)
    made = overlay_of(a_batch(sweep=sweep, data=None), real_bases(), SETTINGS)
    for path, held in (*made.tree, *real_launcher().items()):
        (tmp_path / path).write_bytes(held)
    (tmp_path / "code").mkdir()
    (tmp_path / "code/probe.py").write_text(
        "import json, os, sys\n"
        "json.dump({'score': 1, 'argv': sys.argv[1:], 'env': os.environ['SWEEP_PARAM_OTHER']},"
        " open(os.environ['SWEEP_RESULT'], 'w'))\n"
    )
    (tmp_path / "scratch").mkdir()

    captured(
        [sys.executable, "../launch.py"], cwd=tmp_path / "scratch", env=environment(tmp_path), check=True
    )

    left = json.loads((tmp_path / "results/uid-1.json").read_text())
    assert left["details"]["argv"] == [f"--other={text}"]
    # A text with control characters stands in the table, and in the environment, as JSON.
    assert left["details"]["env"] == (text if text.isprintable() else json.dumps(text))


def environment(folder: Path) -> dict[str, str]:
    return {
        "SWEEP_LAUNCH": str(folder / "launch.json"),
        "SWEEP_TABLE": str(folder),
        "SWEEP_CODE": str(folder / "code"),
        "SWEEP_RESULTS": str(folder / "results"),
        "SWEEP_SCRATCH": str(folder / "scratch"),
        "SWEEP_POD_UID": "uid-1",
        "SWEEP_RAN": "process",
        "SWEEP_INDEX": "0",
    }
