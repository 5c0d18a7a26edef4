"""From checked data to values. Whatever is wrong with the data was said before."""

from generator.spec.building.collapsed import collapsed
from generator.spec.building.settings import settings
from generator.spec.building.sweep import sweep

__all__ = ["collapsed", "settings", "sweep"]
