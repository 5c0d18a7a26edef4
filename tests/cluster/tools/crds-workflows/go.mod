// What Workflows are checked with that `sweep export argo` writes.
module sweepledger.dev/tests/cluster/tools/crds-workflows

go 1.26.0

require github.com/argoproj/argo-workflows/v3 v3.7.2
