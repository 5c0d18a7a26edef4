"""What a trial's command finds around it by name: variables, secrets, places to reach."""

import re
from collections.abc import Iterator, Mapping

from generator.problems import Problem
from generator.reader import Path, shown
from generator.spec.draft import Draft
from generator.spec.nearest import did_you_mean
from generator.structs.secretive import looks_secret
from generator.structs.settings import API_SERVER
from generator.structs.sweep import Shape

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII)
TAKEN = frozenset({"HOME", "JOB_COMPLETION_INDEX", "JOB_ID", "PATH", "TMPDIR"})
TAKEN_PREFIXES = ("SWEEP_", "KUBERNETES_")
OPERATORS = frozenset({"LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "RANK", "TF_CONFIG", "WORLD_SIZE"})
OPERATOR_PREFIXES = ("JOBSET_", "OMPI_", "PET_")
"""What tells the pods of one trial from each other."""
CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def is_reserved(name: str, *, distributed: bool = False) -> bool:
    """Tell whether a variable's value is not for a spec to say."""
    if distributed and (name in OPERATORS or name.startswith(OPERATOR_PREFIXES)):
        return True
    return name in TAKEN or name.startswith(TAKEN_PREFIXES)


def names(draft: Draft) -> Iterator[Problem]:
    """Variables have plain names, and no names of ours."""
    shape = draft.get("run", "shape", kind=str)
    distributed = shape in set(Shape) and Shape(shape or "").is_distributed
    for name in draft.names("run", "environment"):
        place = ("run", "environment", name)
        if not VARIABLE.fullmatch(name):
            message = f"must be letters, digits and _ and begin with no digit, got {shown(name)}"
            yield draft.problem(place, message, code="environment-name", at_key=True)
        elif is_reserved(name, distributed=distributed):
            message = f"must not be a variable that the trial gets anyway, got {shown(name)}"
            hint = "PATH and HOME are the image's, names with SWEEP_ are the launcher's"
            hint = "what tells pods apart is set in each pod" if not is_reserved(name) else hint
            yield draft.problem(place, message, code="environment-name", hint=hint, at_key=True)


def values(draft: Draft) -> Iterator[Problem]:
    """A value is one line: more cannot be reviewed, nor told from the next variable where it is listed."""
    for place, text in draft.texts("run", "environment"):
        if CONTROL.search(text):
            message = f"must be one line without control characters, got {shown(text)}"
            hint = "put it into a file of the code"
            yield draft.problem(place, message, code="environment-value", hint=hint)


def shows_no_secret(draft: Draft) -> Iterator[Problem]:
    """What stands in a spec stands in git for good. The value is not said again: messages end in logs."""
    for place, text in draft.texts("run", "environment"):
        name = str(place[-1])
        if looks_secret(name, text):
            known = sorted(one.name for one in draft.settings.secrets.values() if one.variable == name)
            way = (
                f"ask for it by secrets: [{known[0]}]"
                if known
                else "name it among secrets in sweepledger.yaml"
            )
            message = f"must not be a secret in plain text, as {name} seems"
            hint = f"{way}{'' if known else ', and ask for it by run.secrets'}"
            yield draft.problem(place, message, code="secret-exposed", hint=hint)


def secrets(draft: Draft) -> Iterator[Problem]:
    """Secrets are asked for by the names that the settings give them."""
    for place, name, hint in _unknown(draft, "secrets", draft.settings.secrets):
        message = f"must be a secret of the settings, got {shown(name)}"
        yield draft.problem(place, message, code="unknown-secret", hint=hint)


def egress(draft: Draft) -> Iterator[Problem]:
    """So are places outside; where the API server is, is for the collector to know."""
    known = {name: one for name, one in draft.settings.egress.items() if name != API_SERVER}
    for place, name, hint in _unknown(draft, "egress", known):
        message = f"must be an egress of the settings, got {shown(name)}"
        yield draft.problem(place, message, code="unknown-egress", hint=hint)


def collisions(draft: Draft) -> Iterator[Problem]:
    """One variable has one value: two secrets never share one, nor does a plain variable hide a secret's."""
    known = draft.settings.secrets
    plain, first = draft.names("run", "environment"), dict[str, str]()
    for place, name in draft.items("run", "secrets"):
        if name not in known:
            continue
        variable = known[name].variable
        other = f"secret {first[variable]!r}" if variable in first else "run.environment"
        if first.setdefault(variable, name) != name or variable in plain:
            message = f"must give a variable of its own, got {variable}, which {other} gives as well"
            yield draft.problem(place, message, code="environment-name", hint="keep one of the two")


def _unknown(draft: Draft, key: str, known: Mapping[str, object]) -> Iterator[tuple[Path, str, str]]:
    for place, name in draft.items("run", key):
        if isinstance(name, str) and name not in known:
            hint = did_you_mean(name, known) or f"the settings name none: add it to {key} in sweepledger.yaml"
            yield place, name, hint
