"""The admission policies, evaluated by Google's own CEL, on what we render and on single faults."""

import json
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sweepledger.engine.cluster import helper_pods
from sweepledger.formats import yaml
from sweepledger.formats.launch_json import LAUNCHER_PATHS
from sweepledger.render.platform import admission_lists
from sweepledger.render.pod import STORE_CREDENTIALS, STORE_SEALS, launcher_map
from sweepledger.spec import ParsedSpec, parse
from sweepledger.structs import kubernetes, names
from sweepledger.structs.run_config import Shape
from sweepledger.structs.settings import API_SERVER_EGRESS, Controller, Dataset, Egress, SweepLimits
from sweepledger.structs.settings.trials import Defaults
from tests.manifests import controlled_by
from tests.render.building import built
from tests.render.judging import refusals
from tests.render.platforms import (
    DISTRIBUTED,
    PLATFORM_SETTINGS,
    THREE_POOLS,
    a_platform,
    the,
    trial_policy,
)
from tests.render.pod_faults import (
    LABEL_FAULTS,
    POD_FAULTS,
    Change,
    a_mount,
    a_variable,
    a_variable_before,
    a_volume,
    an_interpreter,
    its_claim,
    the_container,
    the_pod,
)
from tests.render.test_bucket_store import SETTINGS as IN_A_BUCKET
from tests.sweeps import FULL_SETTINGS, POD_POOL_SETTINGS, a_batch, a_full_sweep, real_bases, with_keys

Manifest = dict[str, Any]
IMAGE = "registry.example.org/team/trainer@sha256:" + "a" * 64


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    """An Indexed Job with every option, as kustomize builds it."""
    batch = a_batch(sweep=a_full_sweep(), image=IMAGE)
    made = built(batch, tmp_path_factory.mktemp("built"), FULL_SETTINGS)
    return next(manifest for manifest in made if manifest["kind"] == "Job")


def changed(job: Manifest, *changes: Change) -> Manifest:
    """Copy a Job, with another pod."""
    made = deepcopy(job)
    for change in changes:
        change(made["spec"]["template"]["spec"])
    return made


def test_a_rendered_job_with_every_option_and_its_pods_are_admitted(job: Manifest) -> None:
    assert refusals(trial_policy(), job) == refusals(trial_policy(), job["spec"]["template"]) == set()


@pytest.mark.parametrize("fault", POD_FAULTS)
def test_a_single_fault_is_refused_in_the_job_and_in_the_pod(fault: str, job: Manifest) -> None:
    says, change = POD_FAULTS[fault]

    faulty = changed(job, change)

    for manifest in (faulty, faulty["spec"]["template"]):
        messages = refusals(trial_policy(), manifest)
        assert [says in message for message in messages].count(True) == 1
        assert len(messages) == 1 or fault.startswith("its results at"), "of the launcher, too"


@pytest.mark.parametrize("program", ["python3.12", "/opt/conda/bin/python", "/sweeps/bin/python3"])
def test_any_program_of_the_image_starts_the_launcher(program: str, job: Manifest) -> None:
    other = changed(job, an_interpreter(program))

    assert not refusals(trial_policy(), other)
    assert not refusals(trial_policy(), other["spec"]["template"])


def test_the_user_of_an_mpi_image_runs_in_no_job_of_git(job: Manifest) -> None:
    policy = trial_policy(shapes=DISTRIBUTED)
    faulty = changed(job, lambda pod: pod["securityContext"].update(runAsUser=1000))
    owned = deepcopy(faulty)
    owned["metadata"]["ownerReferences"] = controlled_by("MPIJob", job["metadata"]["name"])

    (message,) = refusals(policy, faulty)
    assert "user id" in message
    assert refusals(policy, owned) == refusals(policy, owned["spec"]["template"]) == set()


@pytest.mark.parametrize("fault", LABEL_FAULTS)
def test_a_single_label_is_refused_in_the_job_and_in_the_pod(fault: str, job: Manifest) -> None:
    says, labels = LABEL_FAULTS[fault]
    faulty = deepcopy(job)

    faulty["spec"]["template"]["metadata"]["labels"] |= labels

    for manifest in (faulty, faulty["spec"]["template"]):
        assert any(says in message for message in refusals(trial_policy(), manifest))


