// The newest release of a kind whose oldest supported one stands in ../crds; one module has one version of each.
module sweepledger.dev/tests/cluster/tools/crds-newest

go 1.26.0

require github.com/kubeflow/trainer/v2 v2.3.0
