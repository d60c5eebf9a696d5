package controller

import (
	"github.com/fairlead-dev/fairlead/pkg/agent/health/rules"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// compileRules reads the rules of readiness of a deployment, once for each of its generations, and returns what
// is wrong with them. Nothing new is deployed then; of what is deployed, the objects such a rule is about are not
// ready.
func (e *entry) compileRules(deployment *fleet.BundleDeployment) error {
	if e.rulesGeneration != deployment.Generation {
		e.rules, e.rulesErr = rules.New(deployment.Spec.Options.ManifestConfigs)
		e.rulesGeneration = deployment.Generation
	}
	return e.rulesErr
}