def test_a_pod_without_the_label_of_a_batch_is_refused(job: Manifest) -> None:
    faulty = deepcopy(job)

    del faulty["spec"]["template"]["metadata"]

    assert any("bears the name" in message for message in refusals(trial_policy(), faulty))


def test_settings_that_name_no_image_leave_the_choice_to_specs_but_ask_for_a_digest(job: Manifest) -> None:
    policy = trial_policy(with_keys(PLATFORM_SETTINGS, images={}))
    other = changed(job, the_container(image=IMAGE.replace("team", "others")))
    tag = changed(job, the_container(image="registry.example.org/others/trainer:1"))

    assert refusals(policy, other) == set()
    assert refusals(policy, tag) == {"images are named by digest"}


@pytest.mark.parametrize("port", ["", ":5000"])
def test_an_image_that_is_the_default_may_be_asked_for_with_any_digest(port: str, job: Manifest) -> None:
    default = Defaults(image=f"registry.example.org{port}/others/trainer:1@sha256:" + "b" * 64)
    policy = trial_policy(with_keys(PLATFORM_SETTINGS, defaults=default))

    older = changed(job, the_container(image=f"registry.example.org{port}/others/trainer@sha256:" + "c" * 64))

    assert refusals(policy, older) == set()
    assert refusals(trial_policy(), older)


@pytest.mark.parametrize(
    ("folder", "read_only", "is_admitted"),
    [
        ("digits", True, True),
        ("digits", False, False),
        (None, True, False),
        ("lr-b1-00000000/0", True, False),
        ("digits/..", True, False),
    ],
)
def test_on_the_claim_of_the_results_a_trial_reads_the_folders_of_datasets_alone(
    folder: str | None, *, read_only: bool, is_admitted: bool, job: Manifest
) -> None:
    shared = {"mnist": Dataset("mnist", "results", "version:1", path="digits")}
    policy = trial_policy(with_keys(PLATFORM_SETTINGS, datasets=shared))
    reads = changed(job, its_claim("data", claimName="results", readOnly=read_only))
    a_mount("data", subPath=folder)(reads["spec"]["template"]["spec"])

    said = refusals(policy, reads)

    assert any("its own folder" in message for message in said) is not is_admitted
    assert bool(said) is not is_admitted


def test_an_egress_for_the_api_server_is_the_collectors_alone(job: Manifest) -> None:
    opened = {API_SERVER_EGRESS: Egress(API_SERVER_EGRESS, ("192.0.2.1/32",), (6443,))}
    policy = trial_policy(with_keys(PLATFORM_SETTINGS, egress={**PLATFORM_SETTINGS.network.egress, **opened}))
    faulty = deepcopy(job)

    faulty["spec"]["template"]["metadata"]["labels"][f"sweepledger.dev/egress-{API_SERVER_EGRESS}"] = "true"

    assert refusals(policy, job) == set()
    assert "does not open" in refusals(policy, faulty).pop()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"ttlSecondsAfterFinished": 60}, "TTL"),
        ({"parallelism": 3}, "completions"),
        ({"parallelism": 100_000}, "completions"),
        ({"completions": 1}, "completions"),
        ({"completions": 100_001, "parallelism": 2}, "completions"),
        ({"completions": None}, "completions"),
    ],
)
def test_a_job_with_a_single_fault_is_refused(changes: dict[str, Any], says: str, job: Manifest) -> None:
    faulty = deepcopy(job)

    faulty["spec"] = {name: value for name, value in (job["spec"] | changes).items() if value is not None}

    assert says in refusals(trial_policy(), faulty).pop()


def test_a_job_has_no_more_trials_than_the_settings_let_a_sweep_have(job: Manifest) -> None:
    few, enough = (
        with_keys(PLATFORM_SETTINGS, limits=SweepLimits(max_trials=most))
        for most in (job["spec"]["completions"] - 1, job["spec"]["completions"])
    )

    assert "completions" in refusals(trial_policy(few), job).pop()
    assert refusals(trial_policy(enough), job) == set()


