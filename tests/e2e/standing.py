"""How the cluster stands, in a few lines: for the report of a test that waited in vain."""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.e2e.controllers import Controller
from tests.e2e.team import COLLECTORS, NAMESPACE, Team, has_ended

WARNINGS = 6
LOG_LINES = 8
WIDTH = 240

Object = Mapping[str, Any]


def standing(team: Team, controller: Controller) -> str:
    """Say what has not ended, what differs from git, the last warnings and the newest collector's words."""
    lines = [f"{name}: {said}" for name, said in controller.differences().items()]
    for namespace in (NAMESPACE, COLLECTORS):
        jobs = _all(team, f"/apis/batch/v1/namespaces/{namespace}/jobs")
        pods = _all(team, f"/api/v1/namespaces/{namespace}/pods")
        lines += (_job(one) for one in jobs if not has_ended(one))
        lines += (_pod(one) for one in pods if one["status"].get("phase") != "Succeeded")
        lines += _warnings(_all(team, f"/api/v1/namespaces/{namespace}/events"))
    return "\n".join(line[:WIDTH] for line in [*lines, *_collector(team)])


def _collector(team: Team) -> Iterator[str]:
    newest = max(_all(team, f"/api/v1/namespaces/{COLLECTORS}/pods"), key=_made, default=None)
    if newest is not None:
        name = newest["metadata"]["name"]
        asked = ("logs", name, f"--namespace={COLLECTORS}", f"--tail={LOG_LINES}")
        yield from (
            f"{name}: {line}" for line in team.server.kubectl(*asked, check=False).stdout.splitlines()
        )


def _all(team: Team, path: str) -> list[Object]:
    found: list[Object] = (team.server.ask(path) or {}).get("items", [])
    return found


def _made(one: Object) -> str:
    made: str = one["metadata"]["creationTimestamp"]
    return made


def _job(one: Object) -> str:
    counts = {key: one.get("status", {}).get(key, 0) for key in ("active", "ready", "succeeded", "failed")}
    is_held = one["spec"].get("suspend", False)
    return f"Job {one['metadata']['name']} of {_made(one)}: {counts}{' suspended' if is_held else ''}"


def _pod(one: Object) -> str:
    status = one["status"]
    held = [*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())]
    states = {container["name"]: container["state"] for container in held if not container.get("ready")}
    conditions = status.get("conditions", ())
    waits = [each.get("message", "") for each in conditions if each.get("reason") == "Unschedulable"]
    return f"pod {one['metadata']['name']} of {_made(one)}: {status.get('phase')} {waits or states}"


def _warnings(events: list[Object]) -> Iterator[str]:
    warnings = [one for one in events if one.get("type") == "Warning"]
    for one in sorted(warnings, key=lambda one: one.get("lastTimestamp") or _made(one))[-WARNINGS:]:
        about, when = one["involvedObject"], one.get("lastTimestamp") or _made(one)
        yield f"{when} {about['kind']} {about['name']}: {one.get('reason')}: {one.get('message', '')}"
