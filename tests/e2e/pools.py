"""Pools that tests want of the settings, and what a platform team does when the settings change."""

from tests.e2e.team import Team

ROOMS = ("room-2", "room-3")
"""Nodes that bear this label, and a taint that keeps all other pods away."""
LABEL = TAINT = "example.org/room"

POOLS = "pools:\n" + "".join(
    f"""  {name}:
    node: {{cpu: 2, memory: 8Gi}}
    selector: {{{LABEL}-{name}: "yes"}}
    tolerations: [{{key: {TAINT}}}]
"""
    for name in ROOMS
)


def have_pools(team: Team) -> None:
    """Let the settings name the pools, and the platform know it."""
    team.pull()
    settings = (team.root / "sweepledger.yaml").read_text()
    if POOLS in settings:
        return
    team.write("sweepledger.yaml", settings + POOLS)
    team.sweep("cluster", "bootstrap", team.controller)
    team.commit("Say which nodes there are")
    team.apply_platform()
