"""Loops of Argo as configurations: a pod of the template that they call is a trial, wherever its values come from."""

from typing import Any

import pytest
import yaml

from sweepledger.exchange.conversion import Imported
from sweepledger.formats.foreign_yaml import ForeignError
from tests.exchange.conformance import SEEDS, read
from tests.exchange.imported import assignments_of, sweep_of, whats

LEAF: dict[str, Any] = {
    "name": "train",
    "inputs": {"parameters": [{"name": "lr"}, {"name": "width", "default": "8"}]},
    "container": {
        "image": "x",
        "command": ["python", "t.py", "{{inputs.parameters.lr}}", "{{inputs.parameters.width}}"],
    },
}


def arguments(**values: Any) -> dict[str, Any]:
    return {"parameters": [{"name": name, "value": value} for name, value in values.items()]}


def step(template: str = "train", **keys: Any) -> dict[str, Any]:
    return {"name": "s", "template": template, **keys}


def steps(name: str, *made: dict[str, Any], inputs: tuple[str, ...] = (), **keys: Any) -> dict[str, Any]:
    return {
        "name": name,
        "inputs": {"parameters": [{"name": each} for each in inputs]},
        "steps": [[one] for one in made],
        **keys,
    }


def imported(*templates: dict[str, Any], entrypoint: str | None = "all", **spec: Any) -> Imported:
    entry = {"entrypoint": entrypoint} if entrypoint else {}
    document = {"kind": "Workflow", "spec": {**entry, "templates": [*templates, LEAF], **spec}}
    return read("argo", yaml.safe_dump(document).encode())


def rows(*templates: dict[str, Any], **spec: Any) -> list[tuple[Any, ...]]:
    return [tuple(values.values()) for values in assignments_of(sweep_of(imported(*templates, **spec)))]


def test_a_list_comes_from_the_arguments_of_the_workflow() -> None:
    loop = step(arguments=arguments(lr="{{item}}"), withParam="{{inputs.parameters.rates}}")
    of_workflow = loop | {"withParam": "{{workflow.parameters.rates}}"}
    given = arguments(rates="[0.1, 0.2]")

    assert rows(steps("all", loop, inputs=("rates",)), arguments=given) == [(0.1, "8"), (0.2, "8")]
    assert rows(steps("all", of_workflow), arguments=given) == [(0.1, "8"), (0.2, "8")]


def test_arguments_of_the_workflow_are_constants_of_the_command() -> None:
    container = LEAF["container"] | {"args": ["--epochs={{workflow.parameters.epochs}}", "{{workflow.name}}"]}
    template = LEAF | {"name": "other", "container": container}

    made = imported(
        steps("all", step("other", arguments=arguments(lr="{{item}}"), withItems=[0.1, 0.2])),
        template,
        arguments=arguments(epochs=3),
    )

    assert made.spec["command"][-1] == "--epochs=3"
    assert "spec.templates[1].container.command[5]: {{workflow.name}}" in whats(made.losses)


def test_nested_loops_are_all_their_combinations() -> None:
    outer = step("inner", arguments=arguments(lr="{{item}}"), withItems=[0.1, 0.2])
    inner = step(arguments=arguments(lr="{{inputs.parameters.lr}}", width="{{item}}"), withItems=[1, 2])

    made = rows(steps("all", outer), steps("inner", inner, inputs=("lr",)))

    assert made == [(0.1, 1), (0.1, 2), (0.2, 1), (0.2, 2)]


def test_loops_of_one_template_are_one_list_and_equal_pods_are_named() -> None:
    first = step(arguments=arguments(lr="{{item}}"), withItems=[0.1, 0.2])
    second = step(arguments=arguments(lr="{{item}}"), withItems=[0.2, 0.3])

    both = imported(steps("all", first, second))

    assert [values["lr"] for values in assignments_of(sweep_of(both))] == [0.1, 0.2, 0.3]
    assert "1 assignment(s)" in whats(both.losses)


@pytest.mark.parametrize(
    ("sequence", "expected"),
    [
        ({"count": "{{workflow.parameters.n}}"}, [0, 1, 2]),
        ({"start": "5", "end": "3"}, [5, 4, 3]),
        ({"start": 1, "end": 2, "format": "run%02X"}, ["run01", "run02"]),
    ],
)
def test_a_sequence_is_its_numbers(sequence: dict[str, Any], expected: list[Any]) -> None:
    loop = step(arguments=arguments(lr="{{item}}"), withSequence=sequence)

    made = rows(steps("all", loop), arguments=arguments(n="3"))

    assert [row[0] for row in made] == expected