def test_only_variables_that_the_settings_allow_may_start_another_program(job: Manifest) -> None:
    policy = trial_policy(with_keys(PLATFORM_SETTINGS, allowed_variables=("LD_PRELOAD",)))

    allowed = changed(job, a_variable(name="LD_PRELOAD", value="libtcmalloc.so"))
    other = changed(job, a_variable(name="LD_AUDIT", value="libtcmalloc.so"))

    assert refusals(policy, allowed) == set()
    assert "no variable starts" in refusals(policy, other).pop()


@pytest.mark.parametrize(
    "name",
    [
        *("PYTHONUNBUFFERED", "NCCL_DEBUG", "OLD_PATH", "XLD_PRELOAD", "MY_ENV", "PATHS"),
        *("ROCR_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"),
    ],
)
def test_variables_that_start_nothing_are_admitted(name: str, job: Manifest) -> None:
    other = changed(job, a_variable(name=name, value="1"))

    assert refusals(trial_policy(), other) == set()


def test_what_the_cluster_adds_to_the_pods_of_a_job_that_was_judged_is_admitted(job: Manifest) -> None:
    pod = deepcopy(job["spec"]["template"])
    pod["metadata"]["ownerReferences"] = controlled_by("Job", "lr")
    a_variable(name="LD_PRELOAD", value="/usr/lib/vendor.so")(pod["spec"])
    a_variable_before(name="HTTPS_PROXY", value="http://proxy.example.org")(pod["spec"])
    pod["spec"] |= {"runtimeClassName": "vendor", "schedulerName": "default-scheduler"}

    assert refusals(trial_policy(), pod) == set()


