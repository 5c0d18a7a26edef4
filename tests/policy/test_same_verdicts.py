"""What `sweep check` says of mutated Jobs and pods is what a real API server says, by the same policy.

`judged_mutants.json` has what a server said of the first of them; `--update-golden` writes it anew.
"""

import json
import random
import re
import uuid
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from sweepledger.contract import Policy, kubernetes_schemas
from sweepledger.contract.rendered_objects import without_path
from sweepledger.render.scheduling import REQUIRED_TOPOLOGY
from tests.attacks.test_past_git import POD_ATTACKS
from tests.cluster.apiserver import Server
from tests.cluster.judging import judged
from tests.manifests import controlled_by, manifest
from tests.render.building import built
from tests.render.platforms import DISTRIBUTED, PLATFORM_SETTINGS, a_platform, a_source, the
from tests.render.pod_faults import LABEL_FAULTS, POD_FAULTS, Change
from tests.render.test_bucket_store import FAULTS as STORE_FAULTS
from tests.render.test_bucket_store import SETTINGS as IN_A_BUCKET
from tests.sweeps import FULL_SETTINGS, a_batch, a_full_sweep, with_keys

Manifest = dict[str, Any]
Seeds = tuple[Manifest, ...]
IMAGE = "registry.example.org/team/trainer@sha256:" + "a" * 64
RECORDED, ALL = 300, 2000
VERDICTS = Path(__file__).parent / "judged_mutants.json"
ADMITTED, INVALID = "admitted", "invalid"
"""What is said of a mutant that no rule refuses: by the policy; by the server's own validation or a schema."""
DENIED = re.compile(r"denied request: (?P<rule>expression '.+' resulted in error: .+|.+?(?= \[[a-z-]+\]))")
"""What a server says against an object: the message of a rule, or that a rule cannot be evaluated."""
JOB_FAULTS: tuple[Change, ...] = (
    lambda job: job["spec"].update(ttlSecondsAfterFinished=60),
    lambda job: job["spec"].update(parallelism=job["spec"]["completions"] + 1),
    lambda job: job["metadata"].update(generateName="x-"),
    lambda job: job["metadata"].update(labels={}),
    lambda job: job["metadata"]["labels"].update({"kueue.x-k8s.io/queue-name": "other"}),
    lambda job: job["spec"]["template"]["metadata"].update(finalizers=["example.org/never"]),
    lambda job: job["spec"]["template"]["metadata"].update(annotations={REQUIRED_TOPOLOGY: "rack"}),
)
MAKERS = ("Job", "JobSet", None)
"""Kinds whose controllers made the pods; a JobSet's are judged like anybody's."""
VALUES: tuple[Any, ...] = ("", "x", "other/0", 0, 1, True, False, [], {}, ["sh"], "/sweep/results/python3")


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> Seeds:
    """A Job with every option, and one with the sidecar of a bucket."""
    jobs = []
    for pool, settings in (("queued", FULL_SETTINGS), ("chosen", IN_A_BUCKET)):
        batch = a_batch(sweep=a_full_sweep(pool), image=IMAGE)
        made = built(batch, tmp_path_factory.mktemp(pool), settings)
        jobs.append(next(item for item in made if item["kind"] == "Job"))
    return tuple(jobs)


def policies(kind: str = "ValidatingAdmissionPolicy", start: str = "mutants") -> list[Manifest]:
    """Return the policy for each seed, or its binding."""
    made = []
    for number, settings in enumerate((PLATFORM_SETTINGS, IN_A_BUCKET)):
        name = f"{start}-{number}"
        tree = a_platform(with_keys(settings, namespace=name), a_source(shapes=DISTRIBUTED))
        made.append(the(kind, f"{name}-trials", tree))
    return made


def seed_of(number: int) -> int:
    """Return the seed of a mutant."""
    return int(number % 4 == 0)


def mutants(seeds: Seeds, count: int, start: str = "mutants") -> Iterator[Manifest]:
    """Yield Jobs and pods with one to three changes, each by its number alone."""
    for number in range(count):
        chance = random.Random(number)  # noqa: S311 - a test
        made, faults = deepcopy(seeds[seed_of(number)]), [*POD_FAULTS.values(), *POD_ATTACKS.values()]
        faults = [*STORE_FAULTS.values()] if seed_of(number) else faults
        for _ in range(chance.choice((1, 1, 2, 3))):
            made = mutated(chance, made, faults)
        batch = made["metadata"]["name"]
        metadata: Manifest = {"name": f"{batch}-t{number:011x}"}
        if chance.random() < 0.5 and isinstance(template := made["spec"].get("template"), dict):
            made = {"apiVersion": "v1", "kind": "Pod", **template}
            maker = MAKERS[number % len(MAKERS)]
            metadata |= {"ownerReferences": controlled_by(maker, batch)} if maker else {}
        made["metadata"] = {
            **(made.get("metadata") or {}),
            **metadata,
            "namespace": f"{start}-{seed_of(number)}",
        }
        yield made


