package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of every kind in this package.
var GroupVersion = schema.GroupVersion{Group: "fleet.cattle.io", Version: "v1alpha1"}

// AddToScheme registers all kinds of this package.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&Bundle{}, &BundleList{},
		&BundleDeployment{}, &BundleDeploymentList{},
		&BundleNamespaceMapping{}, &BundleNamespaceMappingList{},
		&Cluster{}, &ClusterList{},
		&ClusterGroup{}, &ClusterGroupList{},
		&ClusterRegistration{}, &ClusterRegistrationList{},
		&ClusterRegistrationToken{}, &ClusterRegistrationTokenList{},
		&Content{}, &ContentList{},
		&GitRepo{}, &GitRepoList{},
		&GitRepoRestriction{}, &GitRepoRestrictionList{},
		&HelmOp{}, &HelmOpList{},
		&ImageScan{}, &ImageScanList{},
		&Policy{}, &PolicyList{},
		&Schedule{}, &ScheduleList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
