"""What a sweep says that no other tool's file can: named once for all writers."""

from collections.abc import Iterator

from generator.exchange.loss import Loss
from generator.structs.sweep import Block, Budget, Run, Sweep


def of_block(block: Block, tool: str) -> Iterator[Loss]:
    """Name what ties the parameters of a block together."""
    for group in block.space.zips:
        yield Loss(f"zip: {', '.join(group)}", f"{tool} combines each value with each, not pairwise")
    for parameter in block.space.parameters:
        if parameter.when:
            parents = ", ".join(condition.parameter for condition in parameter.when)
            yield Loss(f"when of {parameter.name}", f"{tool} gives it a value whatever {parents} is")
    for constraint in block.space.constraints:
        yield Loss(f"constraint: {constraint.text}", f"{tool} runs what breaks it, too")
    for derived in block.space.derived:
        yield Loss(f"derived: {derived.name}", f"{tool} cannot compute; let the program: {derived.text}")


def of_run(sweep: Sweep, tool: str) -> Iterator[Loss]:
    """Name what is said of trials beyond their values."""
    if sweep.replicates > 1:
        yield Loss(f"replicates: {sweep.replicates}", f"{tool} runs each assignment once")
    if (sweep.budget.max_trials, sweep.budget.max_gpu_hours) != (Budget().max_trials, Budget().max_gpu_hours):
        yield Loss("budget", f"{tool} has none")
    if sweep.run != Run():
        yield Loss(
            "run", f"{tool} does not say with which code, image, data, resources and limits a trial runs"
        )
