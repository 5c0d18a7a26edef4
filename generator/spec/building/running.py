"""How trials run: what the spec says, else what the settings say, else our own defaults."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from generator.spec import units
from generator.structs.settings import Settings
from generator.structs.sweep import CodeMode, Resources, Run, Shape


def ran(data: Mapping[str, Any], settings: Settings) -> Run:
    """Build the section `run` of a spec without problems."""
    default, usual, code = Run(), settings.defaults, data.get("code", {})
    failed, expected = data.get("max_failed"), data.get("expected_minutes")
    return Run(
        image=data.get("image"),
        interpreter=data.get("interpreter", default.interpreter),
        code_path=code.get("path", default.code_path).removesuffix("/"),
        code_mode=CodeMode(code.get("mode", default.code_mode)),
        data=data.get("data"),
        pool=data.get("pool", usual.pool),
        priority=data.get("priority"),
        resources=resources(data.get("resources", {})),
        parallelism=int(data.get("parallelism", default.parallelism)),
        retries=int(data.get("retries", usual.retries)),
        timeout_seconds=units.seconds(data["timeout"]) if "timeout" in data else usual.timeout_seconds,
        expected_minutes=None if expected is None else float(expected),
        seed_base=int(data.get("seed_base", default.seed_base)),
        shape=Shape(data["shape"]) if "shape" in data else None,
        max_failed=None if failed is None else int(failed),
        nodes=int(data.get("nodes", default.nodes)),
        processes=int(data.get("processes", default.processes)),
        secrets=tuple(dict.fromkeys(data.get("secrets", ()))),
        egress=tuple(dict.fromkeys(data.get("egress", ()))),
        environment=MappingProxyType(dict(data.get("environment", {}))),
        hyperparams_file=data.get("hyperparams_file", default.hyperparams_file),
    )


def resources(data: Mapping[str, Any]) -> Resources:
    """Build what one pod asks of a node."""
    default, shared = Resources(), data.get("shared_memory")
    return Resources(
        cpu=units.cores(data.get("cpu", default.cpu)),
        memory=units.memory(data.get("memory", default.memory)),
        gpu=int(data.get("gpu", default.gpu)),
        scratch=units.memory(data.get("scratch", default.scratch)),
        shared_memory=None if shared is None else units.memory(shared),
    )
