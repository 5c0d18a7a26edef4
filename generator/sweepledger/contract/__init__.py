"""What a batch may run: the schemas, the team's admission policies, and rules for the batch as a set of files."""

from sweepledger.contract.admission import Policy
from sweepledger.contract.batch import check_batch
from sweepledger.contract.safe_kustomization import base_folders, check_kustomization
