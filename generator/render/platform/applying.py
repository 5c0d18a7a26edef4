"""The commands that bring the platform into a cluster, one a folder: kubectl takes no two at once."""

from generator.structs.settings import Controller, Settings

APPLY = "kubectl apply --server-side"


def of_platform(settings: Settings) -> str:
    """Give the command that applies `clusters/platform`.

    What two managers own stays in the cluster when one takes it out of git: Argo CD is to be the only one.
    """
    is_argocd = settings.controller is Controller.ARGOCD
    return f"{APPLY}{' --field-manager=argocd-controller' if is_argocd else ''} -k clusters/platform"


def of_controller(settings: Settings) -> str:
    """Give the command that applies what the controller itself reads.

    Argo CD writes into its own ApplicationSet, which a second apply would call a conflict.
    """
    is_argocd = settings.controller is Controller.ARGOCD
    again = " --force-conflicts" if is_argocd else ""
    return f"{APPLY}{again} -k clusters/{settings.controller.value}"
