package controller

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

func TestRefersTo(t *testing.T) {
	group := &fleet.ClusterGroup{ObjectMeta: metav1.ObjectMeta{Name: "prod", Labels: map[string]string{"tier": "gold"}}}
	named := fleet.ClusterTarget{ClusterGroup: "prod"}
	selecting := func(tier string) fleet.ClusterTarget {
		return fleet.ClusterTarget{ClusterGroupSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": tier}}}
	}
	targets := func(list ...fleet.ClusterTarget) fleet.BundleSpec {
		spec := fleet.BundleSpec{}
		for _, one := range list {
			spec.Targets = append(spec.Targets, fleet.BundleTarget{ClusterTarget: one})
		}
		return spec
	}
	for name, test := range map[string]struct {
		spec fleet.BundleSpec
		want bool
	}{
		"no targets":          {fleet.BundleSpec{}, false},
		"clusters only":       {targets(fleet.ClusterTarget{ClusterSelector: &metav1.LabelSelector{}}), false},
		"another group":       {targets(fleet.ClusterTarget{ClusterGroup: "dev"}), false},
		"by name":             {targets(fleet.ClusterTarget{ClusterName: "x"}, named), true},
		"by label":            {targets(selecting("gold")), true},
		"by another label":    {targets(selecting("tin")), false},
		"by a broken one":     {targets(fleet.ClusterTarget{ClusterGroupSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Operator: "?"}}}}), false},
		"in a restriction":    {fleet.BundleSpec{TargetRestrictions: []fleet.ClusterTarget{named}}, true},
		"in a partition":      {fleet.BundleSpec{RolloutStrategy: &fleet.RolloutStrategy{Partitions: []fleet.Partition{{ClusterTarget: named}}}}, true},
		"rollout without any": {fleet.BundleSpec{RolloutStrategy: &fleet.RolloutStrategy{}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := refersTo(&test.spec, group); got != test.want {
				t.Errorf("refers: %v, want %v", got, test.want)
			}
		})
	}
}

func TestUnreadable(t *testing.T) {
	group := &fleet.ClusterGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: "prod"}}
	if err := unreadable(group); err != nil {
		t.Errorf("a group without a selector: %v", err)
	}
	group.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Nearly"}}}
	if err := unreadable(group); err == nil {
		t.Error("a broken selector is read")
	}
}
