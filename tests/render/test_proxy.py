"""Networks behind a proxy with certificates of their own: what pods are told, and who admits it."""

from pathlib import Path
from typing import Any

from sweepledger.structs.run_config import CodeMode, Shape
from sweepledger.structs.settings import Egress, Settings
from sweepledger.structs.settings.network import Authorities, ProxySettings
from tests.render.building import built, codes, job_of
from tests.render.judging import refusals
from tests.render.platforms import PLATFORM_SETTINGS, a_platform, a_source, cron_pod, the
from tests.sweeps import FULL_SETTINGS, a_batch, a_full_sweep, with_keys

IMAGE = "registry.example.org/team/trainer@sha256:" + "a" * 64
ADDRESS = "http://proxy.example.org:3128"
PROXY = Egress("proxy", ("203.0.113.9/32",), (3128,))


def behind(settings: Settings) -> Settings:
    return with_keys(
        settings,
        egress={**settings.network.egress, "proxy": PROXY},
        proxy=ProxySettings(ADDRESS, "proxy", ("10.0.0.0/8",)),
        authorities=Authorities("company-ca", "ca.crt"),
    )


BEHIND = behind(FULL_SETTINGS)


def objects(
    folder: Path, settings: Settings = BEHIND, shape: Shape = Shape.INDEXED, **run: Any
) -> tuple[Any, ...]:
    return built(a_batch(shape, sweep=a_full_sweep(**run), image=IMAGE), folder, settings)


def variables(container: dict[str, Any]) -> dict[str, str | None]:
    return {one["name"]: one.get("value") for one in container.get("env", ())}


def test_a_spec_may_say_otherwise(tmp_path: Path) -> None:
    other = {"HTTPS_PROXY": "http://other.example.org:1"}
    made = objects(tmp_path, egress=("proxy",), environment=other)

    told = variables(job_of(made)["spec"]["template"]["spec"]["containers"][0])
    assert told["HTTPS_PROXY"] == other["HTTPS_PROXY"]
    assert told["https_proxy"] == ADDRESS


def test_the_pod_that_clones_reaches_git_through_the_proxy_and_trusts_the_authorities(tmp_path: Path) -> None:
    made = objects(tmp_path, egress=(), code_mode=CodeMode.CLONE)

    template = job_of(made)["spec"]["template"]
    (clone,) = template["spec"]["initContainers"]
    assert template["metadata"]["labels"]["sweepledger.dev/egress-proxy"] == "true"
    assert variables(clone)["HTTPS_PROXY"] == ADDRESS
    assert variables(clone)["GIT_SSL_CAINFO"] == "/sweep/authorities/ca.crt"
    assert {"name": "authorities", "mountPath": "/sweep/authorities", "readOnly": True} in clone[
        "volumeMounts"
    ]
    assert codes(made, BEHIND, IMAGE) == set()


def test_the_platform_admits_them_as_the_settings_say_and_not_without(tmp_path: Path) -> None:
    job = job_of(objects(tmp_path, egress=("proxy",), code_mode=CodeMode.CLONE))
    for settings, is_admitted in ((behind(PLATFORM_SETTINGS), True), (PLATFORM_SETTINGS, False)):
        tree = a_platform(settings, a_source())
        for judged in (job, job["spec"]["template"]):
            said = refusals(the("ValidatingAdmissionPolicy", "research-trials", tree), judged)
            assert (said == set()) == is_admitted


def test_certificates_of_no_setting_are_refused_by_the_check(tmp_path: Path) -> None:
    made = objects(tmp_path, egress=())
    other = with_keys(BEHIND, authorities=Authorities("of-another", "ca.crt"))

    assert "volume-not-allowed" in codes(made, other, IMAGE)
    assert "volume-not-allowed" in codes(made, with_keys(BEHIND, authorities=None), IMAGE)


def test_the_collector_reaches_git_through_the_proxy() -> None:
    tree = a_platform(behind(PLATFORM_SETTINGS), a_source())

    pod = cron_pod("sweep-collector", tree)
    for container in (*pod["initContainers"], *pod["containers"]):
        assert variables(container)["HTTPS_PROXY"] == ADDRESS
        assert variables(container)["SSL_CERT_FILE"] == "/sweep/authorities/ca.crt"
        assert "authorities" in {one["name"] for one in container["volumeMounts"]}
    assert "authorities" in {one["name"] for one in pod["volumes"]}
    opened = [
        one["spec"]["podSelector"]["matchLabels"].get("app.kubernetes.io/component")
        for one in [the("NetworkPolicy", "allow-egress-proxy", tree, namespace="research-collector")]
    ]
    assert opened == ["sweep-collector"]
