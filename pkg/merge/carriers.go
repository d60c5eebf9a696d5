package merge

import (
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// carriersAnnotation tells, on a deployment that is a part, which objects carry it. It is never stored.
const carriersAnnotation = "merge.fleet.cattle.io/carriers"

// Carrier is an object that carries a deployment.
type Carrier struct {
	// Name of the object, which is in the namespace of the deployment.
	Name string
	// Parts is how many deployments it carries; 0 for one of its own.
	Parts int
	// Blank says that the agent has not reported in it, and Differs that it has reported something else there
	// than in the first one.
	Blank, Differs bool
}

// IsMerged says that the object carries other deployments too, or could.
func (c Carrier) IsMerged() bool { return c.Parts > 0 }

// Carriers returns the objects that carry a deployment; the first is the one that is shown.
func Carriers(deployment *fleet.BundleDeployment) []Carrier {
	text := deployment.Annotations[carriersAnnotation]
	if text == "" {
		return []Carrier{{Name: deployment.Name}}
	}
	var carriers []Carrier
	for entry := range strings.SplitSeq(text, ",") {
		fields := strings.Split(entry, "/")
		carrier := Carrier{Name: fields[0]}
		if len(fields) == 3 {
			carrier.Parts, _ = strconv.Atoi(fields[1]) // we wrote it
			carrier.Blank, carrier.Differs = fields[2] == blank, fields[2] == differs
		}
		carriers = append(carriers, carrier)
	}
	return carriers
}

// Words for the state of a carrier.
const (
	blank   = "blank"
	differs = "differs"
)

// InMerged says that a merged object carries a deployment, as it is shown.
func InMerged(deployment *fleet.BundleDeployment) bool { return carrierOf(deployment).IsMerged() }

// AnyInMerged says that a merged object carries any of the deployments, or carried it until now.
func AnyInMerged(deployments []*fleet.BundleDeployment) bool {
	for _, deployment := range deployments {
		if carriers := Carriers(deployment); len(carriers) > 1 || carriers[0].IsMerged() {
			return true
		}
	}
	return false
}

func carrierOf(deployment *fleet.BundleDeployment) Carrier { return Carriers(deployment)[0] }

func note(deployment *fleet.BundleDeployment, carriers []Carrier) {
	entries := make([]string, 0, len(carriers))
	for _, carrier := range carriers {
		state := ""
		switch {
		case carrier.Blank:
			state = blank
		case carrier.Differs:
			state = differs
		}
		entries = append(entries, carrier.Name+"/"+strconv.Itoa(carrier.Parts)+"/"+state)
	}
	if deployment.Annotations == nil {
		deployment.Annotations = map[string]string{}
	}
	deployment.Annotations[carriersAnnotation] = strings.Join(entries, ",")
}

// Moved says that other objects carry a deployment than before, or that the agent has reported in other ones.
func Moved(before, after *fleet.BundleDeployment) bool {
	if before.Annotations[carriersAnnotation] == after.Annotations[carriersAnnotation] {
		return false
	}
	was, is := Carriers(before), Carriers(after)
	if len(was) != len(is) {
		return true
	}
	for i := range was {
		was[i].Parts, is[i].Parts = min(was[i].Parts, 1), min(is[i].Parts, 1)
		if was[i] != is[i] {
			return true
		}
	}
	return false
}

func sameStatus(a, b *fleet.BundleDeploymentStatus) bool { return reflect.DeepEqual(a, b) }

func newer(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order > 0
}
