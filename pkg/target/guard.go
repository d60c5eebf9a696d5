package target

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// guardFrom is the number of deletions that is always allowed.
const guardFrom = 5

// Guard says that deletions wait for a person.
type Guard struct {
	// Deletes is how many deployments would be deleted, Of how many there are, without those that an edit removes.
	Deletes, Of int
	// Token stands for exactly these deployments. Given back as Snapshot.ConfirmedDeletes it lets the
	// deletions through.
	Token string
	// Clusters ("namespace/name") are the first ten that would lose the bundle.
	Clusters []string
	// Held are the deletions that wait.
	Held []Deployment
	// Why no person's edit explains them, where more is known than that.
	Why string
}

// Message says for people what waits and why.
func (g *Guard) Message() string {
	why := g.Why
	if why == "" {
		why = "no edit of the bundle's targets explains it"
	}
	return fmt.Sprintf("deleting %d of %d deployments waits for confirmation, because %s (confirm with %s)", g.Deletes, g.Of, why, g.Token)
}

// guardedDelete plans the deletions, or the guard instead of those that are more than half of the bundle's deployments
// and more than five and not explained by a person's edit; or of all when the snapshot is in doubt; unless they are
// confirmed.
func (p *Plan) guardedDelete(s Snapshot, list []*fleet.BundleDeployment) {
	p.remove(list)
	alive := 0
	for _, deployment := range s.Current {
		if deployment.DeletionTimestamp == nil {
			alive++
		}
	}
	explained, held := explain(s, p.Delete)
	// What an edit removes is no part of what its rest is measured by: it may as well have been a moment earlier.
	alive -= len(explained)
	few := len(held) <= guardFrom || len(held)*2 <= alive
	// What waits goes on waiting when there is more to compare it with, as when clusters join meanwhile.
	few = few && !slices.ContainsFunc(held, func(d Deployment) bool { return s.Memory.held[deploymentKey(d)] })
	s.Memory.held = nil
	if len(held) == 0 || few && s.Doubt == "" {
		return
	}
	guard := guardOf(held, alive, s.Doubt)
	if guard.Token == s.ConfirmedDeletes {
		return
	}
	p.Guard, p.Delete = guard, explained
	if s.Doubt == "" {
		s.Memory.hold(held)
	}
}

// explain divides deletions into those that a person's edit of the targets explains and those that it does not. In
// doubt nothing does.
func explain(s Snapshot, deletions []Deployment) (explained, others []Deployment) {
	if !s.PersonsEdit || s.Doubt != "" {
		return nil, deletions
	}
	for _, deployment := range deletions {
		if s.Memory.wouldReach(deployment) {
			others = append(others, deployment)
		} else {
			explained = append(explained, deployment)
		}
	}
	return explained, others
}

func guardOf(held []Deployment, alive int, doubt string) *Guard {
	guard := &Guard{Deletes: len(held), Of: alive, Held: held, Why: doubt}
	digest := sha256.New()
	for i, deployment := range held {
		fmt.Fprintf(digest, "%s/%s %s\n", deployment.Object.Namespace, deployment.Object.Name, deployment.Object.UID)
		if i < 10 {
			guard.Clusters = append(guard.Clusters, deployment.Cluster)
		}
	}
	guard.Token = hex.EncodeToString(digest.Sum(nil))[:12]
	return guard
}
