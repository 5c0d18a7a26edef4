"""The GitOps controllers: one module for each, and the table of their names in the settings."""

from collections.abc import Mapping

from sweepledger.controllers import argocd, flux
from sweepledger.controllers.controller import GitOps
from sweepledger.structs.platform import GitSource, Names, RequiredSecret
from sweepledger.structs.settings import PlatformSettings

MODULES = (argocd, flux)
GITOPS: Mapping[str, GitOps] = {module.CONTROLLER.name: module.CONTROLLER for module in MODULES}
"""What each `controller:` of the settings is that follows the branch; the others are a user's own hands."""


def secrets(names: Names, platform: PlatformSettings, source: GitSource) -> tuple[RequiredSecret, ...]:
    """Return the Secrets that the controller of the settings reads."""
    own = GITOPS.get(platform.controller)
    return tuple(own.secrets(names, platform, source)) if own else ()
