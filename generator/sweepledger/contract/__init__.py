"""What a batch may run: its schemas, the team's admission policies, and rules for it as a set of files."""

from sweepledger.contract.admission import Policy
from sweepledger.contract.batch import check_batch
from sweepledger.contract.kustomization import base_folders, check_kustomization
