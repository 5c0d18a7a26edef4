"""A sweep that reads several datasets, on one machine: all commands of its life, whatever the store is."""

import hashlib
import json
from pathlib import Path

import pytest

from tests.builders import present
from tests.repository import IMAGE, Sandbox, append_to, replace_in
from tests.sweeps import real_launcher

REPOSITORY, _, DIGEST = IMAGE.partition("@")
BUCKET = (
    'results: {store: bucket, keep: 30d, bucket: {url: "s3://ml-sweeps/vision", egress: bucket}}\n'
    f"images: {{collector: {REPOSITORY}@{DIGEST}}}\n"
    "egress: {bucket: {cidrs: [203.0.113.0/24], ports: [443]}}\n"
)
STORES = {
    "bucket": BUCKET,
    "volume": "results: {store: volume, keep: 30d}\n",
    "claim": "results: {store: claim, claim: sweep-results, keep: 30d}\n",
}
READS = """
import json as _json
_data = _os.environ["SWEEP_DATA"]
_read = {folder: open(_os.path.join(_data, folder, "content")).read() for folder in sorted(_os.listdir(_data))}
with open(_os.path.join(_os.environ["SWEEP_RESULT"]), "w") as file:
    _json.dump({"score": args.x, "read": len(_read)}, file)
assert _read == {"images": "of images", "labels": "of labels"}, _read
with open(_os.path.join(_os.environ["SWEEP_ARTIFACTS"], "model"), "w") as file:
    file.write("weights of " + _os.environ.get("SWEEP_TRIAL_ID", "a try"))
print("trained", _os.environ.get("SWEEP_TRIAL_ID"))
"""
READS_ONE = """
import os as _os
assert open(_os.path.join(_os.environ["SWEEP_DATA"], "content")).read() == "of images"
"""
DATASETS = ("images", "labels")


def sweep(sandbox: Sandbox, *arguments: str, code: int = 0) -> str:
    """Run a command without any credential and without a cluster; give what it printed."""
    done = sandbox.sweep(*arguments, KUBECONFIG="/nowhere")
    assert done.returncode == code, f"{arguments}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def digest(name: str) -> str:
    """The digest of a folder with one file, as sha256sum would make it."""
    line = f"{hashlib.sha256(f'of {name}'.encode()).hexdigest()}  content\n"
    return f"sha256:{hashlib.sha256(line.encode()).hexdigest()}"


def settings(store: str) -> str:
    """Datasets that a command prepares; on claims, or in the bucket of the store."""
    text = f"version: 1\n{STORES[store]}datasets:\n"
    for name in (*DATASETS, "other"):
        place = f"bucket: data/{name}, size: 1Mi" if store == "bucket" else f"claim: {name}"
        prepare = f"""prepare: [sh, -c, "printf 'of {name}' > $SWEEP_DATA/content"]"""
        text += f"  {name}: {{{place}, digest: '{digest(name)}', {prepare}}}\n"
    return text


def laptop(sandbox: Sandbox, store: str, data: str, program: str) -> Sandbox:
    sandbox.write("sweepledger.yaml", settings(store))
    sandbox.name_person()
    append_to(sandbox.root / "code/train.py", f"import os as _os\n{program}")
    sandbox.spec()
    append_to(sandbox.root / "sweeps/peak.yaml", f"  data: {data}\n")
    sandbox.publish("Read data")
    return sandbox


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("store", "engine"), [("bucket", "run"), ("claim", "local")])
def test_each_dataset_has_a_folder_of_its_name(
    store: str, engine: str, sandbox: Sandbox, needs_kustomize: None
) -> None:
    made = laptop(sandbox, store, "[labels, images]", READS)
    cache = made.root / ".sweepledger/data"

    assert "read" in sweep(made, "try", "peak")
    sweep(made, "generate", "peak")
    made.commit("Request trials")
    sweep(made, "check", "--base", "HEAD~1")
    if engine == "run":
        sweep(made, "run", "peak")
    else:
        made.push()
        sweep(made, "cluster", "local", "--once")
        made.pull()

    (batch,) = made.batches()
    program, trial = batch.lock.program, batch.rows[1].trial
    lines = "".join(f"{digest(name)}  {name}\n" for name in DATASETS)
    assert present(program.data).name == "images+labels"
    assert present(program.data).digest == f"sha256:{hashlib.sha256(lines.encode()).hexdigest()}"
    assert not batch.is_active, "its results are recorded"
    assert "equal to the last bit" in sweep(made, "show", trial, "--reproduce", "--run")
    assert "images+labels" in sweep(made, "show", trial)
    assert f"trained {trial}" in sweep(made, "logs", trial)
    sweep(made, "show", trial, "--fetch", "artifacts")
    assert (made.root / "artifacts/model").read_text() == f"weights of {trial}"
    sweep(made, "verify", "peak")
    assert sorted(path.name for path in cache.iterdir() if not path.name.startswith("+")) == [*DATASETS]


