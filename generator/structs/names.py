"""Every name that ends in Kubernetes or in a path, and why it fits."""

import re

LABEL_LENGTH = 63
"""DNS-1123 label, and the longest value of a Kubernetes label."""

LAST_BATCH = 999
BATCH_SUFFIX = re.compile(r"-b(?P<number>[1-9][0-9]{0,2})-(?P<digest>[0-9a-f]{8})", re.ASCII)
LONGEST_BATCH_SUFFIX = len("-b999-01234567")
LONGEST_OBJECT_SUFFIX = len("-t0123456789a")
"""The longest ending of an object: shape `jobs` adds the trial id, more than `-99999` or `-table-000`."""

SWEEP_NAME_LENGTH = LABEL_LENGTH - LONGEST_BATCH_SUFFIX - LONGEST_OBJECT_SUFFIX
SWEEP_NAME = re.compile(rf"[a-z](?:[a-z0-9-]{{0,{SWEEP_NAME_LENGTH - 2}}}[a-z0-9])?", re.ASCII)

LONGEST_POD_SUFFIX = len("-49-node-0-99-abcde")
"""What a JobSet makes of the name of a distributed trial for its pods; no operator adds more."""
DISTRIBUTED_NAME_LENGTH = LABEL_LENGTH - LONGEST_BATCH_SUFFIX - LONGEST_POD_SUFFIX

RESERVED_SWEEP_NAMES = frozenset({"con", "default", "kube-system", "main"})

PARAMETER_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,62}", re.ASCII)

BLANK_DIGEST = "0" * 8
"""Stands in a batch's name while the digest that ends it is still being taken."""


def is_sweep_name(text: str) -> bool:
    """Tell whether a sweep may have this name: every object derived from it must be a DNS-1123 label."""
    return SWEEP_NAME.fullmatch(text) is not None and text not in RESERVED_SWEEP_NAMES


def batch_name(sweep: str, number: int, digest: str) -> str:
    """Name a batch after its sweep, its number and what it renders."""
    return f"{sweep}-b{number}-{digest[: len(BLANK_DIGEST)]}"


def split_batch_name(name: str) -> tuple[str, int, str] | None:
    """Take a batch's name apart into sweep, number and digest; None if it is not one."""
    for found in BATCH_SUFFIX.finditer(name):
        if found.end() == len(name) and is_sweep_name(name[: found.start()]):
            return name[: found.start()], int(found["number"]), found["digest"]
    return None


def environment_name(parameter: str) -> str:
    """Name the environment variable that carries a parameter."""
    return "SWEEP_PARAM_" + re.sub(r"[^A-Z0-9]", "_", parameter.upper())
