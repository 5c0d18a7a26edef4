"""`sweep site --serve`: the site of a branch on this machine, built again when the branch moves, and what runs now."""

from pathlib import Path

from sweepledger.commands.reports import running
from sweepledger.commands.reports.loopback import LoopbackServer, ServedFile
from sweepledger.commands.reports.site import COMPARE, HOME, PAGE, site
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.engine.cluster.kubectl import Kubectl
from sweepledger.errors import UsageError
from sweepledger.repo import files
from sweepledger.site import RUNNING_DATA, RUNNING_PAGE, running_page, to_json, with_running_link


class SiteServer:
    """Answers with the pages of a branch's newest commit, which it builds when the branch has moved."""

    def __init__(
        self, workspace: Workspace, out: Path, revision: str, *, state: Path, kubectl: Kubectl | None = None
    ) -> None:
        self._workspace = workspace
        self._out = out
        self._revision = revision
        self._state = state
        self._kubectl = kubectl
        self._built = ""

    def listen(self, port: int) -> LoopbackServer:
        """Build the site, and return a server of it. Raises as `site` does, and UsageError for a used port."""
        self._follow()
        return LoopbackServer(self.answer, port)

    def answer(self, path: str) -> ServedFile | None:
        """Return a page, or what runs now as JSON. Raises GeneratorError."""
        name = path.removeprefix("/") or HOME
        if name == RUNNING_PAGE:
            return ServedFile(running_page())
        if name == RUNNING_DATA:
            return ServedFile(self._running(), "application/json")
        if name not in {HOME, COMPARE} and not PAGE.fullmatch(name):
            return None
        self._follow()
        if name not in files.list_folder(self._out):
            return None
        content = files.read_file(self._out / name)
        if name.endswith(".html"):
            return ServedFile(with_running_link(content))
        return ServedFile(content, "application/json")

    def _commit(self) -> str:
        commit = self._workspace.repository.commit(self._revision)
        if commit is None:
            raise UsageError(f"{self._revision!r} is not a commit", hint="try a branch, a tag or HEAD~1")
        return commit

    def _follow(self) -> None:
        """Build the site if the branch has moved."""
        commit = self._commit()
        if commit != self._built:
            site(self._workspace, self._out, commit)
            self._built = commit

    def _running(self) -> bytes:
        commit = self._commit()
        active = running.running_batches(self._workspace, commit, state=self._state, kubectl=self._kubectl)
        return to_json({"commit": commit, "batches": [batch.as_data() for batch in active]})
