"""What a Job shows of its trial is what the launcher will do: two programs that share no code."""

import json
import re
from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sweepledger.distributions.constant import Constant
from sweepledger.formats import hyperparams_csv
from sweepledger.formats.hyperparams_csv import Row, Table
from sweepledger.render.command import trial_arguments, trial_environment
from sweepledger.structs.batch import Batch
from sweepledger.structs.run_config import Shape
from sweepledger.structs.search_block import GridSearch
from sweepledger.structs.space import Parameter, SearchSpace
from tests.launcher.folders import launch
from tests.sweeps import SETTINGS, a_batch, a_sweep, overlay_of, some_bases

NAMES = ("rate", "label", "sizes.first", "flag")
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text("a$({})'\" ,=\n\u00e9-1e", max_size=12),
)
VALUES = st.one_of(SCALARS, st.lists(SCALARS, max_size=3).map(tuple))
ELEMENTS = st.sampled_from(
    [
        *("${args}", "${args_no_hyphens}", "${args_no_boolean_flags}", "${args_json}"),
        *("${args_single_hyphen}", "${args_spaced}", "${args_switches}", "${param:rate}"),
        *("${args_spaced:rate,sizes.first}", "${args_switches:flag}"),
        *("--file=${args_json_file}", "${env}", "${interpreter}", "--home=${envvar:HOME}"),
        *("--seed=${seed}", "plain $$ text"),
    ]
)


def filled_in(text: str) -> str:
    """Do as Kubernetes does where no variable of the name is known."""
    return re.sub(r"\$(\$|\([^)]*\))", lambda result: "$" if result[1] == "$" else result[0], text)


def read_back(batch: Batch) -> tuple[Mapping[str, Any], Any, Table]:
    """Give launch.json and the first row, as the launcher reads them."""
    rows = [Row(trial.id, trial.assignment, trial.replicate) for trial in batch.trials]
    table = hyperparams_csv.write_table(batch.sweep.columns, rows)
    read = json.loads(overlay_of(batch, some_bases(), SETTINGS).tree["launch.json"])
    line = table.shards[0].text.split("\n")[1]
    _, values = launch.parse_line(line, [(column.name, str(column.type)) for column in table.columns])
    return read, values, table


@given(st.lists(VALUES, min_size=len(NAMES), max_size=len(NAMES)), st.lists(ELEMENTS, max_size=4))
def test_the_shown_command_is_that_of_the_launcher(values: list[Any], command: list[str]) -> None:
    space = SearchSpace(
        tuple(Parameter(name, Constant(value)) for name, value in zip(NAMES, values, strict=True))
    )
    sweep = a_sweep(design=GridSearch(space), command=("train", *command))
    batch = a_batch(Shape.JOBS, sweep=sweep)
    (trial,) = batch.trials
    read, result, table = read_back(batch)
    single = {
        "args_json": json.dumps(result),
        "env": "/usr/bin/env",
        "interpreter": "python3",
        "seed": str(read["seed_base"]),
    }

    shown = [filled_in(argument) for argument in trial_arguments(batch, trial)]
    variables = {item["name"]: filled_in(item["value"]) for item in trial_environment(trial, table.columns)}

    assert shown == launch.expand(launch.with_placeholders(read["command"]), result, single, {})
    assert variables == launch.parameter_variables(result, read["columns"])


def test_what_only_the_pod_can_know_is_shown_in_angle_brackets() -> None:
    sweep = a_sweep(command=("train", "--home=${envvar:HOME}", "${args_json_file}", "${seed}"))
    batch = a_batch(Shape.JOBS, sweep=sweep)

    assert trial_arguments(batch, batch.trials[0]) == [
        "train",
        "--home=<envvar:HOME>",
        "<args_json_file>",
        "0",
    ]
