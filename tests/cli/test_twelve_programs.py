"""Programs of twelve kinds: two commands, and `sweep try --write` at most, lead to a ranked result.

Each is a twin in our own words: how it reads its arguments, and where it leaves its metric, are those of the original.
"""

import inspect
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.cli.test_first_sweeps import repository
from tests.command_line import run_sweep
from tests.launcher import test_launcher_formats as formats

ARGUMENTS = (
    "import argparse\np = argparse.ArgumentParser()\np.add_argument('--lr', type=float, default=0.1)\n"
)
LOSS = "loss = (lr - 0.3) ** 2 + 0.1\n"


@dataclass(frozen=True)
class Program:
    """A program whose loss is lowest with a rate of 0.3, how it is started, and what its metric is called."""

    files: dict[str, str]
    command: str = "python train.py"
    metric: str = "loss"
    options: tuple[str, ...] = ()
    parameter: str = "lr"
    installed: dict[str, str] = field(default_factory=dict)
    """Programs that the machine has, by their names."""


def script(text: str, *, arguments: str = f"{ARGUMENTS}a = p.parse_args(); lr = a.lr\n") -> dict[str, str]:
    return {"train.py": arguments + LOSS + text}


def written(path: str, content: str) -> str:
    return (
        f"import pathlib\np = pathlib.Path({path})\np.parent.mkdir(parents=True, exist_ok=True)\n"
        f"p.write_bytes({content})\n"
    )


WORDS = "import sys\nvalues = dict(word.lstrip('-').split('=') for word in sys.argv[1:] if '=' in word)\n"
PROGRAMS = {
    "an image classifier that prints sentences": Program(
        script("print(f'Test set: Average loss: {loss:.4f}, Accuracy: 9/10 (90%)')")
    ),
    "a language model with a table of epochs": Program(
        script(
            "for e in 2, 1: print(f'| end of epoch {e} | time: 1.5s | valid loss {loss * e:5.2f} | valid ppl 9')"
        ),
        metric="val_loss",
    ),
    "a configurator that evaluates its arguments": Program(
        script(
            "for step in 0, 10: print(f'step {step}: train loss {9.0}, val loss {loss:.4f}')",
            arguments=f"{WORDS}lr = 0.1\nexec('\\n'.join(f'{{key}} = {{text}}' for key, text in values.items()))\n",
        ),
        metric="val_loss",
    ),
    "a command line of classes that logs to CSV": Program(
        script(
            written(
                "f'lightning_logs/version_{os.getpid()}/metrics.csv'",
                "f'step,val_loss\\n1,9\\n2,{loss}\\n'.encode()",
            ),
            arguments=f"import os\n{WORDS}lr = float(values['model.lr'])\n",
        ),
        command="python train.py fit",
        metric="val_loss",
        parameter="model.lr",
    ),
    "an application of Hydra": Program(
        {
            "conf/train.yaml": "lr: 0.1\n",
            "src/train.py": (
                "import hydra\n@hydra.main(config_path='../conf', config_name='train', version_base=None)\n"
                f"def main(config):\n    lr = config.lr\n    {LOSS}    print(f'val/loss: {{loss}}')\nmain()\n"
            ),
        },
        command="python src/train.py",
        metric="val/loss",
    ),
    "an application of Typer": Program(
        {
            "train.py": "import typer\ndef main(lr: float = 0.1, flip: bool = True):\n"
            f"    {LOSS}    typer.echo(f'final loss = {{loss + flip}}')\ntyper.run(main)\n"
        },
        options=("--param", "flip=false"),
        metric="final_loss",
    ),
    "gradient boosting from a file of settings": Program(
        {"train.conf": "objective = regression\n"},
        command="boost config=train.conf",
        metric="l2",
        options=("--minimize",),
        installed={
            "boost": f"{WORDS}lr = float(values['lr'])\n{LOSS}print(f'[Info] Iteration:10, valid_1 l2 : {{loss}}')\n"
        },
    ),
    "reinforcement learning with event files": Program(
        script(
            written(
                "f'runs/cart__{os.getpid()}/events.out.tfevents.1'",
                "event(1, ('losses/value_loss', simple(loss)))",
            ),
            arguments=f"import os\n{ARGUMENTS}a = p.parse_args(); lr = a.lr\nfrom events import event, simple\n",
        ),
        metric="value_loss",
    ),
    "a trainer that writes its results as JSON": Program(
        script(
            written(
                "f'{a.output_dir}/all_results.json'", "json.dumps({'epoch': 3.0, 'eval_loss': loss}).encode()"
            ),
            arguments=f"import json\n{ARGUMENTS}p.add_argument('--output_dir')\na = p.parse_args(); lr = a.lr\n",
        ),
        command="python train.py --output_dir out",
        metric="eval_loss",
    ),
    "boosting that logs rounds to standard error": Program(
        {"train.conf": "max_depth = 3\n"},
        command="rounds train.conf",
        metric="test_rmse",
        installed={
            "rounds": f"{WORDS}lr = float(values['lr'])\n{LOSS}"
            "print(f'[9]\\ttrain-rmse:0.5\\ttest-rmse:{loss}', file=sys.stderr)\n"
        },
    ),
    "a network with a bar of progress": Program(
        script(
            "for e in 2, 1: print(f'10/10 [====] - 1s 2ms/step - accuracy: 0.5 - val_loss: {loss * e:.4f}')"
        ),
        metric="val_loss",
    ),
    "a compiled program": Program(
        {
            "fit.c": "#include <stdio.h>\n#include <stdlib.h>\nint main(int n, char **v) { double lr = atof(v[1] + 5);"
            'printf("loss: %f\\n", (lr - 0.3) * (lr - 0.3) + 0.1); }\n',
            "fit": "",
        },
        command="./fit",
    ),
}
EVENT_WRITER = "import struct\n" + "".join(
    inspect.getsource(function)
    for function in (
        formats.varint,
        formats.field,
        formats.crc32c,
        formats.masked,
        formats.frame,
        formats.simple,
        formats.event,
    )
)


