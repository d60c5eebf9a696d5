// Package v1alpha1 holds the kinds of the fleet.cattle.io/v1alpha1 API: what people write, what the
// hub keeps, and the words (labels, conditions, states) they share.
//
// The wire shape is a contract with Rancher Fleet: names, types and defaults of upstream's fields are
// kept to the letter, and fields this project adds are optional and left out when empty. The order of
// the fields of BundleDeploymentOptions and of the structs below it is part of that contract too,
// because a deployment id is a digest of their JSON (see pkg/content).
//
// Start reading with GitRepo, Bundle, BundleDeployment and Cluster. The package holds no behaviour
// beyond encoding; rules about the kinds live in pkg/bundle, pkg/target and pkg/status.
//
// +kubebuilder:object:generate=true
// +groupName=fleet.cattle.io
package v1alpha1

//go:generate go tool -modfile=../../../../hack/tools/go.mod controller-gen object:headerFile=../../../../hack/boilerplate.go.txt paths=.
//go:generate sh -c "go tool -modfile=../../../../hack/tools/go.mod controller-gen crd paths=. output:crd:stdout > ../../../../charts/fleet-crd/templates/crds.yaml"