def mutated(chance: random.Random, job: Manifest, faults: list[tuple[str, Change]]) -> Manifest:
    """Return a Job with a known fault, without a key, with a key of another place, or with another value."""
    made = deepcopy(job)
    template = made["spec"].get("template") or {}
    choice = chance.random()
    try:
        if choice < 0.1:
            chance.choice(JOB_FAULTS)(made)
            return made
        if choice < 0.35:
            chance.choice(faults)[1](template["spec"])
            return made
        if choice < 0.45:
            template["metadata"]["labels"] |= chance.choice([*LABEL_FAULTS.values()])[1]
            return made
    except (LookupError, TypeError, ValueError):  # of a part that an earlier change took away
        return job
    places = [path for path in paths(made["spec"], ("spec",)) if path != ("spec", "template")]
    place = chance.choice(places)
    if choice < 0.65:
        return dict(without_path(made, place))
    above: Any = made
    for key in place[:-1]:
        above = above[key]
    donors = [path for path in places if path[-1] == place[-1]] if choice < 0.85 else []
    value: Any = made
    for key in chance.choice(donors) if donors else ():
        value = value[key]
    above[place[-1]] = deepcopy(value) if donors else chance.choice(VALUES)
    return made


def paths(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in pairs:
        yield (*path, key)
        yield from paths(below, (*path, key))


def verdicts_offline(seeds: Seeds, count: int) -> list[str]:
    judges = [*map(Policy, policies())]
    return [offline(judges[seed_of(number)], mutant) for number, mutant in enumerate(mutants(seeds, count))]


def offline(judge: Policy, mutant: Manifest) -> str:
    """Return the first rule that a mutant breaks, as a server names it."""
    wrapped = mutant
    if mutant["kind"] == "Pod":
        body = {key: value for key, value in mutant.items() if key not in {"apiVersion", "kind"}}
        wrapped = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "x"},
            "spec": {"template": body},
        }
    if any(kubernetes_schemas.findings("batch/v1", "Job", wrapped)):
        return INVALID
    pod = wrapped["spec"]["template"].get("spec", {})
    for volume in pod.get("volumes", ()):
        if len(volume) == 1:
            volume["emptyDir"] = {}  # as the server does before it asks; a check wants a source written
    if mutant["kind"] == "Pod":  # the same: what a container requests is what it may use, unless it says so
        for container in (*pod.get("initContainers", ()), *pod.get("containers", ())):
            resources = container.get("resources") or {}
            if limits := resources.get("limits"):
                resources["requests"] = limits | (resources.get("requests") or {})
    broken = judge.broken(mutant)
    return judge.rules[broken[0]] if broken else ADMITTED


def agree(said: str, server: str) -> bool:
    """Tell whether verdicts are equal, as far as the server, which validates first, comes to the rules."""
    return said == server or INVALID in {said, server}


@pytest.fixture(scope="module")
def verdicts(seeds: Seeds, apiserver: Server, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What a server with the policies says of all mutants."""
    start = f"mutants-{uuid.uuid4().hex[:8]}"
    bindings = policies("ValidatingAdmissionPolicyBinding", start)
    objects = [*policies(start=start), *bindings]
    for number, binding in enumerate(bindings):
        labels = binding["spec"]["matchResources"]["namespaceSelector"]["matchLabels"]
        metadata = {"name": f"{start}-{number}", "labels": labels}
        apiserver.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        accounts = ("default", "sweep-trial", "trainer")
        apiserver.apply(*(manifest("ServiceAccount", each, f"{start}-{number}") for each in accounts))
    # Where other tests have applied such classes, the server comes to the rules, and elsewhere not. None can change.
    classes = [the("PriorityClass", "batch", a_platform())]
    classes += [manifest("PriorityClass", "low", api="scheduling.k8s.io/v1", value=1)]
    classes += [manifest("RuntimeClass", "nvidia", api="node.k8s.io/v1", handler="nvidia")]
    apiserver.apply(*classes, *objects)
    apiserver.until_in_force()
    folder = tmp_path_factory.mktemp("mutants")
    for number, mutant in enumerate(mutants(seeds, ALL, start)):
        (folder / f"{number}.json").write_text(json.dumps(mutant))
    messages = judged(apiserver, folder).messages
    apiserver.kubectl("delete", "--wait=false", "-f", "-", given=objects)
    results = []
    for number in range(ALL):
        message = messages.get(str(number))
        denied = DENIED.search(" ".join((message or "").split()))
        results.append(denied["rule"] if denied else ADMITTED if message is None else INVALID)
    return results


def test_a_server_says_the_same_of_every_mutant(
    seeds: Seeds, verdicts: list[str], request: pytest.FixtureRequest
) -> None:
    said = verdicts_offline(seeds, ALL)
    if request.config.getoption("--update-golden"):
        VERDICTS.write_text(json.dumps(verdicts[:RECORDED], indent=0) + "\n")

    different = [(*pair, n) for n, pair in enumerate(zip(said, verdicts, strict=True)) if not agree(*pair)]
    assert different == []
    assert said.count(INVALID) <= 0.6 * ALL, "at least 40 % pass the schema"


def test_each_rule_refuses_a_mutant(seeds: Seeds) -> None:
    heard = {*verdicts_offline(seeds, ALL)}
    unheard = {*Policy(policies()[1]).rules} - heard

    assert all("that the cluster adds" in rule or "identity" in rule for rule in unheard), "of other settings"


def test_the_check_says_what_a_server_said(seeds: Seeds) -> None:
    said, recorded = verdicts_offline(seeds, RECORDED), json.loads(VERDICTS.read_text())

    assert [pair for pair in zip(said, recorded, strict=True) if not agree(*pair)] == []
    assert said.count(INVALID) <= 0.6 * RECORDED
    assert ADMITTED in said
