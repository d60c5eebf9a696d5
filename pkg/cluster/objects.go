package cluster

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/names"
)

const (
	// AgentClusterRole is what an agent may do in its namespace on the hub. It comes with the hub's chart.
	AgentClusterRole = "fleet-bundle-deployment"
	// ContentClusterRole is reading contents by name. It comes with the hub's chart.
	ContentClusterRole = "fleet-content"
	// DefaultSystemNamespace is where hub and agent run unless told otherwise.
	DefaultSystemNamespace = "cattle-fleet-system"
	// LeaseName is the lease an agent renews in its cluster's namespace on the hub.
	LeaseName = "fleet-agent"

	agentBinding = "fleet-agent"
)

// managed returns the labels of everything the engine makes and may remove.
func managed() map[string]string { return map[string]string{fleet.ManagedLabel: "true"} }

// Namespace returns the namespace on the hub that belongs to a cluster.
func Namespace(cluster *fleet.Cluster) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name:   names.ClusterNamespace(cluster.Namespace, cluster.Name),
		Labels: managed(),
		Annotations: map[string]string{
			fleet.ClusterAnnotation:          cluster.Name,
			fleet.ClusterNamespaceAnnotation: cluster.Namespace,
		},
	}}
}

// ReadyNamespace returns the namespace of a Cluster once the hub has made it, and "" before. It is in the
// status for people and agents to read; upstream's agents may write there, so that nothing but the one
// namespace that can be the Cluster's is believed.
func ReadyNamespace(cluster *fleet.Cluster) string {
	if own := names.ClusterNamespace(cluster.Namespace, cluster.Name); cluster.Status.Namespace == own {
		return own
	}
	return ""
}

// AgentBinding returns the binding by which the certificates of a cluster's agents get their rights,
// in the cluster's namespace and nowhere else.
func AgentBinding(clusterNamespace string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: clusterNamespace, Name: agentBinding, Labels: managed()},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: AgentClusterRole},
		Subjects: []rbacv1.Subject{{
			APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: names.AgentGroup(clusterNamespace),
		}},
	}
}

// Lease returns the lease by which a cluster's agents tell that they are there. The hub makes it, so that
// agents need no right to make leases; what is in it is theirs.
func Lease(clusterNamespace string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: clusterNamespace, Name: LeaseName}}
}

// Owns says whether a namespace on the hub is this Cluster's: it has the name and tells the owner.
func Owns(cluster *fleet.Cluster, namespace *corev1.Namespace) bool {
	clusterNamespace, clusterName, ok := OwnerOf(namespace)
	return ok && clusterNamespace == cluster.Namespace && clusterName == cluster.Name
}

// OwnerOf returns the namespace and name of the Cluster that a namespace says it belongs to. ok is
// false for a namespace that is not exactly the one Namespace makes for that Cluster, whatever it says.
func OwnerOf(namespace *corev1.Namespace) (clusterNamespace, clusterName string, ok bool) {
	clusterNamespace = namespace.Annotations[fleet.ClusterNamespaceAnnotation]
	clusterName = namespace.Annotations[fleet.ClusterAnnotation]
	ok = clusterName != "" && clusterNamespace != "" &&
		namespace.Name == names.ClusterNamespace(clusterNamespace, clusterName)
	return clusterNamespace, clusterName, ok
}
