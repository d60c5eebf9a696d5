package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/controller/repotest"
)

// cached is a Bundle of repository shop as the cache shows it once it is stored; text stands for its files.
func cached(t testing.TB, name, text string, change func(*fleet.Bundle)) *fleet.Bundle {
	t.Helper()
	return repotest.Cached(t, repotest.Bundle(name, text), change)
}

func ready(status corev1.ConditionStatus, reason, message string) func(*fleet.Bundle) {
	return func(b *fleet.Bundle) {
		b.Status.Conditions = []fleet.Condition{{Type: fleet.ConditionReady, Status: status, Reason: reason, Message: message}}
	}
}
