"""What a cluster needs besides the batches: `clusters/`, data, one module a subject."""

from generator.render.platform.confinement import Needed, results_folder, ruleset, secrets
from generator.render.platform.names import BANNER, Names
from generator.render.platform.source import Source, fault
from generator.render.platform.tree import platform

__all__ = [
    "BANNER",
    "Names",
    "Needed",
    "Source",
    "fault",
    "platform",
    "results_folder",
    "ruleset",
    "secrets",
]
