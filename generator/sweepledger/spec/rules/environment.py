"""Environment variables, secrets and egress: those of a run and those of the settings."""

import ipaddress
import re
from collections.abc import Iterator

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


def is_reserved(name: str, *, distributed: bool = False) -> bool:
    """Return whether a spec must not set a variable."""
    if distributed and (name in OPERATORS or name.startswith(OPERATOR_PREFIXES)):
        return True
    return name in RESERVED | PRIVATE or name.startswith(RESERVED_PREFIXES)


def variable_names(draft: Draft) -> Iterator[Problem]:
    """Environment variables have valid names that are not reserved."""
    shape = draft.get("run", "shape", kind=str)
    distributed = shape in set(Shape) and Shape(shape or "").is_distributed
    # Without a cluster, processes are the author's own.
    has_policies = draft.settings.platform.controller is not Controller.NONE
    allowed = draft.settings.admission.allowed_variables
    for name in draft.names("run", "environment"):
        place = ("run", "environment", name)
        if not VARIABLE.fullmatch(name):
            message = (
                f"must have letters, digits and _ only and not begin with a digit, got {safe_repr(name)}"
            )
            yield draft.problem(place, message, code="environment-name", at_key=True)
        elif is_reserved(name, distributed=distributed):
            message = f"must not be a variable that every trial has, got {safe_repr(name)}"
            hint = "PATH is the image's, names with SWEEP_ are the launcher's"
            if name in PRIVATE:
                hint = f"it names a private folder of the trial; [env, {name}=…] in the command replaces it"
            hint = "the shape's operator sets it in each pod" if not is_reserved(name) else hint
            yield draft.problem(place, message, code="environment-name", hint=hint, at_key=True)
        elif has_policies and names.is_hook(name) and name not in allowed:
            message = (
                f"must not be a variable that can start another program than the reviewed one, got {name!r}"
            )
            hint = "set it in the command, as [env, NAME=VALUE, …], or list it in allowed_variables of sweepledger.yaml"
            yield draft.problem(place, message, code="environment-name", hint=hint, at_key=True)


def variable_values(draft: Draft) -> Iterator[Problem]:
    """The value of a variable is one line, so that lists of variables are unambiguous."""
    for place, text in draft.texts("run", "environment"):
        if CONTROL.search(text):
            message = f"must be one line without control characters, got {safe_repr(text)}"
            yield draft.problem(place, message, code="environment-value", hint="put it in a file of the code")


def looks_secret(name: str, value: str) -> bool:
    """Return whether a variable seems to contain a secret, which is not empty and not a path."""
    # Hyperparameters may be named `token` or `secret`; their values are in git by design.
    is_plain = value != "" and not value.startswith("/") and not name.startswith("SWEEP_")
    return is_plain and SECRET.fullmatch(name) is not None


def exposed_secrets(draft: Draft) -> Iterator[Problem]:
    """A spec contains no secrets, because git keeps them. The message omits the value, because logs keep messages."""
    for place, text in draft.texts("run", "environment"):
        name = str(place[-1])
        if looks_secret(name, text):
            known = sorted(
                secret.name for secret in draft.settings.trials.secrets.values() if secret.variable == name
            )
            way = f"write secrets: [{known[0]}]" if known else "add it to secrets in sweepledger.yaml"
            message = f"must not be a secret in plain text, which {name} appears to be"
            hint = f"{way}{'' if known else ' and to run.secrets'}"
            yield draft.problem(place, message, code="secret-exposed", hint=hint)


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
            yield draft.problem(place, message, code="environment-name", hint="keep one of the two")


def allowed_variables(draft: Draft) -> Iterator[Problem]:
    """The variables that the settings allow are such that specs must not set otherwise, and are not reserved."""
    for place, name in draft.items("allowed_variables"):
        is_name = isinstance(name, str) and name.isupper() and VARIABLE.fullmatch(name) is not None
        if isinstance(name, str) and (is_reserved(name) or not is_name or not names.is_hook(name)):
            message = f"must be a variable such as LD_LIBRARY_PATH or PYTHONPATH, got {safe_repr(name)}"
            hint = "every trial has it" if is_reserved(name) else "specs may set every other variable"
            yield draft.problem(place, message, code="environment-name", hint=hint)


SECRET_KEY = re.compile(r"[A-Za-z0-9_.-]{1,253}", re.ASCII)


