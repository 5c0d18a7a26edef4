"""Admission policies, evaluated without a server: the same files that the API server applies to Jobs and pods.

The server evaluates a variable when a rule reads it. Here, variables are evaluated many at a time, after those that
they read, and an error in a variable is an error of the rules that read it: these rules are then broken, as on the
server.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from sweepledger.contract.rendered_objects import Finding, Object, value_at, without_path
from sweepledger.problems import DocumentPath
from sweepledger.reader.safe_repr import safe_json
from sweepledger.structs.kubernetes import Manifest

NAMES = ("object", "oldObject", "request", "variables")
"""What an expression may read."""
_KEYS = re.compile(r"\b(?:variables\.pod|[a-z])\.(\w+)")
"""Keys of the pod, or of what a macro runs over, in an expression."""
FRAME = frozenset({"apiVersion", "kind", "spec", "template"})
"""Keys without which nothing is judged."""


class Policy:
    """A ValidatingAdmissionPolicy."""

    def __init__(self, manifest: Manifest) -> None:
        """Raise LookupError or TypeError if a part is missing, ValueError if an expression is not CEL."""
        spec = manifest["spec"]
        parts = [str(rule["message"]).rpartition(" [") for rule in spec["validations"]]
        self.rules = tuple(message for message, _, _ in parts)
        """The message of each rule."""
        self.codes = tuple(code.removesuffix("]") for _, _, code in parts)
        """The code at its end."""
        self.resources = frozenset(
            (group, resource)
            for rule in spec["matchConstraints"]["resourceRules"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
        )
        """Group and plural of the kinds that it judges."""
        self._expressions = [str(rule["expression"]) for rule in spec["validations"]]
        self._lists: dict[str, Any] = {}
        self._groups: list[dict[str, str]] = []
        first: dict[str, int] = {}  # group in which a variable can be read
        for variable in spec["variables"]:
            name, expression = variable["name"], str(variable["expression"])
            try:
                self._lists[name] = json.loads(expression)
            except ValueError:
                number = max((first[read] for read in _read_names((expression,)) & first.keys()), default=0)
                if number == len(self._groups):
                    self._groups.append({})
                self._groups[number][name] = expression
                first[name] = number + 1
        for expressions in ([*group.values()] for group in self._groups):
            _together(tuple(expressions))
        _together(tuple(self._expressions))

    def broken(
        self, judged: Manifest, operation: str = "CREATE", old: Manifest | None = None, *, user: str = ""
    ) -> list[int]:
        """Return the numbers of the rules that an object of this kind breaks."""
        variables = dict(self._lists)
        request = {"operation": operation, "userInfo": {"username": user}}
        given = {"object": judged, "request": request, "variables": variables}
        if old is not None:
            given["oldObject"] = old
        for group in self._groups:
            variables |= _values(group, given)
        held = _values(dict(enumerate(self._expressions)), given)
        return [number for number in range(len(self.rules)) if held.get(number) is not True]

    def located(
        self, judged: Manifest, broken: Sequence[int], similar: Mapping[int, DocumentPath]
    ) -> dict[int, DocumentPath]:
        """Return, for each broken rule, the deepest key whose removal would satisfy it; `()` if there is none.

        `similar` are the keys of a similar object: if one of them also applies here, no search is needed.
        """
        paths: dict[int, DocumentPath] = dict.fromkeys(broken, ())
        for guess in dict.fromkeys(similar[rule] for rule in broken if similar.get(rule)):
            with suppress(LookupError, TypeError):  # this object may have no such key
                left = self.broken(without_path(judged, guess))
                paths |= {rule: guess for rule in broken if similar.get(rule) == guess and rule not in left}

        def search(value: Any, path: DocumentPath, rules: frozenset[int]) -> frozenset[int]:
            """Return the rules that a key below the path breaks, and remember the key."""
            keys = (
                value if isinstance(value, Mapping) else range(len(value)) if isinstance(value, list) else ()
            )
            rest = rules
            for key in keys if rules else ():
                below = (*path, key)
                if key in FRAME:
                    rest -= search(value[key], below, rest)
                elif mended := rest.difference(self.broken(without_path(judged, below))):
                    paths.update(dict.fromkeys(mended, below))
                    search(value[key], below, mended)
                    rest -= mended
            return rules - rest

        search(judged, (), frozenset(rule for rule in broken if not paths[rule] and similar.get(rule) != ()))
        return paths

    def narrowed(self, judged: Manifest, rule: int, path: DocumentPath) -> DocumentPath:
        """Return the path of the only key below a path that the rule reads, else the path."""
        expression = self._expressions[rule]
        labels = (judged.get("metadata") or {}).get("labels") or {}
        if not path and len(named := [key for key in labels if f"'{key}'" in expression]) == 1:
            return ("metadata", "labels", *named)
        if not path and "variables.pod." in expression:
            path = ("spec",) if judged["kind"] == "Pod" else ("spec", "template", "spec")
        try:
            value = value_at(judged, path)
        except LookupError:  # an object without a pod
            return ()
        read = {key for key in _KEYS.findall(expression) if isinstance(value, Mapping) and key in value}
        return (*path, *read) if len(read) == 1 else path


def findings(
    policies: Sequence[Policy], objects: Sequence[Object], *, excused: Collection[str] = ()
) -> Iterator[tuple[Object, Finding]]:
    """Yield the rules that single objects, and the pods that a controller makes of them, break.

    Rules with an excused code do not count.
    """
    similar: dict[tuple[Policy, str], dict[int, DocumentPath]] = {}
    for obj in objects:
        # Unless it is a Job, each of its pod templates is judged as a pod, too.
        pods = () if obj.kind == "Job" else obj.pods
        as_pods = ((pod.path, {"kind": "Pod", "metadata": {}, **pod.template}) for pod in pods)
        for path, judged in (((), obj.data), *as_pods):
            group = obj.api.rpartition("/")[0] if judged["kind"] != "Pod" else ""
            resource = (group, f"{judged['kind'].lower()}s")
            for policy in policies:
                if resource not in policy.resources:
                    continue
                broken = [number for number in policy.broken(judged) if policy.codes[number] not in excused]
                if not broken:
                    continue
                known = similar.setdefault((policy, judged["kind"]), {})
                paths = policy.located(judged, broken, known)
                known |= paths
                for number, within in paths.items():
                    below = policy.narrowed(judged, number, within)
                    message, code = policy.rules[number], policy.codes[number]
                    yield obj, _finding(obj, path, below, message=message, code=code)


def _finding(obj: Object, path: DocumentPath, below: DocumentPath, *, message: str, code: str) -> Finding:
    try:
        value = value_at(obj.data, (*path, *below))
    except LookupError:  # of a pod template without metadata
        below, value = (), {}
    shown = "" if isinstance(value, Mapping) else f", got {safe_json(value)}"
    return Finding((*path, *below), f"{message}{shown}", code)


def _values(expressions: Mapping[Any, str], given: Mapping[str, Any]) -> dict[Any, Any]:
    """Return the values of the expressions that have a value."""
    texts = tuple(expressions.values())
    # Only what the expressions read, since each evaluation copies its input.
    names = _read_names(texts) & given["variables"].keys()
    data = {**given, "variables": {name: given["variables"][name] for name in names}}
    together = _together(texts).eval(data=data).plain_value()
    if isinstance(together, list):
        return dict(zip(expressions, together, strict=True))
    alone = {key: _together((text,)).eval(data=given).plain_value() for key, text in expressions.items()}
    return {key: value[0] for key, value in alone.items() if isinstance(value, list)}


@cache
def _read_names(texts: tuple[str, ...]) -> frozenset[str]:
    return frozenset(re.findall(r"variables\.(\w+)", " ".join(texts)))


@cache
def _together(expressions: tuple[str, ...]) -> Any:
    """Compile several expressions as one list: reading the input takes longer than most evaluations."""
    try:
        return _environment().compile(f"[{', '.join(f'({text})' for text in expressions)}]")
    except RuntimeError as error:
        raise ValueError(str(error)) from error


@cache
def _environment() -> Any:
    from cel_expr_python import cel  # noqa: PLC0415 - only where manifests are judged

    return cel.NewEnv(variables=dict.fromkeys(NAMES, cel.Type.DYN))
