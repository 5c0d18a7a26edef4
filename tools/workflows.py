"""Hold the workflows against what each of them may ask for: `python -m tools.workflows`.

The tools that know all workflows of the world know none of ours. `workflow_rules.py` beside this says, a line
a job, which rights, triggers, actions, expressions and commands it has; whatever else stands in a workflow is
a finding, whoever put it there.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tools.workflow_rules import (
    ACTIONS,
    HELPER,
    KEYS,
    LONGEST_MINUTES,
    PUSHES,
    RULES,
    RUNNER,
    THIS_MONTH,
    Allowed,
)

ROOT = Path(__file__).parents[1]
FOLDERS = (Path(".github/workflows"), Path("generator/sweepledger/workflows/.github/workflows"))

EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}", re.DOTALL)
USES = re.compile(r"(?P<action>[\w.-]+/[\w.-]+)@(?P<commit>[0-9a-f]{40}) # (?P<version>v\d+\.\d+\.\d+)")
SECOND_COMMAND = re.compile(r"[;|`\n]|&&|\$\(|<\(")
SENTENCE = re.compile(r"[A-Z][\w,]*( [\w,]+){2,}")

Found = Iterator[str]


def main() -> int:
    """Print every finding; tell by the exit code whether there is one."""
    findings = [
        f"{folder / path.name}: {finding}"
        for folder in FOLDERS
        for path in sorted((ROOT / folder).iterdir())
        for finding in findings_of(path.name, path.read_text(encoding="utf-8"))
    ]
    print("\n".join(findings) or "the workflows ask for what they may, and for nothing else")
    return bool(findings)


def findings_of(name: str, text: str) -> tuple[str, ...]:
    """Say what a workflow must not have, or lacks."""
    allowed = RULES.get(name)
    if allowed is None:
        return ("is no workflow that we know: say in tools/workflows.py what it may ask for",)
    try:
        # Every scalar is text: `on` is a key and no truth, and `false` is what stands there.
        loader = yaml.CBaseLoader(text)
        node = loader.get_single_node()
        document = None if node is None else loader.construct_document(node)
    except yaml.YAMLError as error:
        return (f"is no YAML: {str(error).splitlines()[0]}",)
    if not isinstance(document, dict):
        return ("the workflow must be a mapping",)
    return (*_twice(node), *_workflow(name, allowed, document, text))


def _twice(node: yaml.Node | None) -> Found:
    """Find keys that stand twice in a mapping: readers differ in which of them they believe."""
    if isinstance(node, yaml.SequenceNode):
        yield from (finding for item in node.value for finding in _twice(item))
    if isinstance(node, yaml.MappingNode):
        keys = [key.value for key, _ in node.value]
        yield from (f"{key!r} stands twice" for key in sorted({key for key in keys if keys.count(key) > 1}))
        yield from (finding for _, value in node.value for finding in _twice(value))


def _workflow(name: str, allowed: Allowed, document: dict[str, Any], text: str) -> Found:
    yield from _keys("workflow", "the workflow", document)
    if document.get("permissions") != {}:
        yield "permissions must be {} at the top: each job says what it needs"
    if document.get("defaults") != {"run": {"shell": "bash"}}:
        yield "defaults must be {run: {shell: bash}}: it stops at the first failure, in a pipe as well"
    concurrency = document.get("concurrency")
    if not isinstance(concurrency, dict) or concurrency.keys() != {"group", "cancel-in-progress"}:
        yield "concurrency must say a group, and whether what runs is cancelled"
    yield from _triggers(name, allowed, document.get("on"))
    yield from _lines(allowed, text)
    jobs = document.get("jobs")
    if not isinstance(jobs, dict) or jobs.keys() != allowed.permissions.keys():
        yield f"jobs must be {', '.join(allowed.permissions)}"
        return
    for key, job in jobs.items():
        yield from (f"jobs.{key}: {finding}" for finding in _job(key, allowed, job))


def _triggers(name: str, allowed: Allowed, on: Any) -> Found:
    if not isinstance(on, dict) or on.keys() != allowed.triggers:
        yield f"on must be {', '.join(sorted(allowed.triggers))}, got {on!r}"
        return
    if "push" in on:
        wanted = PUSHES.get(name, {"branches": ["main"]})
        found = {key: value for key, value in on["push"].items() if key != "paths" or key in wanted}
        if found != wanted:
            yield f"on.push must be {wanted}, got {found}"
    for event in ("pull_request", "merge_group"):
        if on.get(event):
            yield f"on.{event} must look at every change: a check that is skipped is no check"


def _lines(allowed: Allowed, text: str) -> Found:
    """Look at the text as it stands: to a parser comments are nothing."""
    for number, line in enumerate(text.splitlines(), start=1):
        code = line.strip().removeprefix("- ")
        if code.startswith("uses:"):
            yield from (f"line {number}: {finding}" for finding in _uses(code.removeprefix("uses:").strip()))
    for found in EXPRESSION.findall(text):
        if found not in allowed.expressions:
            yield f"expression {found!r} is not among those that this workflow may use"
    if text.count("${{") != len(EXPRESSION.findall(text)):
        yield "an expression does not end"


def _uses(text: str) -> Found:
    found = USES.fullmatch(text)
    if found is None:
        yield f"must be pinned by commit with the version in a comment, got {text!r}"
        return
    commit, version, _ = ACTIONS.get(found["action"], ("", "", set()))
    if (found["commit"], found["version"]) != (commit, version):
        yield f"{found['action']} must be {commit or 'no action of ours'} # {version}"


def _job(key: str, allowed: Allowed, job: Any) -> Found:
    yield from _keys("job", "the job", job)
    if not SENTENCE.match(job.get("name", "")):
        yield f"name must be a sentence, got {job.get('name')!r}"
    runner = allowed.runners.get(key, RUNNER)
    if job.get("runs-on") != runner:
        yield f"runs-on must be {runner}, got {job.get('runs-on')!r}"
    minutes = job.get("timeout-minutes", "")
    if not minutes.isdecimal() or not 0 < int(minutes) <= LONGEST_MINUTES:
        yield f"timeout-minutes must be at most {LONGEST_MINUTES}, got {minutes!r}"
    if job.get("permissions") != allowed.permissions[key]:
        yield f"permissions must be {dict(allowed.permissions[key])}, got {job.get('permissions')}"
    if job.get("environment") != allowed.environments.get(key):
        yield f"environment must be {allowed.environments.get(key)}, got {job.get('environment')!r}"
    for number, step in enumerate(job.get("steps", [])):
        yield from (f"steps[{number}]: {finding}" for finding in _step(allowed, step))


def _step(allowed: Allowed, step: Any) -> Found:
    yield from _keys("step", "the step", step)
    if step.get("if", "${{ !cancelled() }}") != "${{ !cancelled() }}":
        yield f"if must be ${{{{ !cancelled() }}}} or nothing, got {step['if']!r}"
    for name in step.get("env") or {}:
        if name not in {"GH_TOKEN", "TOKEN"}:
            yield f"env must not set {name}"
    if "continue-on-error" in step and not step.get("uses", "").startswith("actions/upload-artifact@"):
        yield "only keeping an artifact may fail: some servers refuse it"
    if "uses" in step:
        yield from _action(allowed, step)
    elif "run" in step:
        yield from _run(allowed, step)
    else:
        yield "must use an action or run a command"


def _action(allowed: Allowed, step: Any) -> Found:
    action, said = step["uses"].partition("@")[0], step.get("with") or {}
    _, _, known = ACTIONS.get(action, ("", "", set()))
    for name in said.keys() - known:
        yield f"{action} must not be told {name!r}"
    if action == "actions/checkout" and said.get("persist-credentials") != "false":
        yield "persist-credentials must be false: what runs next could read the token"
    if "ref" in said and said["ref"] not in allowed.references:
        yield f"ref must be one of {sorted(allowed.references)}, got {said['ref']!r}"
    is_named = "ref" in said or not allowed.references
    if action == "actions/checkout" and said.get("path") == "trusted" and not is_named:
        yield "what is trusted must be named by ref: else it is the change itself"
    if "cache" in known and said.get("cache") != "false":
        yield "cache must be false: what one job leaves there another runs"


def _run(allowed: Allowed, step: Any) -> Found:
    command = step["run"]
    if not any(f"{command} ".startswith(f"{begin} ") for begin in allowed.commands):
        yield f"run must begin as one of {list(allowed.commands)}, got {command!r}"
    if SECOND_COMMAND.search(command.replace(THIS_MONTH, "").replace(HELPER, "")):
        yield f"run must be one command, got {command!r}"
    if "${{" in command:
        yield "run must take what others wrote from env, never by an expression"
    if step.get("working-directory") not in {None, "change", "trusted"}:
        yield f"working-directory must be change or trusted, got {step['working-directory']!r}"


def _keys(kind: str, place: str, found: Any) -> Found:
    if not isinstance(found, dict):
        yield f"{place} must be a mapping"
        return
    for key in found.keys() - KEYS[kind]:
        yield f"{place} must not have {key!r}"


if __name__ == "__main__":
    sys.exit(main())
