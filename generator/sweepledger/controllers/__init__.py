"""The GitOps controllers: a module each, and the table of their names in the settings."""

from collections.abc import Mapping

from sweepledger.controllers import argocd, flux
from sweepledger.controllers.controller import GitOps

MODULES = (argocd, flux)
GITOPS: Mapping[str, GitOps] = {module.CONTROLLER.name: module.CONTROLLER for module in MODULES}
"""What each `controller:` of the settings is that follows the branch; the others are a user's own hands."""
