"""The page on trying a cluster, and the tutorial as it says to follow it there, typed word by word."""

import re
import sys
from pathlib import Path

from tests.cluster.apiserver import kubectl
from tests.cluster.children import until
from tests.e2e.founding import Ground
from tests.e2e.team import PATIENCE, REPOSITORY, Team
from tests.e2e.watching import Watch
from tests.pages import DOCS, Person, page_steps

PAGE, TUTORIAL = "try-a-cluster.md", "first-sweep.md"
VIRTUAL = re.compile(r"^python3 -I -m (?:venv|pip) .*\n", re.MULTILINE)
FOR_ARGO_CD = re.compile(r"^kubectl .*# Argo CD: (?P<instead>.*)$", re.MULTILINE)
WATCHED = re.compile(r"^(?P<command>kubectl .* --watch) .*# Ctrl-C .*$", re.MULTILINE)
LOOKED_AT = r"timeout --signal=INT 5 \g<command> || test $? = 124"
CODE, CLONED = "code: {path: code}", "code: {path: code, mode: clone}"


def sections(page: str) -> dict[str, str]:
    """Give what a page says to type, by the remark before it."""
    results, remark = dict[str, str](), ""
    for text, happens in page_steps(page):
        remark = happens or remark
        results[remark] = results.get(remark, "") + text
    return results


def test_the_page_on_clusters_and_the_tutorial_lead_to_results(team: Team, ground: Ground) -> None:
    team.until_idle()
    team.pull()
    page, tutorial = sections(PAGE), sections(TUTORIAL)
    assert "Omit the two lines of the virtual environment" in (DOCS / PAGE).read_text()
    assert f"write `{CLONED}`" in (DOCS / TUTORIAL).read_text()
    ana = person(team)

    ana.type(shown(page["in the team's clone"], team.controller))
    first = team.batch("first")
    ana.type(page["a fork is made"])
    ana.type(VIRTUAL.sub("", tutorial[""]).replace(CODE, CLONED))
    team.until_recorded(first)  # else the collector may push between the reviewer's pull and push
    ana.type(page["the reviewer merges"])
    width = team.batch("width")
    Watch(team, ground.storage.results).until_over(width)
    team.collect()  # the clock's own would do, up to a minute later
    team.until_recorded(width)
    until("the Jobs are gone", lambda: not [*team.jobs(first), *team.jobs(width)], seconds=PATIENCE)
    ana.type(f"cd ~/team\n{page['first is recorded']}cd ~/first\n")
    ana.type(tutorial["back in your clone"])

    assert "results(first): 3/3 trials, best score 3" in team.git("log", "--format=%s", "origin/main")
    assert "results(width): 6/6 trials, best score 0.9" in team.git("log", "--format=%s", "origin/main")
    assert f"{width.name}: 6 trials" in ana.output


def shown(text: str, controller: str) -> str:
    """Choose the words for a controller, and end by a clock what a person ends by Ctrl-C."""
    chosen = FOR_ARGO_CD.sub(r"\g<instead>", text) if controller == "argocd" else text
    return WATCHED.sub(LOOKED_AT, chosen)


def person(team: Team) -> Person:
    """Somebody in the shell of `make cluster-shell`."""
    environment = team.environment()
    environment["PATH"] = f"{Path(sys.executable).parent}:{Path(kubectl()).parent}:{environment['PATH']}"
    return Person(team.root, environment, {"TEAM": team.forge.url(REPOSITORY), "FORK": "~/fork.git"})