@pytest.fixture(scope="module")
def pooled_job(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    """The same Job on a pool that sets everything about its pods."""
    batch = a_batch(sweep=a_full_sweep("chosen"), image=IMAGE)
    made = built(batch, tmp_path_factory.mktemp("pooled"), POD_POOL_SETTINGS)
    return next(manifest for manifest in made if manifest["kind"] == "Job")


def of_pods() -> Manifest:
    """The policy of a platform whose pool sets everything about its pods."""
    pools = {**PLATFORM_SETTINGS.trials.pools, **POD_POOL_SETTINGS.trials.pools}
    return trial_policy(with_keys(PLATFORM_SETTINGS, pools=pools))


def test_pods_are_admitted_only_with_what_their_pool_says(pooled_job: Manifest) -> None:
    template = pooled_job["spec"]["template"]

    assert refusals(of_pods(), pooled_job) == refusals(of_pods(), template) == set()
    said = " ".join(refusals(trial_policy(), pooled_job))
    assert all(word in said for word in ("service account", "scheduler", "priority class", "runtime"))


@pytest.mark.parametrize(
    "claim",
    [
        {"name": "gpu", "resourceClaimTemplateName": "eight-gpus"},
        {"name": "all", "resourceClaimTemplateName": "one-gpu"},
        {"name": "gpu", "resourceClaimName": "of-another-trial"},
    ],
)
def test_no_pod_claims_devices_that_no_pool_names(claim: dict[str, str], pooled_job: Manifest) -> None:
    faulty = changed(pooled_job, the_pod(resourceClaims=[claim]))

    for manifest in (faulty, faulty["spec"]["template"]):
        (message,) = refusals(of_pods(), manifest)
        assert "devices" in message


@pytest.mark.parametrize(
    ("audience", "account", "is_admitted"),
    [
        ("sts.amazonaws.com", "trainer", True),
        ("api://AzureADTokenExchange", "trainer", True),
        ("https://kubernetes.default.svc", "trainer", False),
        (None, "trainer", False),
        ("sts.amazonaws.com", "sweep-trial", False),
    ],
)
def test_only_the_token_of_a_cloud_is_admitted_and_only_for_the_account_of_a_pool(
    audience: str | None, account: str, *, is_admitted: bool, pooled_job: Manifest
) -> None:
    pod = deepcopy(pooled_job["spec"]["template"])
    token = {"path": "token", **({"audience": audience} if audience else {})}
    pod["spec"]["serviceAccountName"] = account
    pod["spec"]["volumes"].append(
        {"name": "aws-iam-token", "projected": {"sources": [{"serviceAccountToken": token}]}}
    )

    assert (refusals(of_pods(), pod) == set()) == is_admitted


@pytest.mark.parametrize(
    ("changes", "is_admitted"),
    [
        ({}, True),
        ({"path": "other"}, False),
        ({"audience": "https://kubernetes.default.svc"}, False),
        ({"audience": None}, False),
        ({"account": "sweep-trial"}, False),
        ({"account": "builder"}, False),
    ],
    ids=lambda value: "-".join(map(str, value)) if isinstance(value, dict) else None,
)
def test_tokens_of_a_pool(changes: dict[str, str | None], *, is_admitted: bool, pooled_job: Manifest) -> None:
    changed = deepcopy(pooled_job)
    pod = changed["spec"]["template"]["spec"]
    (tokens,) = (volume for volume in pod["volumes"] if volume["name"] == "tokens")
    token = tokens["projected"]["sources"][0]["serviceAccountToken"]
    for key, value in changes.items():
        if key == "account":
            pod["serviceAccountName"] = value
        elif value is None:
            del token[key]
        else:
            token[key] = value

    for manifest in (changed, changed["spec"]["template"]):
        assert (refusals(of_pods(), manifest) == set()) == is_admitted
    assert any("token" in message for message in refusals(trial_policy(), pooled_job))


def test_every_folder_that_the_bases_give_the_launcher_is_that_of_its_variables(job: Manifest) -> None:
    moved = deepcopy(job)
    for variable in moved["spec"]["template"]["spec"]["containers"][0]["env"]:
        if str(variable.get("value", "")).startswith("/sweep/"):
            variable["value"] = f"/sweep/scratch{variable['value']}"

    assert "have the values that base/" in refusals(trial_policy(), moved).pop()


_WORDS = st.text("abPY0._+-/$ \n", max_size=12)
_PLACES = st.sampled_from(["", "/", "/usr/bin/", "/code/", "/opt/../", "./", *names.WRITABLE_FOLDERS])


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(program=st.builds(str.__add__, _PLACES, _WORDS) | st.text(max_size=6))
@example(program="python3")
@example(program="/opt/conda/bin/python3.12")
@example(program="/code/python")
@example(program="/codex/python")
@example(program="/sweep")
@example(program="a" * 255)
@example(program="a" * 256)
def test_specs_and_policies_accept_the_same_interpreters(program: str, job: Manifest) -> None:
    named = changed(job, an_interpreter(program))

    admitted = refusals(trial_policy(), named) == set()

    assert admitted is (spec_problems(program) == spec_problems("python3"))


@cache
def spec_problems(program: str) -> list[str]:
    """Return the codes of a spec that clones its code, as the job does."""
    run = {"interpreter": program, "code": {"path": "code", "mode": "clone"}}
    text = json.dumps(
        {
            "name": "lr",
            "method": "grid",
            "metric": {"name": "accuracy", "goal": "maximize"},
            "parameters": {"x": {"values": [1, 2]}},
            "command": ["python", "code/train.py", "${args}"],
            "run": run,
        }
    )
    parsed = parse(text.encode(), "sweeps/lr.yaml", PLATFORM_SETTINGS)
    return [] if isinstance(parsed, ParsedSpec) else sorted(one.code for one in parsed)


def test_a_job_with_a_generated_name_is_refused(job: Manifest) -> None:
    faulty = deepcopy(job)

    faulty["metadata"]["generateName"] = "lr-"

    assert "name" in refusals(trial_policy(), faulty).pop()


def test_where_every_pool_has_a_queue_no_job_goes_past_them(job: Manifest) -> None:
    policy = trial_policy(with_keys(PLATFORM_SETTINGS, pools=THREE_POOLS))
    anywhere = deepcopy(job)
    del anywhere["spec"]["template"]["spec"]["affinity"]  # for the GPUs of another pool
    past, wrong, through = deepcopy(anywhere), deepcopy(anywhere), deepcopy(anywhere)

    past["metadata"]["labels"].pop("kueue.x-k8s.io/queue-name")
    wrong["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "somebody-elses"
    through["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "heavy"

    assert "one of the queues" in refusals(policy, past).pop()
    assert "one of the queues" in refusals(policy, wrong).pop()
    assert refusals(policy, through) == set()


def test_where_a_pool_has_no_queue_a_job_needs_none_but_may_name_no_foreign_one(job: Manifest) -> None:
    past, wrong = deepcopy(job), deepcopy(job)

    past["metadata"]["labels"].pop("kueue.x-k8s.io/queue-name")
    wrong["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "somebody-elses"

    assert refusals(trial_policy(), past) == set()
    assert refusals(trial_policy(), wrong)


def test_only_where_mpi_runs_the_keys_that_its_operator_makes_are_admitted(job: Manifest) -> None:
    launcher = deepcopy(job)

    batch = job["metadata"]["name"]
    a_volume(secret={"secretName": f"{batch}-0-ssh"})(launcher["spec"]["template"]["spec"])
    foreign = deepcopy(job)
    a_volume(secret={"secretName": "lr-b1-00000000-0-ssh"})(foreign["spec"]["template"]["spec"])

    assert refusals(trial_policy(), launcher)
    assert refusals(trial_policy(shapes=(Shape.MPI_JOB,)), launcher) == set()
    assert "no Secret" in refusals(trial_policy(shapes=(Shape.MPI_JOB,)), foreign).pop()


def test_flux_is_asked_for_nothing_but_batches_and_their_root() -> None:
    tree = a_platform(active=("lr-b1-3f9a1c2e",))
    policy = the("ValidatingAdmissionPolicy", "research-flux-batches", tree)
    batch = the("Kustomization", "lr-b1-3f9a1c2e", tree)

    assert refusals(policy, batch) == set()
    assert refusals(policy, the("Kustomization", "sweeps", tree)) == set()
    changes: tuple[dict[str, Any], ...] = (
        {"serviceAccountName": "sweep-root"},
        {"path": "./clusters/platform"},
        {"path": "./overlays/active/another"},
        {"force": True},
        {"prune": False},
        {"deletionPolicy": "Orphan"},
        {"deletionPolicy": "MirrorPrune"},
        {"components": ["../../base/components/gpu/v1"]},
        {"images": [{"name": "a", "newName": "b"}]},
        {"patches": [{"patch": "[]"}]},
        {"namePrefix": "a-"},
        {"nameSuffix": "-a"},
        {"commonMetadata": {"labels": {"kueue.x-k8s.io/queue-name": "other"}}},
        {"decryption": {"provider": "sops"}},
        {"healthChecks": []},
        {"a key that Flux will know one day": True},
        {"postBuild": {"substitute": {"a": "b"}}},
        {"kubeConfig": {"secretRef": {"name": "x"}}},
        {"targetNamespace": "kube-system"},
        {"sourceRef": {"kind": "GitRepository", "name": "sweeps", "namespace": "flux-system"}},
        {"sourceRef": {"kind": "OCIRepository", "name": "sweeps"}},
    )
    for change in changes:
        assert refusals(policy, {**batch, "spec": {**batch["spec"], **change}}), change
    allowed: tuple[dict[str, Any], ...] = ({"force": False}, {"deletionPolicy": "Delete"}, {"suspend": True})
    for change in allowed:
        assert refusals(policy, {**batch, "spec": {**batch["spec"], **change}}) == set(), change
    for key in ("serviceAccountName", "prune", "path"):
        bare = {name: value for name, value in batch["spec"].items() if name != key}
        assert refusals(policy, {**batch, "spec": bare}), key
    called_like_the_root = {**batch, "metadata": {**batch["metadata"], "name": "sweeps"}}
    assert refusals(
        policy, {**called_like_the_root, "spec": {**batch["spec"], "path": "./overlays/active/sweeps"}}
    )


def test_policies_bind_to_the_namespace_of_the_trials_and_deny() -> None:
    tree = a_platform(with_keys(PLATFORM_SETTINGS, controller=Controller.ARGOCD))

    name = "research-trials"
    policy, binding = (the(f"ValidatingAdmissionPolicy{kind}", name, tree) for kind in ("", "Binding"))
    assert policy["spec"]["failurePolicy"] == "Fail"
    assert [
        (rule["resources"], rule["operations"])
        for rule in policy["spec"]["matchConstraints"]["resourceRules"]
    ] == [(resources, ["CREATE", "UPDATE"]) for resources in (["jobs"], ["pods", "pods/ephemeralcontainers"])]
    assert binding["spec"] == {
        "policyName": name,
        "validationActions": ["Deny"],
        "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "research"}}},
    }


def test_a_plain_trial_is_not_let_among_the_pods_of_distributed_ones(tmp_path: Path) -> None:
    made = built(a_batch(sweep=a_full_sweep(), image=IMAGE), tmp_path, FULL_SETTINGS)
    job = next(manifest for manifest in made if manifest["kind"] == "Job")
    policy = trial_policy(shapes=DISTRIBUTED)
    labelled = deepcopy(job)
    labelled["spec"]["template"]["metadata"]["labels"]["sweepledger.dev/egress-peers"] = "true"
    owned = deepcopy(labelled)
    owned["metadata"]["ownerReferences"] = controlled_by("JobSet", "x")

    refused = "only pods of distributed trials reach each other"
    assert refused in str(refusals(policy, labelled))
    assert refused not in str(refusals(policy, job) | refusals(policy, owned))


def test_a_team_has_at_most_40_rules() -> None:
    policies = [yaml.load_all(path.read_bytes())[0] for path in ADMISSION.iterdir()]

    assert sum(len(policy["spec"]["validations"]) for policy in policies) <= MOST_RULES


MOST_RULES = 40
"""The server evaluates each for every object that a policy is for."""
ADMISSION = Path(__file__).parents[2] / "base/platform/admission/v1"
CONSTANTS = (
    *(names.HOOKS, names.DEVICES, names.INTERPRETER, str(names.LONGEST_INTERPRETER), *names.WRITABLE_FOLDERS),
    *(kubernetes.RECORD_FINALIZER, kubernetes.TRIAL_ACCOUNT, kubernetes.PARENT_PATH, kubernetes.RESULTS_PATH),
    *(kubernetes.QUEUE_LABEL, kubernetes.BATCH_LABEL, kubernetes.SWEEP_LABEL, kubernetes.EGRESS_LABEL),
    *(helper_pods.WRITE_TEST_NAME, *helper_pods.WRITE_TEST_COMMAND, *helper_pods.STORE_TEST_COMMAND),
    *(helper_pods.READER_NAME, "sleep", str(helper_pods.READER_SECONDS), kubernetes.COMPONENT_LABEL),
    *(kubernetes.POD_SET_ANNOTATIONS, kubernetes.GPU_PRODUCT_LABEL, *LAUNCHER_PATHS),
    *(kubernetes.INDEX_VARIABLE, kubernetes.PARENT_VARIABLE, kubernetes.PARENT_ID_VARIABLE),
    *(kubernetes.RANK_VARIABLE, names.environment_name(""), launcher_map("")),
    *(kubernetes.CODE_PATH, LAUNCHER_PATHS[0].rpartition("/")[0], kubernetes.INDEX_LABEL),
    *(
        kubernetes.COMPLETION_INDEX_VARIABLE,
        f"{helper_pods.WRITE_TEST_NAME}/0",
        *(STORE_CREDENTIALS.replace("-", "(-"), STORE_SEALS.partition("-")[2]),
    ),
)


@pytest.mark.parametrize("constant", CONSTANTS)
def test_the_policy_has_the_constants_of_the_package(constant: str) -> None:
    policy = yaml.load_all((ADMISSION / "trials.yaml").read_bytes())[0]
    rules = [*policy["spec"]["variables"], *policy["spec"]["validations"]]

    assert any(constant in rule["expression"].replace("\\\\", "\\") for rule in rules)


def test_every_list_of_a_policy_has_a_value_or_a_default_that_allows_nothing() -> None:
    """Whoever adds a list to a file and forgets its value would refuse all; whoever forgets the file is told."""
    trials, network, results = IN_A_BUCKET.trials, IN_A_BUCKET.network, IN_A_BUCKET.results
    code, admission = IN_A_BUCKET.git.code, IN_A_BUCKET.admission
    bases = real_bases()
    lists = admission_lists.of_trials(trials, network, results, admission, code, None, DISTRIBUTED, (), bases)
    policy = yaml.load_all((ADMISSION / "trials.yaml").read_bytes())[0]
    empty = {one["name"] for one in policy["spec"]["variables"] if one["expression"] in {"[]", "0"}}

    assert empty == set(lists)
