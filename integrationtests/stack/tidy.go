package stack

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/merge"
)

// Tidy returns nil when all files on the hub are needed by some deployment, and else an error that names one that is not:
// the hub drops those some time after the last deployment let go.
func (s *Stack) Tidy(ctx context.Context) error {
	var deployments fleet.BundleDeploymentList
	if err := s.Client.List(ctx, &deployments); err != nil {
		return err
	}
	needed := map[string]bool{}
	for _, deployment := range merge.ExplodeAll(deployments.Items) {
		for _, id := range []string{deployment.Spec.DeploymentID, deployment.Spec.StagedDeploymentID} {
			content, _, _ := strings.Cut(id, ":")
			needed[content] = true
		}
	}
	contents := &metav1.PartialObjectMetadataList{}
	contents.SetGroupVersionKind(fleet.GroupVersion.WithKind("ContentList"))
	if err := s.Client.List(ctx, contents); err != nil {
		return err
	}
	for i := range contents.Items {
		if name := contents.Items[i].Name; !needed[name] {
			return fmt.Errorf("content %s is there, and no deployment needs it", name)
		}
	}
	return nil
}
