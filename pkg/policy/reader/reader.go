// Package reader reads the rules of a namespace from the hub. It decides nothing.
package reader

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/policy"
)

// Rules returns what the Policies and GitRepoRestrictions of a namespace say. With an error nothing may be
// concluded: it does not mean that everything is allowed.
func Rules(ctx context.Context, from client.Reader, namespace string) (policy.Rules, error) {
	var restrictions fleet.GitRepoRestrictionList
	if err := from.List(ctx, &restrictions, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return policy.Rules{}, fmt.Errorf("list gitreporestrictions in %s: %w", namespace, err)
	}
	var policies fleet.PolicyList
	if err := from.List(ctx, &policies, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return policy.Rules{}, fmt.Errorf("list policies in %s: %w", namespace, err)
	}
	return policy.New(restrictions.Items, policies.Items), nil
}
