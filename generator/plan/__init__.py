"""What a sweep would cost, cover and change, before anybody pays for it. Pure: trials in, a review out."""

from generator.plan.coverage import Binned, Counted, Coverage, Covered, Scale, coverage
from generator.plan.data import as_data, room_as_data
from generator.plan.difference import Difference, Unreadable, difference
from generator.plan.evenness import Discrepancy
from generator.plan.outdated import Outdated, outdated
from generator.plan.review import BlockReview, Cost, Rejection, Review, Standing, cost, standing
from generator.plan.room import Room, room

__all__ = [
    "Binned",
    "BlockReview",
    "Cost",
    "Counted",
    "Coverage",
    "Covered",
    "Difference",
    "Discrepancy",
    "Outdated",
    "Rejection",
    "Review",
    "Room",
    "Scale",
    "Standing",
    "Unreadable",
    "as_data",
    "cost",
    "coverage",
    "difference",
    "outdated",
    "room",
    "room_as_data",
    "standing",
]
