"""How the cluster stands, in a few lines: for the report of a test that waited in vain."""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.e2e.controllers import Controller
from tests.e2e.team import Team, has_ended

WARNINGS = 6
LOG_LINES = 8
WIDTH = 240

Object = Mapping[str, Any]


def describe_state(team: Team, controller: Controller) -> str:
    """Say what has not ended, what differs from git, the last warnings and the newest collector's words."""
    lines = [f"{name}: {message}" for name, message in controller.differences().items()]
    for namespace in (team.namespace, team.collectors):
        jobs = _all(team, f"/apis/batch/v1/namespaces/{namespace}/jobs")
        pods = _all(team, f"/api/v1/namespaces/{namespace}/pods")
        lines += (_job(job) for job in jobs if not has_ended(job))
        lines += (_pod(pod) for pod in pods if pod["status"].get("phase") != "Succeeded")
        lines += _warnings(_all(team, f"/api/v1/namespaces/{namespace}/events"))
    return "\n".join(line[:WIDTH] for line in [*lines, *_collector(team)])


def _collector(team: Team) -> Iterator[str]:
    newest = max(_all(team, f"/api/v1/namespaces/{team.collectors}/pods"), key=_made, default=None)
    if newest is not None:
        name = newest["metadata"]["name"]
        requested = ("logs", name, f"--namespace={team.collectors}", f"--tail={LOG_LINES}")
        yield from (
            f"{name}: {line}" for line in team.server.kubectl(*requested, check=False).stdout.splitlines()
        )


def _all(team: Team, path: str) -> list[Object]:
    documents: list[Object] = (team.server.ask(path) or {}).get("items", [])
    return documents


def _made(item: Object) -> str:
    made: str = item["metadata"]["creationTimestamp"]
    return made


def _job(item: Object) -> str:
    counts = {key: item.get("status", {}).get(key, 0) for key in ("active", "ready", "succeeded", "failed")}
    is_held = item["spec"].get("suspend", False)
    return f"Job {item['metadata']['name']} of {_made(item)}: {counts}{' suspended' if is_held else ''}"


def _pod(item: Object) -> str:
    status = item["status"]
    held = [*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())]
    states = {container["name"]: container["state"] for container in held if not container.get("ready")}
    conditions = status.get("conditions", ())
    waits = [each.get("message", "") for each in conditions if each.get("reason") == "Unschedulable"]
    return f"pod {item['metadata']['name']} of {_made(item)}: {status.get('phase')} {waits or states}"


def _warnings(events: list[Object]) -> Iterator[str]:
    warnings = [event for event in events if event.get("type") == "Warning"]
    for warning in sorted(warnings, key=lambda item: item.get("lastTimestamp") or _made(item))[-WARNINGS:]:
        about, when = warning["involvedObject"], warning.get("lastTimestamp") or _made(warning)
        yield f"{when} {about['kind']} {about['name']}: {warning.get('reason')}: {warning.get('message', '')}"
