"""What structure alone cannot say: a module a subject, a function a rule. Rules look at sound places only."""

from collections.abc import Callable, Iterable

from generator.problems import Problem
from generator.spec.draft import Draft
from generator.spec.rules import cluster, command, names, parameters, program, resources, shape, templates

Rule = Callable[[Draft], Iterable[Problem]]

SWEEP_RULES: tuple[Rule, ...] = (
    names.sweep_name,
    names.file_name,
    names.metric_name,
    parameters.names,
    parameters.collisions,
    parameters.domains,
    parameters.duplicates,
    parameters.lengths,
    command.starts_a_program,
    command.macros,
    templates.no_template_syntax,
    program.image,
    program.interpreter,
    program.code_path,
    program.dataset,
    resources.cpu,
    resources.memory,
    resources.timeout,
    shape.size,
    shape.jobs,
)

SETTINGS_RULES: tuple[Rule, ...] = (
    program.settings_image,
    cluster.object_names,
    cluster.namespace,
    cluster.git_names,
    cluster.digests,
)
