"""A container as the command, image and resources of a trial."""

import re
from typing import Any

from sweepledger.exchange.conversion import Loss, LossList
from sweepledger.exchange.fields import Fields, exact_number, scalar_text, show_value, spec_number
from sweepledger.exchange.kubernetes.command import CommandTranslator, Placeholders
from sweepledger.exchange.spec_parts import CODE_DIR, PROGRAM
from sweepledger.structs.node_pool import GPU_RESOURCE

BARE = re.compile(r"[0-9]+(?:\.[0-9]+)?", re.ASCII)
ASSUMED_PROGRAM = ("${interpreter}", PROGRAM)
"""For a container whose program is the entry point of its image."""


class ImportedTrial:
    """The parts of a spec that the template defines."""

    def __init__(self) -> None:
        self.command: list[str] | None = None
        self.run: dict[str, Any] = {"code": {"path": CODE_DIR}}
        self.losses = LossList()
        self.passes_result_file = False

    def as_spec(self) -> dict[str, Any]:
        """Return the keys of a spec for the trial."""
        command = {"program": PROGRAM} if self.command is None else {"command": self.command}
        return {**command, "run": self.run}


def read_pod(pod: Fields, primary: str | None, placeholders: Placeholders, trial: ImportedTrial) -> None:
    """Read the container of that name, else the first, unless the trial has its command already."""
    spec = pod.inner("spec")
    containers = spec.each("containers")
    if spec.data.get("restartPolicy") == "Never":
        spec.taken.add("restartPolicy")
    named = [container for container in containers if container.data.get("name") == primary]
    chosen = (named or containers)[:1] if trial.command is None else []
    for container in chosen:
        read_container(container, placeholders, trial)
    others = [container for container in containers if container not in chosen]
    trial.losses += [
        Loss(f"{container.path}: {show_value(container.data.get('name'))}", "only one container runs here")
        for container in others
    ]
    trial.losses += [*pod.inner("metadata").rest(), *spec.rest(), *pod.rest()]


def read_container(
    container: Fields, placeholders: Placeholders, trial: ImportedTrial, *, resources: str = "resources"
) -> None:
    """Read command, variables, image and resources."""
    container.text("name")
    # The launcher sets the others.
    variables: dict[str, str] = {}
    for entry in container.each("env"):
        name, value = entry.text("name") or "", entry.data.get("value")
        if value is not None and not name.startswith("SWEEP_"):
            variables[name] = scalar_text(value)
        elif not name.startswith("SWEEP_"):
            trial.losses.add(f"{entry.path}: {name}", "its value is only in the cluster")
    command = [scalar_text(part) for part in container.items("command")]
    arguments = [scalar_text(part) for part in container.items("args")]
    if command or arguments:
        place = container.at("command" if command else "args")
        translator = CommandTranslator(placeholders, variables, place, trial.losses)
        trial.command = translator.command([*command, *arguments], program=() if command else ASSUMED_PROGRAM)
        trial.passes_result_file |= translator.passes_result_file
    if arguments and not command:
        trial.losses.add(
            container.at("command"),
            f"the program is in the image, not in the file; written as {PROGRAM}: write your command",
        )
    image = container.text("image")
    if image is not None and "@sha256:" in image:
        trial.run["image"] = image
    elif image is not None:
        why = "a tag can be moved; set run.image, or an image in the settings, with a digest"
        trial.losses.add(f"{container.at('image')}: {image}", why)
    _resources(container.inner(resources), trial)
    trial.losses += container.rest()


def _resources(resources: Fields, trial: ImportedTrial) -> None:
    limits, requests = resources.inner("limits"), resources.inner("requests")
    amounts = {
        name: value
        for name, key in (("cpu", "cpu"), ("memory", "memory"), ("gpu", GPU_RESOURCE))
        if (value := limits.take(key)) is not None or (value := requests.data.get(key)) is not None
    }
    for key in list(requests.data):
        if requests.data[key] == limits.data.get(key) or limits.data.get(key) is None:
            requests.taken |= {key} & {"cpu", "memory", GPU_RESOURCE}
    if amounts:
        trial.run["resources"] = {key: _quantity(value, key) for key, value in amounts.items()}
    trial.losses += [*limits.rest(), *requests.rest("requests are equal to limits here"), *resources.rest()]


def _quantity(value: object, key: str) -> object:
    """Return amounts without a unit as numbers, and those with a unit unchanged."""
    text = scalar_text(value)
    return spec_number(exact_number(text)) if key != "memory" and BARE.fullmatch(text) else text
