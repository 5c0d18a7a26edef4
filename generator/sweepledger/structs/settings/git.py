"""What the settings say about git: the branch that the cluster follows, its reviews, and where pods clone code."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from sweepledger.model import forms


class GenerateMode(StrEnum):
    """When the overlay of a batch is written."""

    IN_PULL_REQUEST = "in-pull-request"
    ON_MERGE = "on-merge"


class NextRoundMode(StrEnum):
    """Who adds the next round of a search when the previous one is recorded."""

    REVIEW = "review"
    """The author, with `sweep cluster next` and one pull request per round."""
    WORKFLOW = "workflow"
    """A workflow on the branch, with `sweep cluster next --push`."""
    COLLECTOR = "collector"
    """The commit that records a round also adds the next."""


@dataclass(frozen=True, slots=True)
class CodeSource:
    """Where an init container fetches the locked code, if the image does not contain it."""

    url: Annotated[forms.CodeUrl, Meta(examples=["https://git.example.org/team/sweeps.git"])]
    """Address of the repository, https and without credentials."""
    image: Annotated[forms.Reference, Meta(examples=["git"])]
    """Name of an image with git, among `images`."""
    secret: Annotated[forms.Name | None, Meta(examples=["code-read"])] = None
    """Kubernetes Secret with `username` and `password`, for a private repository."""


@dataclass(frozen=True, slots=True)
class GitSettings:
    """The branch that the cluster follows, and how changes reach it."""

    branch: Annotated[forms.BranchName, Meta(examples=["main"])] = "main"
    """Branch that the cluster follows and that results are committed to."""
    repository: Annotated[
        str | None, Meta(max_length=2000, examples=["https://git.example/team/sweeps.git"])
    ] = None
    """Address from which the cluster fetches this repository; the files in clusters/ may name no other."""
    generate: Annotated[GenerateMode, Meta(examples=["on-merge"])] = GenerateMode.IN_PULL_REQUEST
    """When the overlay of a spec is generated: in its pull request, or by a workflow after the merge."""
    next: Annotated[NextRoundMode, Meta(examples=["collector"])] = NextRoundMode.REVIEW
    """What requests the next round of an adaptive search: a user in a pull request, a workflow, or the collector with
    the results."""
    code: CodeSource | None = None
    """The repository from which the init container of a trial with `run.code.mode: clone` gets the locked code."""
    signers: Annotated[
        tuple[forms.Signer, ...],
        Meta(
            max_length=100,
            examples=[
                [
                    "ops@example.org ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
                ]
            ],
        ),
    ] = ()
    """Lines of git's allowed signers file: the keys whose signed commits may change results and archived batches
    manually."""
