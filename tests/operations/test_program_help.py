"""What the answer of a program to `--help` says about its options, in the layouts of several libraries."""

import pytest

from sweepledger.operations.repository.program_options import OptionKind, read_help

VALUE, SWITCH, ON_OFF, LIST = OptionKind.VALUE, OptionKind.SWITCH, OptionKind.ON_OFF, OptionKind.LIST
ARGPARSE = """usage: fit [-h] [--lr LR] [-b N]

options:
  -h, --help            show this help message and exit
  --lr LR               learning rate, such as --rate 0.1
  -b N, --batch-size N  size of a batch
  --sizes N [N ...]
  --opt {sgd,adam}      which
  --cuda                use it
  --amp, --no-amp       precision
"""
TYPER = """
 Usage: fit [OPTIONS]

╭─ Options ─────────────────────────────────────────────────╮
│    --lr                   FLOAT    Rate [default: 0.1]    │
│    --amp      --no-amp             Use it                 │
│    --cuda                          Use it                 │
╰───────────────────────────────────────────────────────────╯
"""
BOOST = """Options:
  -l [ --lr ] arg (=0.5)       learning rate
  --cuda                       use it
"""
LIGHTNING = """usage: fit [-h] [-c CONFIG] [--print_config[=flags]]

options:
  -c, --config CONFIG   Path to a configuration file.
  --print_config[=flags]
  --optimizer.lr LR     (type: float)
"""
LAYOUTS = {
    "argparse": (
        ARGPARSE,
        {"lr": VALUE, "b": VALUE, "batch-size": VALUE, "sizes": LIST, "amp": ON_OFF},
        True,
    ),
    "typer": (TYPER, {"lr": VALUE, "amp": ON_OFF, "cuda": SWITCH}, True),
    "boost": (BOOST, {"l": VALUE, "lr": VALUE, "cuda": SWITCH}, False),
    "LightningCLI": (LIGHTNING, {"config": VALUE, "optimizer.lr": VALUE}, False),
    "no help": ("fit: unknown option --help\n", {}, False),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_options_are_read_from_the_help_of_a_program(layout: str) -> None:
    text, kinds, is_complete = LAYOUTS[layout]

    options = read_help(text)

    assert {name: options.kinds[name] for name in kinds} == kinds
    assert options.is_complete == is_complete
    assert "rate" not in options.kinds


def test_hydra_and_single_hyphens_are_known_by_their_help() -> None:
    assert read_help("train is powered by Hydra.\n\n== Config ==").macros({"lr": None}) == (
        "${args_no_hyphens}",
    )
    assert read_help("  -lr    learning rate [0.1]\n  -epoch  number\n").macros({"lr": None}) == (
        "${args_single_hyphen}",
    )
