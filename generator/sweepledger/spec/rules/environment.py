"""Environment variables, secrets and egress, in the section `run` and in the settings."""

import ipaddress
import re
from collections.abc import Iterator
from contextlib import suppress

from sweepledger.problems import Problem
from sweepledger.reader import DocumentPath, safe_repr
from sweepledger.spec.draft import Draft
from sweepledger.structs import names
from sweepledger.structs.run_config import Shape
from sweepledger.structs.settings import Controller

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII)
RESERVED = frozenset({"JOB_COMPLETION_INDEX", "JOB_ID", "PATH"})
PRIVATE = frozenset(
    {
        *("GIT_CEILING_DIRECTORIES", "HOME", "PWD", "TEMP", "TMP", "TMPDIR"),
        *(f"XDG_{kind}" for kind in ("CACHE_HOME", "CONFIG_HOME", "DATA_HOME", "RUNTIME_DIR", "STATE_HOME")),
    }
)
"""Variables that name the private folders of a trial."""
RESERVED_PREFIXES = ("SWEEP_", "KUBERNETES_")
OPERATORS = frozenset({"LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "RANK", "TF_CONFIG", "WORLD_SIZE"})
OPERATOR_PREFIXES = ("JOBSET_", "OMPI_", "PET_")
"""Variables that operators set in each pod of a trial."""
CONTROL = re.compile(r"[\x00-\x1f\x7f]")
SECRET = re.compile(
    r"(?:.*_)?(?:PASSWORD|PASSWD|SECRET|TOKEN|API_?KEY|ACCESS_KEY|PRIVATE_KEY|CREDENTIALS?)",
    re.ASCII | re.IGNORECASE,
)


def reserved_for(name: str, *, distributed: bool = False) -> str | None:
    """Return the owner of a variable that a spec must not set; None for other variables."""
    if name in PRIVATE:
        return f"it names a private folder of the trial; [env, {name}=…] in the command replaces it"
    if name in RESERVED or name.startswith(RESERVED_PREFIXES):
        return "PATH is the image's, names with SWEEP_ are the launcher's"
    is_operators = name in OPERATORS or name.startswith(OPERATOR_PREFIXES)
    return "the shape's operator sets it in each pod" if distributed and is_operators else None


def variable_names(draft: Draft) -> Iterator[Problem]:
    """Environment variables have valid names that are not reserved."""
    shape = draft.meaning(Shape, "run", "shape", default=None)
    # Without a cluster, processes are the author's own.
    has_policies = draft.settings.platform.controller is not Controller.NONE
    allowed = draft.settings.admission.allowed_variables
    for place in draft.each("run", "environment", "*"):
        name = str(place[-1])
        hint = reserved_for(name, distributed=shape is not None and shape.is_distributed)
        if not VARIABLE.fullmatch(name):
            message = "must have letters, digits and _ only and not begin with a digit"
        elif hint is not None:
            message = "must not be a variable that every trial has"
        elif has_policies and names.is_hook(name) and name not in allowed:
            message = "must not be a variable that can start another program than the reviewed one"
            hint = "set it in the command, as [env, NAME=VALUE, …], or list it in allowed_variables of sweepledger.yaml"
        elif has_policies and names.gives_devices(name):
            message = "must not be a variable by which the runtime of a node gives devices"
            hint = "request them with run.resources.gpu, or a pool's resources; CUDA_VISIBLE_DEVICES chooses among them"
        else:
            continue
        yield draft.wrong_key(place, message, "environment-name", hint)


def variable_values(draft: Draft) -> Iterator[Problem]:
    """A value is one line, so that lists of variables are unambiguous, and not a secret, because git keeps it."""
    for place, text in draft.texts("run", "environment"):
        if CONTROL.search(text):
            message, hint = "must be one line without control characters", "put it in a file of the code"
            yield draft.wrong(place, message, "environment-value", hint)
        name = str(place[-1])
        if looks_secret(name, text):
            secrets = draft.settings.trials.secrets.values()
            known = min((secret.name for secret in secrets if secret.variable == name), default=None)
            way = "add it to secrets in sweepledger.yaml and to run.secrets"
            hint = way if known is None else f"write secrets: [{known}]"
            # Without the value, because logs keep messages.
            message = f"must not be a secret in plain text, which {name} appears to be"
            yield draft.problem(place, message, "secret-exposed", hint)


def variable_collisions(draft: Draft) -> Iterator[Problem]:
    """One variable has one value: two secrets never share one, nor does a plain variable hide a secret's."""
    known = draft.settings.trials.secrets
    plain, first = draft.names("run", "environment"), dict[str, str]()
    for place, name in draft.items("run", "secrets"):
        if name not in known:
            continue
        variable = known[name].variable
        other = f"secret {first[variable]!r}" if variable in first else "run.environment"
        if first.setdefault(variable, name) != name or variable in plain:
            message = f"must set a different variable, got {variable}, which {other} sets as well"
            yield draft.problem(place, message, "environment-name", "keep one of the two")


def allowed_variables(draft: Draft) -> Iterator[Problem]:
    """Allowed variables are hooks such as PYTHONPATH, which specs must not set otherwise, and are not reserved."""
    for place, name in draft.texts("allowed_variables"):
        is_name, is_taken = name.isupper() and VARIABLE.fullmatch(name), reserved_for(name) is not None
        if is_taken or not is_name or not names.is_hook(name):
            message = "must be a variable such as LD_LIBRARY_PATH or PYTHONPATH"
            hint = "every trial has it" if is_taken else "specs may set every other variable"
            hint = "no trial may set it" if names.gives_devices(name) else hint
            yield draft.wrong(place, message, "environment-name", hint)


def settings_secrets(draft: Draft) -> Iterator[Problem]:
    """The variable of a secret is not reserved."""
    for place, variable in draft.each_text("secrets", "*", "variable"):
        if not VARIABLE.fullmatch(variable) or reserved_for(variable):
            message = "must be the name of a free environment variable"
            hint = "for example HF_TOKEN; PATH, HOME and names with SWEEP_ are taken"
            yield draft.wrong(place, message, "environment-name", hint)


def written(draft: Draft, *pattern: str) -> list[DocumentPath]:
    """Return the paths of a pattern below the settings, and below each of their clusters."""
    return [*draft.each(*pattern), *draft.each("clusters", "*", *pattern)]


def settings_egress(draft: Draft) -> Iterator[Problem]:
    """`cidrs` contains networks, because a network policy cannot contain names."""
    holders = [*written(draft, "egress", "*", "cidrs"), *written(draft, "dns", "cidrs")]
    for place, text in (item for holder in holders for item in draft.texts(*holder)):
        network, nearest = _network(text), _network(text, strict=False)
        if network is None:
            hint = "a network policy cannot contain names: write the addresses, "
            hint += "or with Cilium the name in hosts"
            hint = hint if nearest is None else f"did you mean {str(nearest)!r}?"
            yield draft.wrong(place, "must be a network such as 203.0.113.0/24", "cidr", hint)
        elif network.prefixlen == 0:
            message = f"allows every address, including those inside the cluster, got {safe_repr(text)}"
            yield draft.warning(place, message, "egress-everywhere", "name the networks that trials need")


HOST = re.compile(r"(?:\*|\*?[a-z0-9][a-z0-9-]*)(?:\.[a-z0-9*][a-z0-9*-]*)*", re.IGNORECASE)


def egress_hosts(draft: Draft) -> Iterator[Problem]:
    """Hosts are names."""
    hosts = (item for place in written(draft, "egress", "*", "hosts") for item in draft.texts(*place))
    for place, text in hosts:
        is_address = _network(text, strict=False) is not None
        if is_address or HOST.fullmatch(text) is None:
            message = "must be the name of a host such as 'pypi.org' or '*.example.org'"
            hint = "addresses belong into cidrs" if is_address else "leave out scheme, port and path"
            yield draft.wrong(place, message, "egress-host", hint)
        elif text == "*":
            message, hint = f"allows every host, got {safe_repr(text)}", "name the hosts that trials need"
            yield draft.warning(place, message, "egress-everywhere", hint)


def _network(text: str, *, strict: bool = True) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    with suppress(ValueError):
        return ipaddress.ip_network(text, strict=strict)
    return None


def looks_secret(name: str, value: str) -> bool:
    """Return whether a variable seems to contain a secret, which is not empty and not a path."""
    # Hyperparameters may be named `token` or `secret`; their values are in git by design.
    is_plain = value != "" and not value.startswith("/") and not name.startswith("SWEEP_")
    return is_plain and SECRET.fullmatch(name) is not None
