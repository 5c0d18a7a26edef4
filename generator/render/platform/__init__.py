"""What a cluster needs besides the batches: `clusters/`, data, one module a subject."""

from generator.render.platform import applying
from generator.render.platform.collector import SIGNING_KEY
from generator.render.platform.confinement import Needed, key_pair, owners, results_folder, ruleset, secrets
from generator.render.platform.names import BANNER, Names
from generator.render.platform.network import ports_to_anywhere
from generator.render.platform.source import Source, fault
from generator.render.platform.tree import platform

__all__ = [
    "BANNER",
    "SIGNING_KEY",
    "Names",
    "Needed",
    "Source",
    "applying",
    "fault",
    "key_pair",
    "owners",
    "platform",
    "ports_to_anywhere",
    "results_folder",
    "ruleset",
    "secrets",
]
