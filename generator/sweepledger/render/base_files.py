"""The files below `base/`: the launcher, and the components that a batch uses.

A component is a Kustomize component that adds the structure of one option to pods, equally in all shapes.
"""

from collections.abc import Mapping

from sweepledger.formats import yaml
from sweepledger.render.manifest import Manifest
from sweepledger.structs.batch import Batch
from sweepledger.structs.node_pool import GPU_RESOURCE, Pool
from sweepledger.structs.run_config import CodeMode, Shape
from sweepledger.structs.settings import CodeSource, Dataset, ResultsSettings, SeveralDatasets

PACK_FILE = "pack.py"
LAUNCHER_OBJECT = "launcher"
"""Name of the launcher's ConfigMap in its base; every overlay gives it the batch's own name."""
TO_BASE = "../../../base"
"""Path from an overlay, active or archived."""


Bases = Mapping[str, bytes]
"""The files below `base/`, which overlays fill in or refer to, by path below it, such as `launcher/v1/launch.py`."""

SHAPE_FOLDERS: Mapping[Shape, str] = {
    **{shape: f"{shape}/v1" for shape in Shape},
    Shape.INDEXED: "trial/v1",
}
"""The folder below `base/` that batches of each shape build on."""

CLONE = "components/clone/v1"
CLONE_CREDENTIALS = "components/clone-credentials/v1"
PACK = "components/pack/v1"


def components_of(
    batch: Batch,
    pool: Pool | None,
    data: Dataset | SeveralDatasets | None,
    results: ResultsSettings,
    code: CodeSource | None,
) -> tuple[str, ...]:
    """Return the components that a batch uses, as sorted folders below `base/`."""
    run = batch.run
    clones = run.code_mode is CodeMode.CLONE
    switches = {
        "components/gpu/v1": run.resources.gpu > 0 and (pool is None or pool.gpu_resource == GPU_RESOURCE),
        "components/shared-memory/v1": run.resources.shared_memory is not None,
        "components/data/v1": isinstance(data, Dataset) and not data.copied_from,
        "components/data-copy/v1": data is not None and bool(data.copied_from),
        "components/checkpoints/v1": results.checkpoints is not None,
        "components/artifacts/v1": results.artifacts is not None,
        results.store.facts.component: bool(results.store.facts.component),
        CLONE: clones,
        PACK: run.pack is not None,
        CLONE_CREDENTIALS: clones and code is not None and code.secret is not None,
        # Whatever scales the nodes of a pool would else move a trial that has run for hours. Not on spot nodes:
        # there it would keep Karpenter from draining a node that the provider takes away.
        "components/steady/v1": pool is not None and not pool.spot,
    }
    return tuple(sorted(name for name, is_on in switches.items() if is_on))


def component_patch(bases: Bases, name: str) -> Manifest:
    """Return the partial pod template that a component adds."""
    template: Manifest = yaml.load(bases[f"{name}/patch.yaml"])["spec"]["template"]
    return template