def settings_secrets(draft: Draft) -> Iterator[Problem]:
    """The variable of a secret is not reserved, and its key is valid."""
    for name in draft.names("secrets"):
        variable, key = (draft.get("secrets", name, key, kind=str) for key in ("variable", "key"))
        if variable is not None and (not VARIABLE.fullmatch(variable) or is_reserved(variable)):
            message = f"must be the name of a free environment variable, got {safe_repr(variable)}"
            hint = "for example HF_TOKEN; PATH, HOME and names with SWEEP_ are taken"
            yield draft.problem(("secrets", name, "variable"), message, code="environment-name", hint=hint)
        if key is not None and (not SECRET_KEY.fullmatch(key) or key in {".", ".."}):
            message = f"must be a key of a Kubernetes Secret: letters, digits and - _ ., got {safe_repr(key)}"
            yield draft.problem(("secrets", name, "key"), message, code="name-form", hint="for example token")


def dns_servers(draft: Draft) -> Iterator[Problem]:
    """`dns` names servers: pods by namespace and labels, or networks."""
    for holder in _holders(draft):
        place = (*holder, "dns")
        keys = {*draft.names(*place)}
        if "dns" in draft.names(*holder) and not {"namespace", "cidrs"} & keys:
            message = "must name the servers, got neither namespace nor cidrs"
            hint = "for example namespace: kube-system and labels: {k8s-app: coredns}; or cidrs: [169.254.169.254/32]"
            yield draft.problem(place, message, code="missing-key", hint=hint, at_key=True)
        for key, other in (("namespace", "labels"), ("labels", "namespace")):
            if key in keys and other not in keys:
                message, hint = (
                    f"must be given with {key}",
                    "`kubectl get pods --all-namespaces --show-labels` shows both",
                )
                yield draft.problem((*place, other), message, code="missing-key", hint=hint, at_key=True)


def settings_egress(draft: Draft) -> Iterator[Problem]:
    """`cidrs` contains networks, because a network policy cannot contain names."""
    cidrs = [(*place, "cidrs") for place in _all_egress(draft)]
    for networks in [*cidrs, *((*holder, "dns", "cidrs") for holder in _holders(draft))]:
        for place, text in draft.items(*networks):
            if not isinstance(text, str):
                continue
            try:
                network = ipaddress.ip_network(text)
            except ValueError:
                message = f"must be a network such as 203.0.113.0/24, got {safe_repr(text)}"
                hint = "a network policy cannot contain names: write the addresses, or with Cilium the name in hosts"
                if _is_address(text):
                    hint = f"did you mean {str(ipaddress.ip_network(text, strict=False))!r}?"
                yield draft.problem(place, message, code="cidr", hint=hint)
                continue
            if network.prefixlen == 0:
                message = f"allows every address, including those inside the cluster, got {safe_repr(text)}"
                hint = "name the networks that trials need"
                yield draft.warning(place, message, code="egress-everywhere", hint=hint)


def _holders(draft: Draft) -> list[DocumentPath]:
    """Return the places that may have egress and DNS: the settings, and each of their clusters."""
    return [(), *(("clusters", name) for name in draft.names("clusters"))]


def _all_egress(draft: Draft) -> list[DocumentPath]:
    return [
        (*holder, "egress", name) for holder in _holders(draft) for name in draft.names(*holder, "egress")
    ]


HOST = re.compile(r"(?:\*|\*?[a-z0-9][a-z0-9-]*)(?:\.[a-z0-9*][a-z0-9*-]*)*", re.IGNORECASE)


def egress_hosts(draft: Draft) -> Iterator[Problem]:
    """An egress has networks or hosts, and hosts are names."""
    for egress in _all_egress(draft):
        if not {"cidrs", "hosts"}.intersection(draft.names(*egress)):
            hint = (
                "hosts needs Cilium; with another network, open addresses, or a `proxy` that decides by name"
            )
            yield draft.problem(egress, "must have cidrs or hosts", code="egress-empty", hint=hint)
        for place, text in draft.items(*egress, "hosts"):
            if not isinstance(text, str):
                continue
            if HOST.fullmatch(text) is None or _is_address(text):
                message = (
                    f"must be the name of a host such as 'pypi.org' or '*.example.org', got {safe_repr(text)}"
                )
                hint = (
                    "addresses belong into cidrs" if _is_address(text) else "leave out scheme, port and path"
                )
                yield draft.problem(place, message, code="egress-host", hint=hint)
            elif text == "*":
                message = f"allows every host, got {safe_repr(text)}"
                hint = "name the hosts that trials need"
                yield draft.warning(place, message, code="egress-everywhere", hint=hint)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return True