def test_without_an_entry_point_the_templates_count_that_nothing_calls() -> None:
    loop = step(arguments=arguments(lr="{{item}}"), withItems=[0.1, 0.2])

    assert rows(steps("all", loop), entrypoint=None) == [(0.1, "8"), (0.2, "8")]


def test_what_runs_beside_the_loop_and_what_only_argo_knows_is_named() -> None:
    before = step(arguments=arguments(lr="0.5"))
    loop = step(
        arguments=arguments(lr="{{item}}", width="{{steps.s.outputs.result}}")
        | {"artifacts": [{"name": "a"}]},
        withItems=[0.1, 0.2],
        when="{{item}} > 0",
    )

    made = imported(steps("all", before, loop, parallelism=2), {"name": "unused", "suspend": {}})

    assert [values.keys() for values in assignments_of(sweep_of(made))] == [{"lr"}, {"lr"}]
    assert made.spec["run"]["parallelism"] == 2
    named = whats(made.losses)
    assert {
        "spec.templates[0].0.steps[0]: train",
        "spec.templates[1]: unused",
        "spec.templates[2]: width",
        'spec.templates[0].1.steps[0].arguments.artifacts: [{"name": "a"}]',
        "spec.templates[0].1.steps[0].when: {{item}} > 0",
    } <= set(named)
    assert not [what for what in named if "parallelism" in what]


LOOP = step(arguments=arguments(lr="{{item}}"), withItems=[0.1, 0.2])


@pytest.mark.parametrize(
    ("templates", "words"),
    [
        (({"name": ["a"]},), "templates[0].name must be text"),
        (({"name": "train"},), "templates[1] must have a name of its own, got train"),
        ((), "spec.entrypoint must name a template of the file, got 'all'"),
        ((steps("all", step(arguments=arguments(lr="1"))),), "must have a loop (withItems"),
        ((steps("all", LOOP | {"withItems": []}),), "must have a loop (withItems"),
        ((steps("all", LOOP, step("other", withItems=[1])), {"name": "other", "container": {}}), "got train, other"),
        ((steps("all", step(withItems=[1, 2, 3])),), "got 3 equal pods"),
        (
            (steps("all", step(arguments=arguments(lr="{{item}}{{steps.a.outputs.result}}"), withItems=[1, 2])),),
            "the parameter lr must have all its values in the file",
        ),
        (
            (steps("all", step(arguments=arguments(lr="{{item}}"), withParam="{{steps.a.outputs.result}}")),),
            "withParam must be a list in JSON, got {{steps.a.outputs.result}}",
        ),
        ((steps("all", LOOP | {"withItems": [{"a": 1}], "arguments": arguments(lr="{{item.b}}")}),), "the key 'b'"),
        ((steps("all", step("all", withItems=[1])),), "must not call itself"),
        ((steps("all", step(arguments=arguments(lr="{{item}}"), withSequence={"count": "9999999"})),), "at most 10000"),
        ((steps("all", step("all", withItems=list(range(200)))),), "must not call itself"),
        ((steps("all", LOOP | {"templateRef": {"name": "t", "template": "u"}}),), "must have a container"),
        (
            (steps("all", step(arguments=arguments(lr="{{item}}"), withSequence={"count": 1, "format": "%s"})),),
            "format must be one of",
        ),
    ],
)  # fmt: skip
def test_what_has_no_list_of_trials_is_refused_with_the_reason_and_a_remedy(
    templates: tuple[dict[str, Any], ...], words: str
) -> None:
    with pytest.raises(ForeignError) as refused:
        imported(*templates)

    assert words in str(refused.value)


def test_values_that_double_at_each_level_are_refused() -> None:
    levels = [
        steps(
            "all" if level == 0 else f"l{level}",
            step(
                f"l{level + 1}" if level < 24 else "train",
                arguments=arguments(lr="{{inputs.parameters.lr}}{{inputs.parameters.lr}}"),
                withItems=[1],
            ),
            inputs=("lr",),
        )
        for level in range(25)
    ]

    with pytest.raises(ForeignError, match="at most 100000 characters"):
        imported(*levels, arguments=arguments(lr="xx"))


def test_long_values_of_many_pods_are_refused() -> None:
    loop = step(arguments=arguments(lr="{{item}}" + "x" * 90_000), withSequence={"count": 9_000})

    with pytest.raises(ForeignError, match="at most 10000000 characters in all"):
        imported(steps("all", loop))


def test_a_reference_to_templates_elsewhere_and_several_documents_are_refused() -> None:
    with pytest.raises(ForeignError, match="got a reference to another one"):
        read("argo", b"kind: Workflow\nspec: {workflowTemplateRef: {name: t}}\n")
    with pytest.raises(ForeignError, match="must have one document, got several"):
        read("argo", SEEDS["argo"] + b"---\nkind: Workflow\n")
