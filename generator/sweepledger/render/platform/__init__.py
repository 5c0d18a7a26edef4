"""What a cluster needs besides the batches: `clusters/`, data, one module a subject."""

from sweepledger.render.platform import manual_setup
from sweepledger.render.platform.admission import owner_policy_name
from sweepledger.render.platform.manual_setup import (
    RequiredObject,
    RequiredSecret,
    codeowners,
    key_pair_commands,
    required_objects,
    required_secrets,
    results_folder_commands,
)
from sweepledger.render.platform.network import ports_to_anywhere
from sweepledger.render.platform.objects import BANNER, CLUSTERS, Names, patches_folder, platform_folder
from sweepledger.render.platform.source import GitSource, url_fault
from sweepledger.render.platform.team import SIGNING_KEY
from sweepledger.render.platform.tree import REMOTE, platform_tree
from sweepledger.structs.kubernetes import COLLECTOR_ACCOUNT
