"""Single faults of a trial's pod, and what must be said of each."""

from collections.abc import Callable
from typing import Any

from sweepledger.engine.cluster.helper_pods import WRITE_TEST_COMMAND
from sweepledger.structs import names
from sweepledger.structs.kubernetes import GPU_PRODUCT_LABEL

Manifest = dict[str, Any]
Change = Callable[[Manifest], Any]


def container(pod: Manifest) -> Manifest:
    document: Manifest = pod["containers"][0]
    return document


def a_volume(**source: Any) -> Change:
    return lambda pod: pod["volumes"].append({"name": "other", **source})


def a_projection(**sources: Any) -> Change:
    return a_volume(projected={"sources": [{kind: source} for kind, source in sources.items()]})


def a_variable(**variable: Any) -> Change:
    return lambda pod: _set(container(pod), {"name": "X", **variable})


def _set(container: Manifest, variable: Manifest) -> None:
    """Set a variable once: a server refuses one that is there twice."""
    others = [item for item in container.get("env", ()) if item["name"] != variable["name"]]
    container["env"] = [*others, variable]


def a_mount(name: str, **changes: Any) -> Change:
    """Change the mount of a volume; None takes a key away."""

    def change(pod: Manifest) -> None:
        (mount,) = [each for each in container(pod)["volumeMounts"] if each["name"] == name]
        mount |= changes
        for key in [key for key, value in mount.items() if value is None]:
            del mount[key]

    return change


def its_claim(name: str, **changes: Any) -> Change:
    def change(pod: Manifest) -> None:
        (volume,) = [item for item in pod["volumes"] if item["name"] == name]
        claim = volume["persistentVolumeClaim"] | changes
        volume["persistentVolumeClaim"] = {key: value for key, value in claim.items() if value is not None}

    return change


def the_pod(**changes: Any) -> Change:
    return lambda pod: pod.update(changes)


def the_container(**changes: Any) -> Change:
    return lambda pod: container(pod).update(changes)


def a_context(**changes: Any) -> Change:
    return lambda pod: container(pod)["securityContext"].update(changes)


def an_init_container(**changes: Any) -> Change:
    return lambda pod: pod["initContainers"][0].update(changes)


def an_interpreter(program: str) -> Change:
    return the_container(command=[program, "/sweep/launcher/launch.py"])


def a_mount_before(**mount: Any) -> Change:
    return lambda pod: pod["initContainers"][0].setdefault("volumeMounts", []).append(mount)


def a_part_before(pod: Manifest) -> None:
    """Mount a part of the volume in which the code is put."""
    (mount,) = (each for each in pod["initContainers"][0]["volumeMounts"] if each["mountPath"] == "/code")
    mount["subPath"] = "x"


def a_variable_before(**variable: Any) -> Change:
    return lambda pod: _set(pod["initContainers"][0], variable)


def a_program_below(program: str, path: str) -> Change:
    """Start a program of a folder of the trial's own."""

    def change(pod: Manifest) -> None:
        an_interpreter(program)(pod)
        container(pod)["volumeMounts"].append({"name": "scratch", "mountPath": path})

    return change


OTHER_PROGRAM_VARIABLES = (
    *(
        *("PATH", "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "LD_", "GLIBC_TUNABLES", "GCONV_PATH"),
        *("BASH_ENV", "ENV"),
    ),
    *("BASH_FUNC_ls%%", "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONUSERBASE", "PYTHONWARNINGS"),
    *("PYTHONBREAKPOINT", "PYTHON_PRESITE", "_PYTHON_SYSCONFIGDATA_NAME"),
)
OTHER_PROGRAMS = (
    *("/sweep/results/python3", "/sweep/launcher/launch.py", "/proc/self/cwd/python3"),
    *("//sweep/results/python3", "/usr/../sweep/results/python3", "/usr/./../sweep/results/python3"),
    *("bin/python3", "/dev/fd/0", "$(X)", "", ".", "..", "/", "/usr/bin/", "/usr/bin/.."),
    "/sweep/checkpoints/python3",
    *(folder.removesuffix("/") for folder in names.WRITABLE_FOLDERS),
    *(f"{folder}bin/python3" for folder in names.WRITABLE_FOLDERS),
    *("python3 -c", "python3\n", "pythön", "-c"),
    "p" * 256,
)
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
AROUND = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "database"}}}


def a_term(label: str, value: str, operator: str = "In", key: str = "matchExpressions") -> Manifest:
    return {key: [{"key": label, "operator": operator, "values": [value]}]}