@pytest.mark.full_suite("programs of twelve kinds")
@pytest.mark.parametrize("kind", PROGRAMS)
def test_two_commands_and_a_proposal_rank_a_program(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = PROGRAMS[kind]
    tools, lab = tmp_path / "tools", tmp_path / "lab"
    tools.mkdir()
    lab.mkdir()
    for name, text in program.installed.items():
        (tools / name).write_text(f"#!{sys.executable}\n{text}")
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    files = program.files | {"events.py": EVENT_WRITER}
    if "fit.c" in files:
        if shutil.which("cc") is None:
            pytest.skip("there is no compiler here")
        (tmp_path / "fit.c").write_text(files["fit.c"])
        subprocess.run(["cc", "-O1", "-o", lab / "fit", tmp_path / "fit.c"], check=True)
        del files["fit"]
    repository(lab, files)
    parameter = ("--param", f"{program.parameter}=0.1,0.3,0.5,0.2")

    new = run_sweep(
        *("new", "fit", "--command", program.command, "--metric", program.metric),
        *parameter,
        *program.options,
        cwd=lab,
    )
    tried = run_sweep("try", "fit", "--write", cwd=lab)
    run = run_sweep("run", "fit", "--format", "json", cwd=lab)

    assert new.returncode == 0, new.stderr
    assert tried.returncode == 0, tried.stdout + tried.stderr
    assert run.returncode == 0, run.stdout + run.stderr
    trials = json.loads(run_sweep("results", "fit", "--format", "json", cwd=lab).stdout)["data"]["trials"]
    ranked = [trial["configuration"][program.parameter] for trial in trials]
    assert (ranked[0], sorted(ranked)) == (0.3, [0.1, 0.2, 0.3, 0.5])
    assert all(trial["status"] == "ok" for trial in trials)
