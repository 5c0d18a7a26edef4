// Only files of these modules are read, none is compiled: the CRDs of the kinds that this project writes.
module sweepledger.dev/tests/cluster/tools/crds

go 1.26.0

require (
	github.com/argoproj/argo-cd/v3 v3.2.11
	github.com/fluxcd/kustomize-controller v1.9.5
	github.com/fluxcd/notification-controller v1.9.3
	github.com/fluxcd/source-controller v1.9.3
	github.com/kubeflow/mpi-operator v0.6.0
	github.com/kubeflow/trainer/v2 v2.0.0
	github.com/kubeflow/training-operator v1.9.3
	sigs.k8s.io/jobset v0.10.1
	sigs.k8s.io/kueue v0.15.0
)