WRITES = """
if _os.path.exists({mark!r}):
    open(_os.path.join(_os.environ["SWEEP_DATA"], "left"), "a").write("by a trial")
"""


def use_older_launcher(sandbox: Sandbox) -> None:
    """Request trials under a launcher that computes the state of data in another way than that of the package."""
    texts = {f"base/launcher/v1/{name}": content.decode() for name, content in real_launcher().items()}
    text = texts["base/launcher/v1/launch_folders.py"]
    assert text.count("follows=True) != expected") == 1
    sweep(sandbox, "generate", "peak")
    older = text.replace("follows=True) != expected", "follows=True) != f'older {expected}'")
    sandbox.commit(
        "Request trials with the release of last year", {**texts, "base/launcher/v1/launch_folders.py": older}
    )


def test_data_is_compared_in_the_rerun_of_a_batch_with_an_older_launcher(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    made = laptop(sandbox, "volume", "images", READS_ONE + WRITES.format(mark=str(tmp_path / "mark")))
    use_older_launcher(made)
    sweep(made, "run", "peak")
    rerun = ("show", made.batches()[0].rows[1].trial, "--reproduce", "--run")

    assert "equal to the last bit" in sweep(made, *rerun)
    (tmp_path / "mark").touch()
    assert "stop what writes to the dataset" in sweep(made, *rerun, code=3)


def test_a_list_of_one_dataset_is_that_dataset(sandbox: Sandbox) -> None:
    ids = set[str]()
    for data in ("images", "[images]", "[images, images]"):
        made = laptop(sandbox, "volume", data, READS_ONE) if not ids else sandbox
        spec = made.root / "sweeps/peak.yaml"
        spec.write_text(spec.read_text().rpartition("  data:")[0] + f"  data: {data}\n")
        ids.add(json.dumps(json.loads(sweep(made, "plan", "peak", "--format", "json"))["data"]["sweeps"]))

    assert len(ids) == 1


def test_a_changed_part_is_new_data(sandbox: Sandbox, needs_kustomize: None) -> None:
    made = laptop(sandbox, "volume", "[labels, images]", READS)
    sweep(made, "run", "peak")
    (batch,) = made.batches()
    replace_in(made.root / "sweepledger.yaml", digest("labels"), "sha256:" + "0" * 64)
    made.commit("Other labels")

    assert "images+labels" in sweep(made, "plan", "peak")
    (made.root / ".sweepledger/data/labels/content").write_text("damaged")
    printed = sweep(made, "show", batch.rows[0].trial, "--reproduce", "--run", code=3)

    assert "dataset labels:" in printed
    assert f"must be {digest('labels')}" in printed, "the digest of the commit that requested the trial"


def test_the_script_for_slurm_names_the_folder_of_all(sandbox: Sandbox, needs_kustomize: None) -> None:
    made = laptop(sandbox, "volume", "[labels, images]", READS)
    sweep(made, "generate", "peak")
    made.commit("Request trials")

    sweep(made, "export", "slurm", "peak", "--output", "peak.sh")

    script = Path(made.root, "peak.sh").read_text()
    (folder,) = [path.name for path in (made.root / ".sweepledger/data").iterdir() if path.name[0] == "+"]
    assert f" data=data/{folder}\n" in script
    assert 'SWEEP_DATA="${data}"' in script.replace("'", "")
