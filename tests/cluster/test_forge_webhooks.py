"""What the git server tells others of a push: in GitHub's form, signed, and never in the way of the push."""

import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer

from tests.cluster.forge import Forge
from tests.cluster.forge_clones import DEV, REPOSITORY, Clone, head, until
from tests.cluster.forge_faults import Fault, Racing
from tests.cluster.processes import free_ports

SECRET = "of the webhook"  # noqa: S105 - between two parts of a test


@dataclass
class Ear:
    """Somebody who is told."""

    url: str
    heard: list[tuple[dict[str, str], bytes]] = field(default_factory=list)


@contextmanager
def listening(status: int = 200) -> Iterator[Ear]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            ear.heard.append(({key.lower(): value for key, value in self.headers.items()}, body))
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        ear = Ear(f"http://127.0.0.1:{server.server_port}/api/webhook")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield ear
        finally:
            server.shutdown()
            thread.join()


def test_a_push_is_told_in_githubs_form_and_signed(forge: Forge, clone: Clone) -> None:
    before = head(forge)
    clone.commit("overlays/active/läuft/job.yaml", "a\n")
    (clone.root / "sweeps/one.yaml").write_text("changed\n")
    clone.git("rm", "-q", "overlays/active/läuft/job.yaml")
    after = clone.commit("sweeps/two.yaml", "two\n")
    with listening() as ear:
        forge.webhooks(ear.url, secret=SECRET)

        assert clone.push() == ""
        until(lambda: len(ear.heard) == 1)
        until(lambda: forge.webhook_counts() == {"webhooks-delivered": 1, "webhooks-failed": 0})

    headers, body = ear.heard[0]
    document = json.loads(body)
    assert headers["x-github-event"] == "push"
    for header, digest in (("x-hub-signature", hashlib.sha1), ("x-hub-signature-256", hashlib.sha256)):
        assert headers[header].partition("=")[2] == hmac.new(SECRET.encode(), body, digest).hexdigest()
    assert (document["ref"], document["before"], document["after"]) == ("refs/heads/main", before, after)
    assert (document["created"], document["deleted"], document["forced"]) == (False, False, False)
    assert document["repository"]["html_url"] == forge.url(REPOSITORY).removesuffix(".git")
    assert document["repository"]["clone_url"] == forge.url(REPOSITORY)
    assert document["repository"]["default_branch"] == "main"
    assert document["pusher"]["name"] == DEV
    changes = [[commit[key] for key in ("added", "modified", "removed")] for commit in document["commits"]]
    assert changes == [
        [["overlays/active/läuft/job.yaml"], [], []],
        [["sweeps/two.yaml"], ["sweeps/one.yaml"], ["overlays/active/läuft/job.yaml"]],
    ]
    assert document["commits"][1]["id"] == document["head_commit"]["id"] == after


def test_new_forced_and_deleted_branches_are_told_as_such(forge: Forge, clone: Clone) -> None:
    with listening() as ear:
        forge.webhooks(ear.url)
        clone.commit("a", "a\n")
        clone.push("main:refs/heads/other")
        clone.git("commit", "-q", "--amend", "-m", "another")
        clone.push("+main:refs/heads/other")
        clone.push(":refs/heads/other")
        until(lambda: len(ear.heard) == 3)

    new, forced, deleted = (json.loads(body) for _, body in ear.heard)
    assert [new["created"], forced["forced"], deleted["deleted"]] == [True, True, True]
    assert [len(item["commits"]) for item in (new, forced, deleted)] == [1, 1, 0]
    assert [new["forced"], forced["created"], deleted["forced"]] == [False, False, False]


def test_the_first_push_of_all_is_told_with_its_commits(forge: Forge, clone: Clone) -> None:
    empty = "team/another"
    forge.create(empty)
    with listening() as ear:
        forge.webhooks(ear.url)
        clone.git("push", "-q", forge.url(empty, user=DEV), "main")
        until(lambda: len(ear.heard) == 1)

    document = json.loads(ear.heard[0][1])
    assert [commit["added"] for commit in document["commits"]] == [["sweeps/one.yaml"]]
    assert document["repository"]["full_name"] == empty


def test_a_rivals_push_is_told_and_a_lost_one_is_not(forge: Forge, clone: Clone) -> None:
    with listening() as ear:
        forge.webhooks(ear.url)
        forge.faults(Fault(Racing(), times=1))
        clone.commit("a", "a\n")
        clone.push()
        clone.catch_up()
        clone.push()
        until(lambda: len(ear.heard) == 2)

    assert [json.loads(body)["pusher"]["name"] for _, body in ear.heard] == ["rival", DEV]


def test_webhooks_that_nobody_hears_are_counted_and_keep_no_push_up(forge: Forge, clone: Clone) -> None:
    with listening(500) as ear:
        forge.webhooks(f"http://127.0.0.1:{free_ports(1)[0]}/", ear.url)
        clone.commit("a", "a\n")

        assert clone.push() == ""

        until(lambda: forge.webhook_counts()["webhooks-failed"] == 2)
    assert forge.webhook_counts()["webhooks-delivered"] == 0
