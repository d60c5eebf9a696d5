package match

import fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"

// Role is the part an entry of a bundle's target lists plays.
type Role string

// The roles.
const (
	Customization Role = "customization"
	Destination   Role = "destination"
	Restriction   Role = "restriction"
)

// Verdict says what one entry of the target lists means for a cluster.
type Verdict struct {
	Role Role
	// Index in spec.targets, or in spec.targetRestrictions for a restriction.
	Index int
	Name  string
	// Matched says that the entry selects the cluster.
	Matched bool
	// Used says that the entry decided something: it was chosen, not only matched.
	Used bool
	// Reason says why it did not match, or why it matched and was not used; for people.
	Reason string
}

// Explain returns the answer of Match and a verdict on every entry: restrictions first, then the targets
// in order.
func (m *Matcher) Explain(cluster Cluster, groups []Group) (Result, []Verdict) {
	result := m.Match(cluster, groups)
	var verdicts []Verdict
	for i, restriction := range m.restrictions {
		reason := restriction.Reason(cluster, groups)
		verdicts = append(verdicts, Verdict{Restriction, i, restriction.name, reason == "", reason == "", reason})
	}
	used := map[int]bool{result.Destination: true}
	for _, index := range result.Customizations {
		used[index] = true
	}
	for i, target := range m.targets {
		verdict := Verdict{Role: Destination, Index: i, Name: target.name, Used: used[i]}
		if i < m.first {
			verdict.Role = Customization
		}
		verdict.Reason = target.Reason(cluster, groups)
		verdict.Matched = verdict.Reason == ""
		if verdict.Matched && !verdict.Used {
			verdict.Reason = m.unused(verdict.Role, result)
		}
		verdicts = append(verdicts, verdict)
	}
	return result, verdicts
}

func (m *Matcher) unused(role Role, result Result) string {
	switch {
	case result.Destination < 0:
		return "no destination that the restrictions allow selects the cluster"
	case role == Customization && m.mode != fleet.AllMatches:
		return "an earlier customization matched, and only the first is applied (targetCustomizationMode FirstMatch)"
	}
	return "an earlier destination selected the cluster"
}
