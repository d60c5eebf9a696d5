package bundle

import (
	"fmt"
	"maps"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// Owner says for people whose a Bundle is, by its labels.
func Owner(labels map[string]string) string {
	if repo := labels[fleet.RepoLabel]; repo != "" {
		return fmt.Sprintf("the GitRepo %s", repo)
	}
	if op := labels[fleet.HelmOpLabel]; op != "" {
		return fmt.Sprintf("the HelmOp %s", op)
	}
	return "nobody known: it was made by hand"
}

// SameLabels compares the labels of two versions of a Bundle. Another commit alone is no difference: a
// Bundle that a commit does not touch is not written.
func SameLabels(a, b map[string]string) bool {
	return maps.Equal(withoutCommit(a), withoutCommit(b))
}

func withoutCommit(labels map[string]string) map[string]string {
	kept := map[string]string{}
	maps.Copy(kept, labels)
	delete(kept, fleet.CommitLabel)
	return kept
}

// KeepsPaused says that a person paused the stored Bundle, and that the source, which does not, leaves it so.
func KeepsPaused(stored, wanted *fleet.Bundle) bool {
	return stored.Annotations[fleet.HoldAnnotation] == "true" && !wanted.Spec.Paused
}
