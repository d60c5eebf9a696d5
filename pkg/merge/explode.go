package merge

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// IsMerged says that an object carries deployments other than itself.
func IsMerged(object *fleet.BundleDeployment) bool {
	return object.Labels[fleet.MergedLabel] != "" || len(object.Spec.Parts) > 0
}

// Explode returns the deployments that an object carries, by name: itself, or its parts. They share what they
// are made of with the object.
func Explode(object *fleet.BundleDeployment) []*fleet.BundleDeployment {
	if !IsMerged(object) {
		if isPart(object) { // somebody has written what only we may say
			object = object.DeepCopy()
			delete(object.Annotations, carriersAnnotation)
		}
		return []*fleet.BundleDeployment{object}
	}
	all := make([]*fleet.BundleDeployment, 0, len(object.Spec.Parts))
	for _, name := range slices.Sorted(maps.Keys(object.Spec.Parts)) {
		if name != object.Name {
			all = append(all, deploymentOf(object, name))
		}
	}
	return all
}

// ExplodeAll returns the deployments that objects carry, each once, in the order of the objects.
func ExplodeAll(objects []fleet.BundleDeployment) []fleet.BundleDeployment {
	if !slices.ContainsFunc(objects, func(object fleet.BundleDeployment) bool { return IsMerged(&object) }) {
		return objects
	}
	carried := map[types.NamespacedName][]*fleet.BundleDeployment{}
	var order []types.NamespacedName
	for i := range objects {
		for _, deployment := range Explode(&objects[i]) {
			key := types.NamespacedName{Namespace: deployment.Namespace, Name: deployment.Name}
			if carried[key] == nil {
				order = append(order, key)
			}
			carried[key] = append(carried[key], deployment)
		}
	}
	all := make([]fleet.BundleDeployment, 0, len(order))
	for _, key := range order {
		all = append(all, *Combine(carried[key]))
	}
	return all
}

func deploymentOf(object *fleet.BundleDeployment, name string) *fleet.BundleDeployment {
	part, reported := object.Spec.Parts[name], object.Status.Parts[name]
	deployment := &fleet.BundleDeployment{TypeMeta: object.TypeMeta}
	deployment.Spec.DeploymentPartSpec, deployment.Status.DeploymentPartStatus = part.Spec, reported
	deployment.Namespace, deployment.Name = object.Namespace, name
	deployment.UID = uidOf(object.UID, name)
	deployment.ResourceVersion = object.ResourceVersion
	deployment.CreationTimestamp = object.CreationTimestamp
	deployment.DeletionTimestamp = object.DeletionTimestamp
	deployment.Generation = part.Generation
	deployment.Labels = part.Labels
	deployment.Annotations = maps.Clone(part.Annotations)
	note(deployment, []Carrier{{Name: object.Name, Parts: len(object.Spec.Parts)}})
	return deployment
}

// uidOf returns the UID of a part. It differs from one carrier to another.
func uidOf(carrier types.UID, part string) types.UID {
	return carrier + types.UID("."+part)
}

// PartOf returns what a merged object has of a deployment.
func PartOf(deployment *fleet.BundleDeployment) fleet.DeploymentPart {
	annotations := maps.Clone(deployment.Annotations)
	delete(annotations, carriersAnnotation)
	if len(annotations) == 0 {
		annotations = nil
	}
	return fleet.DeploymentPart{
		Labels: deployment.Labels, Annotations: annotations,
		Generation: max(deployment.Generation, 1), Spec: deployment.Spec.DeploymentPartSpec,
	}
}

// Alone returns a deployment as an object of its own: without what only tells where it was.
func Alone(deployment *fleet.BundleDeployment) *fleet.BundleDeployment {
	part := PartOf(deployment)
	object := &fleet.BundleDeployment{TypeMeta: deployment.TypeMeta, Spec: *deployment.Spec.DeepCopy()}
	object.Namespace, object.Name = deployment.Namespace, deployment.Name
	object.Labels, object.Annotations = maps.Clone(part.Labels), part.Annotations
	object.Finalizers = slices.Clone(deployment.Finalizers)
	return object
}

// Combine returns what is shown of a deployment that several objects carry: the one whose status is not blank,
// of several a merged one before its own, of several merged ones the first by name. One that is being deleted
// comes last. A single one is returned as it is; it is nil when there is none.
func Combine(carried []*fleet.BundleDeployment) *fleet.BundleDeployment {
	if len(carried) == 0 {
		return nil
	}
	if len(carried) == 1 {
		return carried[0]
	}
	ordered := slices.Clone(carried)
	slices.SortStableFunc(ordered, func(a, b *fleet.BundleDeployment) int {
		return cmp.Or(
			first(a.DeletionTimestamp == nil, b.DeletionTimestamp == nil), first(!isBlank(a), !isBlank(b)),
			first(isPart(a), isPart(b)), cmp.Compare(carrierOf(a).Name, carrierOf(b).Name))
	})
	shown := *ordered[0]
	shown.Annotations = maps.Clone(shown.Annotations)
	var carriers []Carrier
	for _, deployment := range ordered {
		carrier := carrierOf(deployment)
		if carrier.Blank = isBlank(deployment); !carrier.Blank {
			carrier.Differs = !sameStatus(&deployment.Status, &shown.Status)
		}
		carriers = append(carriers, carrier)
		if newer(deployment.ResourceVersion, shown.ResourceVersion) {
			shown.ResourceVersion = deployment.ResourceVersion
		}
		if len(shown.Finalizers) == 0 {
			shown.Finalizers = deployment.Finalizers
		}
	}
	note(&shown, carriers)
	return &shown
}

func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

func isPart(deployment *fleet.BundleDeployment) bool {
	return deployment.Annotations[carriersAnnotation] != ""
}

// isBlank says that no agent has reported.
func isBlank(deployment *fleet.BundleDeployment) bool {
	return len(deployment.Status.Conditions) == 0 && deployment.Status.AppliedDeploymentID == ""
}
