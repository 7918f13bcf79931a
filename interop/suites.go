// Package interop names the suites that are run against Setpoint, so that go.mod holds what they need.
package interop

import (
	_ "k8s.io/kubernetes/test/e2e"
	_ "sigs.k8s.io/cluster-api/controllers/clustercache"
	_ "sigs.k8s.io/cluster-api/controllers/crdmigrator"
	_ "sigs.k8s.io/cluster-api/core/reconcilers/machinedeployment"
	_ "sigs.k8s.io/cluster-api/core/reconcilers/machineset"
	_ "sigs.k8s.io/controller-runtime"
)
