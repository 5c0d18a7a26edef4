"""What would be trained: layers, shapes, sizes, and every knob with its unit and default. Trains nothing."""

import textwrap
from typing import Any

import torch
from torch import nn

from trainer.hyperparameters import Knobs, knobs_of
from trainer.knobs import Value, shown
from trainer.model import build, side_of

CHANNELS = {"cifar10": 3}
"""Of a workload's images, where it is not one."""
WIDE = 80
"""Columns of a terminal."""


def description(knobs: Knobs) -> dict[str, Any]:
    """Describe a training as data."""
    channels, side = CHANNELS.get(knobs.workload, 1), side_of(knobs.network)
    model = build(knobs.network, channels)
    layers = _layers(model, torch.zeros(1, channels, side, side))
    chosen = {
        "network": knobs.name,
        **{name: getattr(knobs.network, name) for name in knobs.network.__slots__},
        **{name: getattr(knobs.running, name) for name in knobs.running.__slots__},
    }
    return {
        "workload": knobs.workload,
        "network": knobs.name,
        "about": " ".join((type(knobs.network).__doc__ or "").partition("\n\n")[0].split()),
        "input": [channels, side, side],
        "parameters": sum(layer["parameters"] for layer in layers),
        "layers": layers,
        "knobs": [
            {
                "name": knob.name,
                "value": chosen[knob.name],
                "default": knob.default,
                "unit": knob.unit,
                "meaning": knob.meaning,
                "rule": knob.allowed,
            }
            for knob in knobs_of(knobs.workload, knobs.name).values()
        ],
    }


def text(content: dict[str, Any]) -> str:
    """Write a description for people."""
    rows = [
        (layer["name"], layer["kind"], layer["output"], layer["parameters"]) for layer in content["layers"]
    ]
    shapes = [" x ".join(map(str, output)) for _, _, output, _ in rows]
    lines = [
        f"{content['workload']}, network {content['network']}: {content['parameters']:,} parameters",
        *_wrapped(content["about"]),
        "",
        f"{'layer':<24}{'kind':<13}{'output':<15}{'parameters':>10}",
        f"{'(images)':<37}{' x '.join(map(str, content['input'])):<15}",
    ]
    lines += [
        f"{name:<24}{kind:<13}{shape:<15}{parameters:>10,}"
        for (name, kind, _, parameters), shape in zip(rows, shapes, strict=True)
    ]
    lines += ["", f"{'knob':<22}{'default':<11}{'unit':<13}meaning"]
    for knob in content["knobs"]:
        head = f"{knob['name']:<22}{_short(knob['default']):<11}{knob['unit']:<13}"
        first, *others = _wrapped(knob["meaning"], WIDE - len(head))
        lines += [head + first, *(" " * len(head) + other for other in others)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _layers(model: nn.Module, images: torch.Tensor) -> list[dict[str, Any]]:
    """Send images through, and note what each layer makes of them."""
    found: list[dict[str, Any]] = []

    def note(name: str, module: nn.Module) -> None:
        def hook(_module: nn.Module, _inputs: Any, output: torch.Tensor) -> None:
            size = sum(each.numel() for each in module.parameters())
            shape = list(output.shape[1:])
            found.append({"name": name, "kind": type(module).__name__, "output": shape, "parameters": size})

        module.register_forward_hook(hook)

    for name, module in model.named_modules():
        if not list(module.children()):
            note(name, module)
    with torch.inference_mode():
        model.eval()(images)
    return found


def _short(value: Value) -> str:
    return f"{value:.6g}" if isinstance(value, float) else shown(value)


def _wrapped(sentence: str, width: int = WIDE) -> list[str]:
    return textwrap.wrap(sentence, width)
