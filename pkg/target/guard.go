package target

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// guardFrom is the number of deletions that is always allowed.
const guardFrom = 5

// Guard says that deletions wait for a person.
type Guard struct {
	// Deletes is how many deployments would be deleted, Of how many there are.
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

// guardedDelete plans the deletions, or the guard instead of them: when they are more than half of the
// bundle's deployments and more than five and not explained by a person's edit, or when the snapshot is in
// doubt; unless they are confirmed.
func (p *Plan) guardedDelete(s Snapshot, list []*fleet.BundleDeployment) {
	p.remove(list)
	alive := 0
	for _, deployment := range s.Current {
		if deployment.DeletionTimestamp == nil {
			alive++
		}
	}
	few := s.PersonsEdit || len(p.Delete) <= guardFrom || len(p.Delete)*2 <= alive
	if len(p.Delete) == 0 || few && s.Doubt == "" {
		return
	}
	guard := &Guard{Deletes: len(p.Delete), Of: alive, Held: p.Delete, Why: s.Doubt}
	digest := sha256.New()
	for i, deployment := range p.Delete {
		fmt.Fprintf(digest, "%s/%s %s\n", deployment.Object.Namespace, deployment.Object.Name, deployment.Object.UID)
		if i < 10 {
			guard.Clusters = append(guard.Clusters, deployment.Cluster)
		}
	}
	guard.Token = hex.EncodeToString(digest.Sum(nil))[:12]
	if guard.Token == s.ConfirmedDeletes {
		return
	}
	p.Guard, p.Delete = guard, nil
}
