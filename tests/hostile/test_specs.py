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
from sweepledger.operations.generation.next_batch import generate_batches as generate
from sweepledger.search import Expansion
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

REFUSED: dict[str, list[tuple[list[bytes], set[str]]]] = {
    "S2": [([parameter("{values: [1e-1, 1.0e-1, 0.1]}")], {"duplicate-value"})],
    "S3": [([parameter("{values: [on, off]}")], {"ambiguous-scalar"})],
    "S4": [(values("yes", "no", "y", "N", "On"), {"ambiguous-scalar"})],
    "S5": [(values("010", "0777", "08", "0o10"), {"ambiguous-scalar"})],
    "S6": [
        (values("0x1F"), {"number-form"}),
        (values("0b101", "1_000"), {"ambiguous-scalar"}),
        (values("+5"), {"number-form"}),
    ],
    "S7": [(values("12:30:45", "1:30"), {"ambiguous-scalar"})],
    "S8": [(values("2024-01-01"), {"ambiguous-scalar"})],
    "S9": [
        (values(".nan", ".inf", "-.inf", "NaN", "Infinity", "1e400"), {"not-finite"}),
        ([parameter('{min: ".inf", max: 1}', top=RANDOM)], {"wrong-type"}),
    ],
    "S10": [(values("1e-400"), {"number-range"})],
    "S11": [(values("1" * 30, str(2**53 + 1)), {"number-range"})],
    "S12": [([SPEC.encode() + b"description: 1.10\n"], {"wrong-type"})],
    "S13": [(values("", "~"), {"empty-value"}), ([SPEC.encode() + b"description: null\n"], {"wrong-type"})],
    "S14": [
        ([SPEC.encode() + b'"name": lr\n', SPEC.encode() + b"method: grid\n"], {"duplicate-key"}),
        (
            [parameter("{value: 1}\n  other: {value: 2}"), parameter("{value: 1, value: 1}")],
            {"duplicate-key"},
        ),
    ],
    "S15": [(values("&a 1", "*a", "{<<: *a}"), {"alias"})],
    "S16": [
        (
            [
                b"a: &a [x, x]\n" + b"".join(b"b%d: &b%d [*a, *a]\n" % (n, n) for n in range(9)),
                b"a: &a [*a]\n",
            ],
            {"alias"},
        )
    ],
    "S17": [(values("!!python/object/apply:os.system [ls]", "!mine 1", "!!binary aGk="), {"tag"})],
    "S18": [
        ([SPEC.encode() + b"---\n" + SPEC.encode()], {"several-documents"}),
        ([b"%YAML 1.1\n---\n" + SPEC.encode()], {"directive"}),
    ],
    "S19": [
        ([spec("  other", "\tother")], {"yaml-syntax"}),
        ([spec("{value: 1}", "value:1")], {"wrong-type"}),
    ],
    "S20": [
        (
            [SPEC.encode("utf-16"), SPEC.encode() + b"# gr\xfc\xdfe\n", SPEC.encode() + b"# \x80\n"],
            {"not-utf8"},
        ),
        ([SPEC.encode() + b"# \x00\n"], {"invisible-character"}),
    ],
    "S22": [
        ([b"#" * (1024 * 1024 + 1), b"name: " + b"x" * 10_000_000], {"too-large"}),
        ([b"".join(b"k%d: 1\n" % n for n in range(30_000)), b"[" * 1000 + b"]" * 1000], {"too-large"}),
    ],
    "S23": [(values("9" * 5000), {"number-range"}), (values("0." + "9" * 5000 + "e9999"), {"not-finite"})],
    "S24": [([b"", b"# nothing\n"], {"empty-file"}), ([b"- 1\n", b"text\n"], {"wrong-type"})],
    "S25": [([spec("parameters:", "paramters:")], {"unknown-key"})],
    "S26": [([SPEC.encode() + b"version: 2\n"], {"wrong-value"})],
    "S27": [([spec("  other:", f"  {key}:") for key in ("1", "true", "? [a] ")], {"key-type"})],
    "S28": [
        (
            [SPEC.encode() + "# \u202e\n".encode(), SPEC.encode() + "# a\u200bb\n".encode()],
            {"invisible-character"},
        )
    ],
    "N1": [
        (named("../../etc", "/abs", "a/b", ".", "..", '""'), {"sweep-name"}),
        (named("~"), {"empty-value"}),
    ],
    "N2": [(named("Sweep_1", "a-", "1a", "a" * 37, "a" * 64), {"sweep-name"})],
    "N3": [
        (named("\u0455weep", "\uff53weep", "s\u0301weep", '"sweep\\n"'), {"sweep-name"}),
        (named("sw\u200beep"), {"invisible-character"}),
    ],
    "N5": [(named("con", "kube-system", "default", ".git", "main"), {"sweep-name"})],
    "N6": [(named("other"), {"name-mismatch"})],
    "N8": [
        (
            values(
                '"{{ .Values.x }}"',
                '"${{ secrets.X }}"',
                '"{% x %}"',
                '"$(POD_NAME)"',
                '"${VAR}"',
                '"$(touch x)"',
            ),
            {"template-syntax"},
        ),
        ([SPEC.encode() + b'description: "{{ x }}"\n'], {"template-syntax"}),
        ([spec('"${args}"', '"$(POD_NAME)"'), spec('"${args}"', '"${{ x }}"')], {"template-syntax"}),
    ],
    "N9": [
        (named("-a", "--upload-pack=x"), {"sweep-name"}),
        ([run(f"{{image: '-x@{DIGEST}'}}")], {"image-reference"}),
        ([run("{code: {path: --upload-pack=x}}"), run("{code: {path: -c}}")], {"code-path"}),
    ],
    "N10": [
        (
            [
                run(f"{{image: '{image}'}}")
                for image in (
                    "train",
                    "train:latest",
                    f"tr ain@{DIGEST}",
                    f"Train@{DIGEST}",
                    f"{'a' * 600}@{DIGEST}",
                    f"user:pass@host/train@{DIGEST}",
                )
            ],
            {"image-reference"},
        )
    ],
    "N12": [
        ([run(f"{{resources: {{cpu: {cpu}}}}}") for cpu in ("lots", "'-1'", "'1e3'")], {"quantity"}),
        ([run("{resources: {memory: 1e40Gi}}")], {"quantity"}),
        ([run("{resources: {gpu: 0.5}}")], {"wrong-type"}),
        ([run("{resources: {requests: {cpu: 2}, limits: {cpu: 1}}}")], {"unknown-key"}),
    ],
    "N13": [
        (
            [run("{resources: {gpu: 64}, timeout: 1d}") + b"budget: {max_gpu_hours: 100}\n"],
            {"budget-exceeded"},
        )
    ],
    "N14": [([parameter("{value: 1}\n" + FIFTY.rstrip())], {"too-many-trials"})],
    "N15": [
        (
            [parameter(f"{{min: {low}, max: {high}}}", top=RANDOM) for low, high in ((2, 1), (1, 1))],
            {"range-inverted"},
        ),
        (
            [parameter("{min: 0, max: 1, step: 0}"), parameter("{min: 0, max: 1, step: 0.3}")],
            {"range-step", "out-of-range"},
        ),
        ([parameter("{min: 0, max: 1, distribution: log_uniform_values}", top=RANDOM)], {"log-range"}),
        ([parameter("{linspace: [0, 1, 1000000000]}")], {"too-many-values"}),
    ],
    "N16": [
        ([parameter("{min: 0, max: 1}", top="method: random\nrun_cap: 4")], {"missing-key"}),
        (
            [
                parameter("{min: 0, max: 1}", top=f"method: random\nrun_cap: 4\nseed: {seed}")
                for seed in ("-1", "1.5")
            ],
            {"out-of-range", "wrong-type"},
        ),
        ([parameter("{min: 0, max: 1}", top=f"method: random\nrun_cap: 4\nseed: {2**64}")], {"number-range"}),
    ],
    "N17": [
        ([spec("  other:", f"  {name}:") for name in ("__class__", "--lr", "a" * 300)], {"parameter-name"}),
        ([parameter("{value: 1}\n  a-b: {value: 1}\n  a_b: {value: 1}")], {"parameter-collision"}),
    ],
    "N18": [
        ([parameter("{values: []}")], {"out-of-range"}),
        ([parameter("{values: [1, 1.0]}")], {"duplicate-value"}),
        ([parameter("{values: [{a: 1}]}")], {"wrong-type"}),
    ],
    "N19": [
        ([parameter("{value: 1, when: {other: 1}}")], {"dependency-cycle"}),
        ([parameter("{value: 1, when: {nobody: 1}}")], {"unknown-parameter"}),
    ],
    "N20": [([SPEC.encode() + b"labels: {a: b}\n", run("{annotations: {a: b}}")], {"unknown-key"})],
    "N21": [(values(f'"{"x" * 5000}"'), {"value-too-long"})],
    "N22": [
        ([run(f"{{timeout: {time}}}") for time in ("0s", "-1s", "3650d")], {"duration"}),
        ([run("{retries: 1000000}"), run("{retries: -1}")], {"out-of-range"}),
    ],
    "N23": [
        ([spec("metric: {name: score, goal: minimize}\n", "")], {"missing-key"}),
        ([metric(f"{{name: score, goal: {goal}}}") for goal in ("maximise", "MAX")], {"wrong-value"}),
        ([metric(f"{{name: {name}}}") for name in ('"acc,loss"', "=x", '"a\\nb"')], {"metric-name"}),
    ],
    "N24": [
        (
            [run(f"{{{key}: x}}") for key in ("pvc", "serviceAccount", "nodeSelector", "hostPath", "nfs")],
            {"unknown-key"},
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

CASES = [
    pytest.param(content, codes, id=f"{row}-{number}")
    for row, groups in REFUSED.items()
    for number, (content, codes) in enumerate(
        (content, codes) for contents, codes in groups for content in contents
    )
]
MEANT = [
    pytest.param(content, wanted, id=f"{row}-{number}")
    for row, inputs in ACCEPTED.items()
    for number, (content, wanted) in enumerate(inputs)
]


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    return Sandbox.create(tmp_path_factory.mktemp("hostile"))


def test_every_row_of_the_catalogue_is_accounted_for() -> None:
    rows = {f"S{number}" for number in range(1, 29)} | {f"N{number}" for number in range(1, 25)}

    assert REFUSED.keys() | ACCEPTED.keys() | APART.keys() == rows
    assert rows - REFUSED.keys() <= APART.keys()


@pytest.mark.parametrize(("content", "codes"), CASES)
def test_a_hostile_spec_is_refused_in_its_place(content: bytes, codes: set[str], sandbox: Sandbox) -> None:
    target = sandbox.root / "sweeps/lr.yaml"
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(content)

    with pytest.raises(SpecError) as refused:
        generate(sandbox.workspace, ["lr"])

    problems = refused.value.problems
    assert codes & {problem.code for problem in problems}
    assert all(problem.file == "sweeps/lr.yaml" for problem in problems)
    assert all(len(str(problem)) < 1000 for problem in problems), "no message repeats a whole document"
    assert not (sandbox.root / "overlays").exists()


@pytest.mark.parametrize(("content", "wanted"), MEANT)
def test_an_odd_spec_that_is_right_means_one_thing(content: bytes, wanted: Any) -> None:
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
    bases = real_bases()
    made = overlay_of(a_batch(sweep=sweep, data=None), bases, SETTINGS)
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
