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
}

// Message says for people what waits and why.
func (g *Guard) Message() string {
	return fmt.Sprintf("deleting %d of %d deployments waits for confirmation, because no edit of the bundle explains it (confirm with %s)", g.Deletes, g.Of, g.Token)
}

// guardedDelete plans the deletions, or the guard instead of them: when they are more than half of the
// bundle's deployments and more than five, and neither explained by a person's edit nor confirmed.
func (p *Plan) guardedDelete(s Snapshot, list []fleet.BundleDeployment) {
	p.remove(list)
	alive := 0
	for i := range s.Current {
		if s.Current[i].DeletionTimestamp == nil {
			alive++
		}
	}
	if s.PersonsEdit || len(p.Delete) <= guardFrom || len(p.Delete)*2 <= alive {
		return
	}
	guard := &Guard{Deletes: len(p.Delete), Of: alive}
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
