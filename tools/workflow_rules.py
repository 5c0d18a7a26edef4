"""What each workflow may ask for, a line a job: rights, triggers, actions, expressions, commands."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

ACTIONS = {
    "actions/attest": (
        "1e69f48acb82d1966a394da916b4c1698aa569d6",
        "v4.2.2",
        {"subject-path", "subject-checksums", "sbom-path"},
    ),
    "actions/checkout": (
        "de0fac2e4500dabe0009e67214ff5f5447ce83dd",
        "v6.0.2",
        {"ref", "path", "fetch-depth", "persist-credentials"},
    ),
    "actions/deploy-pages": ("d6db90164ac5ed86f2b6aed7e0febac5b3c0c03e", "v4.0.5", set()),
    "actions/download-artifact": ("3e5f45b2cfb9172054b4087a40e8e0b5a5461e7c", "v8.0.1", {"name", "path"}),
    "actions/setup-go": ("4a3601121dd01d1626a1e23e37211e3254c1c06c", "v6.4.0", {"go-version", "cache"}),
    "actions/setup-python": ("a309ff8b426b58ec0e2a45f0f869d46889d02405", "v6.2.0", {"python-version"}),
    "actions/upload-artifact": (
        "043fb46d1a93c77aae656e7c1c64a875d1fc6a0a",
        "v7.0.1",
        {"name", "path", "if-no-files-found", "retention-days"},
    ),
    "actions/upload-pages-artifact": ("7b1f4a764d45c48632c6b24a0339c27f5614fb0b", "v4.0.0", {"path"}),
    "pypa/gh-action-pypi-publish": ("ed0c53931b1dc9bd32cbe73a98c7f6766f8a527e", "v1.13.0", set()),
}
"""Commit, version, and what may be said to it: no token, no cache, no submodules."""

GROUP = "github.event.merge_group.base_sha"
TRUSTED = f"{GROUP} || 'main'"
BASE = f"{GROUP} || github.event.pull_request.base.ref == 'main' && 'HEAD^1' || 'origin/main'"
READ = MappingProxyType({"contents": "read"})
THIS_MONTH = ' --month "$(date -u +%Y-%m)"'
"""The one command that may stand within another: a base that nobody merges upon stays in its own month."""
HELPER = r' "!f() { echo username=x-access-token; echo \"password=\$GH_TOKEN\"; }; f"'
"""The program by which git asks for a credential, of one server: it has the token only where a step has it."""
SWEEP = ("sweep", "../trusted/.venv/bin/sweep", ".venv/bin/sweep")


@dataclass(frozen=True)
class Allowed:
    """What a workflow may ask for."""

    triggers: frozenset[str]
    permissions: Mapping[str, Mapping[str, str]]
    """Of each job."""
    expressions: frozenset[str]
    commands: tuple[str, ...]
    """How a step may begin."""
    environments: Mapping[str, str] = field(default_factory=dict)
    runners: Mapping[str, str] = field(default_factory=dict)
    """Of the jobs that test another system."""
    references: frozenset[str] = frozenset()
    """What a checkout may name; it names nothing otherwise."""


INSTALL = (
    "make -C trusted sweep",
    "python3 -I -m pip install --require-hashes --requirement trusted/.github/sweep.lock",
)
BUILD_PAGES = ("make docs", *(f"{sweep} site --out" for sweep in SWEEP))
LOGIN = '--username "$GITHUB_ACTOR" --password-stdin ghcr.io <<< "$TOKEN"'
RULES = {
    "check.yaml": Allowed(
        frozenset({"pull_request", "merge_group"}),
        {"check": READ},
        frozenset({"github.ref", BASE, TRUSTED, "!cancelled()"}),
        (
            *INSTALL,
            *(
                f'{sweep} {verb} --base "$BASE"{THIS_MONTH}'
                for sweep in SWEEP[:2]
                for verb in ("check", "plan")
            ),
        ),
        references=frozenset({f"${{{{ {TRUSTED} }}}}"}),
    ),
    "results.yaml": Allowed(
        frozenset({"push"}),
        {"verify": READ},
        frozenset({"github.sha", "github.ref == 'refs/heads/main' && github.event.before || 'origin/main'"}),
        (*INSTALL, *(f"{sweep} verify --since" for sweep in SWEEP[:2])),
        references=frozenset({"main"}),
    ),
    "generate.yaml": Allowed(
        frozenset({"push"}),
        {"generate": READ},
        frozenset({"secrets.GENERATE_TOKEN"}),
        (
            *INSTALL,
            f'git config --global "credential.$GITHUB_SERVER_URL.helper"{HELPER}',
            "sweep generate --push",
            ".venv/bin/sweep generate --push",
        ),
        environments={"generate": "generate"},
    ),
    "next.yaml": Allowed(
        frozenset({"push"}),
        {"next": READ},
        frozenset({"secrets.GENERATE_TOKEN"}),
        (
            *INSTALL,
            f'git config --global "credential.$GITHUB_SERVER_URL.helper"{HELPER}',
            "sweep cluster next --push",
        ),
        environments={"next": "generate"},
    ),
    "site.yaml": Allowed(
        frozenset({"push"}),
        {"build": READ, "deploy": {"pages": "write", "id-token": "write"}},
        frozenset(),
        (*INSTALL, *BUILD_PAGES),
        environments={"deploy": "github-pages"},
    ),
    "preview.yaml": Allowed(
        frozenset({"pull_request"}),
        {"build": READ},
        frozenset({"github.ref"}),
        (*INSTALL, *BUILD_PAGES),
        references=frozenset({"main"}),
    ),
    "test.yaml": Allowed(
        frozenset({"push", "pull_request", "merge_group"}),
        {"suite": READ, "macos": READ, "workflows": READ},
        frozenset({"github.ref", "matrix.python"}),
        ("make test", "make workflows"),
        runners={"macos": "macos-15"},
    ),
    "release.yaml": Allowed(
        frozenset({"push"}),
        {"build": READ, "publish": {"id-token": "write", "attestations": "write"}},
        frozenset(),
        ('git merge-base --is-ancestor "$GITHUB_SHA" origin/main', "make dist"),
        environments={"publish": "pypi"},
    ),
    "scheduled.yaml": Allowed(
        frozenset({"schedule", "workflow_dispatch"}),
        {"audit": READ},
        frozenset({"github.token"}),
        ("make audit",),
    ),
    "image.yaml": Allowed(
        frozenset({"push"}),
        {
            "build": {"contents": "read", "packages": "write", "id-token": "write", "attestations": "write"},
            "propose": {"contents": "write", "packages": "read"},
        },
        frozenset({"matrix.image", "github.repository", "github.sha", "github.token"}),
        (
            'python3 -I tools/image.py build "$IMAGE"',
            'python3 -I tools/image.py push "$IMAGE"',
            'make "sbom/$IMAGE.json"',
            "make sweep",
            f"buildah login {LOGIN}",
            f'buildah login --authfile "$HOME/.docker/config.json" {LOGIN}',
            ".venv/bin/sweep cluster pin",
            'git switch --quiet --create "$BRANCH"',
            "git commit --quiet --message",
            "gh auth setup-git --force --hostname github.com",
            'git push --quiet origin "HEAD:refs/heads/$BRANCH"',
        ),
    ),
}
PUSHES = {
    "release.yaml": {"tags": ["v*"]},
    "results.yaml": {"branches": ["main", "results/**"], "paths": ["results/**", "overlays/**"]},
}
"""Where a push is listened to otherwise than on main."""

KEYS = {
    "workflow": {"name", "on", "permissions", "concurrency", "defaults", "jobs"},
    "job": {
        *(
            "name",
            "runs-on",
            "timeout-minutes",
            "permissions",
            "env",
            "steps",
            "needs",
            "environment",
            "strategy",
        ),
    },
    "step": {"name", "uses", "with", "run", "env", "if", "working-directory", "continue-on-error"},
}
RUNNER = "ubuntu-24.04"
LONGEST_MINUTES = 120