def an_affinity(label: str, value: str, **more: str) -> Change:
    terms = {"nodeSelectorTerms": [a_term(label, value, **more)]}
    return the_pod(affinity={"nodeAffinity": {REQUIRED: terms}})


TRAINER = "registry.example.org/team/trainer"
DIGEST = "@sha256:" + "a" * 64
AFTER_THAT = {"postStart": {"exec": {"command": ["sh"]}}}
EVERYWHERE = [{"operator": "Exists"}]
CERTIFICATE = {"signerName": "example.org/x", "keyType": "ED25519", "credentialBundlePath": "x"}
BESIDE = {"podAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": AROUND}]}}
RATHER = {"nodeAffinity": {PREFERRED: [{"weight": 1, "preference": a_term("pool", "other")}]}}

POD_FAULTS: dict[str, tuple[str, Change]] = {
    "another account": ("service account sweep-trial", the_pod(serviceAccountName="default")),
    "no account": ("service account sweep-trial", lambda pod: pod.pop("serviceAccountName")),
    **{
        f"the node's {key}": ("with its node", the_pod(**{key: True}))
        for key in ("hostIPC", "hostNetwork", "hostPID")
    },
    "a port of the node": ("with its node", the_container(ports=[{"containerPort": 1, "hostPort": 1}])),
    **{
        f"the context {key}={value}": ("Pod Security", a_context(**{key: value}))
        for key, value in (
            *(("privileged", True), ("allowPrivilegeEscalation", True), ("runAsNonRoot", False)),
            *(("runAsUser", 0), ("procMount", "Unmasked"), ("seLinuxOptions", {"type": "spc_t"})),
            *(
                ("capabilities", {"drop": ["ALL"], "add": ["SYS_ADMIN"]}),
                ("capabilities", {"drop": ["KILL"]}),
            ),
            *(("seccompProfile", {"type": "Unconfined"}), ("appArmorProfile", {"type": "Unconfined"})),
            ("windowsOptions", {"hostProcess": True}),
        )
    },
    "no context": ("Pod Security", lambda pod: container(pod).pop("securityContext")),
    "no seccomp": ("Pod Security", lambda pod: pod["securityContext"].pop("seccompProfile")),
    "kernel parameters": (
        "Pod Security",
        lambda pod: pod["securityContext"].update(sysctls=[{"name": "kernel.msgmax", "value": "1"}]),
    ),
    "a token": ("token", the_pod(automountServiceAccountToken=True)),
    "a token by default": ("token", lambda pod: pod.pop("automountServiceAccountToken")),
    "a projected token": ("token", a_projection(serviceAccountToken={"path": "token"})),
    "a tag": ("digest", the_container(image="registry.example.org/team/trainer:1")),
    "a tag in an init container": ("digest", an_init_container(image="registry.example.org/tools/git:2.50")),
    "a short digest": ("digest", the_container(image=f"{TRAINER}@sha256:ab")),
    "no memory limit": (
        "requests and limits",
        lambda pod: container(pod)["resources"]["limits"].pop("memory"),
    ),
    "no cpu request": ("requests and limits", lambda pod: container(pod)["resources"]["requests"].pop("cpu")),
    "no resources": ("requests and limits", lambda pod: container(pod).pop("resources")),
    "hostPath": ("hostPath", a_volume(hostPath={"path": "/"})),
    "gitRepo": ("hostPath", a_volume(gitRepo={"repository": "https://git.example.org/x"})),
    "inline nfs": ("hostPath", a_volume(nfs={"server": "nfs.example.org", "path": "/"})),
    "csi": ("hostPath", a_volume(csi={"driver": "secrets.example.org"})),
    "a Secret that nobody listed": ("volumes hold no Secret", a_volume(secret={"secretName": "git-write"})),
    "a projected Secret": ("volumes hold no Secret", a_projection(secret={"name": "git-write"})),
    "a Secret in a variable": (
        "environment holds no Secret",
        a_variable(valueFrom={"secretKeyRef": {"name": "hub-token", "key": "token"}}),
    ),
    "a Secret as environment": (
        "no source but its variables",
        the_container(envFrom=[{"secretRef": {"name": "git-write"}}]),
    ),
    "a ConfigMap as environment": (
        "no source but its variables",
        the_container(envFrom=[{"configMapRef": {"name": "lr-b1-00000000-launcher"}}]),
    ),
    "a ConfigMap as environment before": (
        "no source but its variables",
        an_init_container(envFrom=[{"prefix": "GIT_", "configMapRef": {"name": "x"}}]),
    ),
    **{
        f"the variable {name}": ("no variable starts another program", a_variable(name=name, value="/x"))
        for name in OTHER_PROGRAM_VARIABLES
    },
    "a PATH from a field": (
        "no variable starts another program",
        a_variable(name="PATH", valueFrom={"fieldRef": {"fieldPath": "metadata.labels['x']"}}),
    ),
    **{
        f"{name} elsewhere": ("have the values that base/", a_variable(name=name, value="/sweep/results"))
        for name in ("HOME", "SWEEP_CODE", "SWEEP_LAUNCH", "SWEEP_TABLE")
    },
    "HOME from a field": (
        "have the values that base/",
        a_variable(name="HOME", valueFrom={"fieldRef": {"fieldPath": "metadata.name"}}),
    ),
    **{
        f"{name} before": ("only variables of base/", a_variable_before(name=name, value="sh -c id"))
        for name in ("GIT_SSH_COMMAND", "GIT_EXEC_PATH", "GIT_PROXY_COMMAND", "GIT_CONFIG_KEY_1", "EDITOR")
    },
    "another credential helper before": (
        "have the values that base/",
        a_variable_before(name="GIT_CONFIG_VALUE_0", value="!id"),
    ),
    "a projected certificate": ("token or certificate", a_projection(podCertificate=CERTIFICATE)),
    "a projected trust bundle": (
        "token or certificate",
        a_projection(configMap={"name": "x"}, clusterTrustBundle={"name": "x", "path": "x"}),
    ),
    "no deadline": ("has a deadline", lambda pod: pod.pop("activeDeadlineSeconds")),
    "a year after its deadline": ("has a deadline", the_pod(terminationGracePeriodSeconds=31536000)),
    "another name server": ("no hosts", the_pod(dnsConfig={"nameservers": ["192.0.2.1"]})),
    "another scheduler": ("default scheduler", the_pod(schedulerName="evil")),
    "the processes of others": ("default scheduler", the_pod(shareProcessNamespace=True)),
    "other hosts": (
        "default scheduler",
        the_pod(hostAliases=[{"ip": "192.0.2.1", "hostnames": ["git.example.org"]}]),
    ),
    "other devices": (
        "default scheduler",
        the_pod(resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}]),
    ),
    "another runtime": ("default runtime", the_pod(runtimeClassName="privileged")),
    "another pull secret": ("pull secret", the_pod(imagePullSecrets=[{"name": "git-write"}])),
    "an image of nobody's": ("repositories", the_container(image=f"evil.example.org/team/trainer{DIGEST}")),
    "an image of a repository that begins alike": (
        "repositories",
        the_container(image=f"{TRAINER}-evil{DIGEST}"),
    ),
    "an image of a repository whose dots are letters": (
        "repositories",
        the_container(image=f"registryxexample.org/team/trainer{DIGEST}"),
    ),
    "another init image": ("repositories", an_init_container(image=f"evil.example.org/git{DIGEST}")),
    "a shell": ("starts the launcher", the_container(command=["sh", "-c", "id"])),
    "the launcher as an argument of a shell": (
        "starts the launcher",
        the_container(command=["sh", "-c", "id; /sweep/launcher/launch.py"]),
    ),
    **{
        f"the interpreter {program}": ("starts the launcher", an_interpreter(program))
        for program in OTHER_PROGRAMS
    },
    **{
        f"its results at {path}": ("of the results a trial mounts", a_mount("results", mountPath=path))
        for path in ("/usr/bin", "/sweep/../usr/bin", "/sweep")
    },
    **{
        f"its results at {path}": ("starts the launcher", a_mount("results", mountPath=path))
        for path in ("/sweep/launcher/launch.py", "/sweep//launcher", "/sweep/./launcher", "/sweep/launcher")
    },
    **{
        f"{program} below a mount at {path}": ("starts the launcher", a_program_below(program, path))
        for program, path in (("/usr/bin/python3", "/usr//bin"), ("/usr/bin/python3", "/usr/./bin"))
    },
    "a launcher of the data": ("starts the launcher", a_mount("data", mountPath="/sweep/launcher")),
    "a container beside a running one": (
        "starts the launcher",
        the_pod(ephemeralContainers=[{"name": "debug", "image": TRAINER + DIGEST, "command": ["sh"]}]),
    ),
    "the image's own command": ("starts the launcher", lambda pod: container(pod).pop("command")),
    "the doctor's command without its label": (
        "starts the launcher",
        the_container(command=[*WRITE_TEST_COMMAND]),
    ),
    "sshd": (
        "starts the launcher",
        the_container(command=["/usr/sbin/sshd"], args=["-De", "-f", "/home/mpiuser/.sshd_config"]),
    ),
    "a second container": (
        "starts the launcher",
        lambda pod: pod["containers"].append({**container(pod), "name": "two", "command": ["sh"]}),
    ),
    "another command before": ("init container", an_init_container(command=["sh", "-c", "id"])),
    "a mount more before": ("init container", a_mount_before(name="launcher", mountPath="/sweep/launcher")),
    "programs before": ("init container", a_mount_before(name="code", mountPath="/usr/bin")),
    "a part of a volume before": ("init container", a_part_before),
    "arguments before": ("init container", an_init_container(args=["id"])),
    "another init container": ("init container", an_init_container(name="first")),
    "a hook": ("hooks", the_container(lifecycle=AFTER_THAT)),
    "a probe": ("hooks", the_container(livenessProbe={"exec": {"command": ["sh"]}})),
    "another priority": ("priority class", the_pod(priorityClassName="system-node-critical")),
    "a node by name": ("no node by name", the_pod(nodeName="control-plane")),
    "nodes of no pool": ("chooses nodes", the_pod(nodeSelector={"pool": "other"})),
    "nodes beside another pod": ("no affinity", the_pod(affinity=BESIDE)),
    "nodes without another pod": ("no affinity", the_pod(affinity={"podAntiAffinity": {REQUIRED: [AROUND]}})),
    "nodes of another GPU": ("no affinity", an_affinity(GPU_PRODUCT_LABEL, "Tesla-T4")),
    "nodes by another label": ("no affinity", an_affinity("node-role.kubernetes.io/control-plane", "")),
    "nodes without a GPU type": ("no affinity", an_affinity(GPU_PRODUCT_LABEL, "Tesla-T4", operator="NotIn")),
    "a node by its name in an affinity": (
        "no affinity",
        an_affinity("metadata.name", "control-plane", key="matchFields"),
    ),
    "nodes that are preferred": ("no affinity", the_pod(affinity=RATHER)),
    "every taint": ("tolerates", the_pod(tolerations=EVERYWHERE)),
    "a pool's taint with any value": (
        "tolerates",
        the_pod(tolerations=[{"key": "team", "operator": "Exists", "effect": "NoExecute"}]),
    ),
    "a foreign claim": ("no claim", a_volume(persistentVolumeClaim={"claimName": "home"})),
    "data to write": ("read only", its_claim("data", readOnly=False)),
    "data to write by default": ("read only", its_claim("data", readOnly=None)),
    "all results": ("its own folder", a_mount("results", subPathExpr=None)),
    "another batch's results": (
        "its own folder",
        a_mount("results", subPathExpr=None, subPath="lr-b1-00000000/0"),
    ),
    "another batch's checkpoints": ("its own folder", a_mount("checkpoints", subPathExpr="other/0")),
    "the results as artifacts": ("its own folder", a_mount("artifacts", subPathExpr=None)),
    "an image to write": ("can only be read", a_context(readOnlyRootFilesystem=False)),
    "an image to write by default": (
        "can only be read",
        lambda pod: container(pod)["securityContext"].pop("readOnlyRootFilesystem"),
    ),
    "services": ("variables of the services", the_pod(enableServiceLinks=True)),
    "services by default": ("variables of the services", lambda pod: pod.pop("enableServiceLinks")),
    "a user of the node": ("user id", a_context(runAsUser=999)),
    "a user of the node in the pod": ("user id", lambda pod: pod["securityContext"].update(runAsUser=999)),
    "no user": ("user id", lambda pod: pod["securityContext"].pop("runAsUser")),
}
"""In the pod's own words."""

LABEL_FAULTS: dict[str, tuple[str, Manifest]] = {
    "an egress that nobody named": ("does not open", {"sweepledger.dev/egress-anywhere": "true"}),
    "an egress that nobody named, not even as true": (
        "does not open",
        {"sweepledger.dev/egress-anywhere": ""},
    ),
    "the pods of distributed trials": ("reach each other", {"sweepledger.dev/egress-peers": "true"}),
    "another batch": ("its own folder", {"sweepledger.dev/batch": "lr-b1-00000000"}),
    "a pattern as batch": ("bears the name", {"sweepledger.dev/batch": "a.b"}),
}
"""Labels that a pod may not have."""
