// Only files of this module are read, none is compiled: the CRD of the requests that Kueue makes of an autoscaler.
module sweepledger.dev/tests/cluster/tools/crds-autoscaler

go 1.26.0

require k8s.io/autoscaler/cluster-autoscaler/apis v0.0.0-20240830133931-adfbe7e45277
