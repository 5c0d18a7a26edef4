"""The options of a batch that add structure to its pods: components, described once for all shapes."""

from generator.formats import yaml
from generator.render.bases import Bases
from generator.render.pod import Manifest
from generator.structs.batch import Batch
from generator.structs.settings import GPU, Settings
from generator.structs.sweep import CodeMode

GPUS = "components/gpu/v1"
SHARED_MEMORY = "components/shared-memory/v1"
DATA = "components/data/v1"
CHECKPOINTS = "components/checkpoints/v1"
ARTIFACTS = "components/artifacts/v1"
CLONE = "components/clone/v1"
CREDENTIALS = "components/clone-credentials/v1"
STEADY = "components/steady/v1"


def chosen(batch: Batch, settings: Settings) -> tuple[str, ...]:
    """Name the components that a batch switches on, as folders below `base/`, in order."""
    run = batch.run
    clones = run.code_mode is CodeMode.CLONE
    pool = settings.pools.get(run.pool or "")
    switches = {
        GPUS: run.resources.gpu > 0 and (pool is None or pool.gpu_resource == GPU),
        SHARED_MEMORY: run.resources.shared_memory is not None,
        DATA: batch.program.data is not None,
        CHECKPOINTS: settings.results.checkpoints is not None,
        ARTIFACTS: settings.results.artifacts is not None,
        CLONE: clones,
        CREDENTIALS: clones and settings.code is not None and settings.code.secret is not None,
        # Whatever scales the nodes of a pool would else move a trial that has run for hours.
        STEADY: pool is not None,
    }
    return tuple(sorted(name for name, is_on in switches.items() if is_on))


def patch(bases: Bases, name: str) -> Manifest:
    """Give what a component adds, as a partial pod template."""
    template: Manifest = yaml.load(bases.files[f"{name}/patch.yaml"])["spec"]["template"]
    return template
