package compact

import (
	"reflect"
	"slices"
	"strings"
	"sync"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// kept bounds what is remembered to be shared: beyond, remembering begins anew.
const kept = 4096

// Deployments shares parts among BundleDeployments. The zero value is ready, and safe for concurrent use.
type Deployments struct {
	mutex sync.Mutex
	// options by deployment id, which begins alike for the same content and ends alike for the same options.
	options map[string]fleet.BundleDeploymentOptions
	// resources by all that is in them.
	resources map[string][]fleet.BundleDeploymentResource
}

// Compact makes a deployment small that nobody else holds yet.
func (d *Deployments) Compact(deployment *fleet.BundleDeployment) {
	deployment.ManagedFields = nil
	deployment.Labels = share(deployment.Labels)
	spec, status := &deployment.Spec, &deployment.Status
	for _, text := range []*string{
		&deployment.Namespace, &deployment.Name, &spec.DeploymentID, &spec.StagedDeploymentID, &spec.ValuesHash,
		&status.AppliedDeploymentID, &status.Release, &status.Display.Deployed, &status.Display.Monitored, &status.Display.State,
	} {
		*text = intern(*text)
	}
	for i := range status.Conditions {
		condition := &status.Conditions[i]
		for _, text := range []*string{
			&condition.Type, &condition.Reason, &condition.Message, &condition.LastUpdateTime, &condition.LastTransitionTime,
		} {
			*text = intern(*text)
		}
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	spec.Options = d.shareOptions(spec.DeploymentID, spec.Options)
	spec.StagedOptions = d.shareOptions(spec.StagedDeploymentID, spec.StagedOptions)
	status.Resources = d.shareResources(status.Resources)
}

// shareOptions returns options that are equal and that others have.
func (d *Deployments) shareOptions(id string, options fleet.BundleDeploymentOptions) fleet.BundleDeploymentOptions {
	if known, ok := d.options[id]; ok && reflect.DeepEqual(known, options) {
		return known
	}
	if d.options == nil || len(d.options) >= kept {
		d.options = map[string]fleet.BundleDeploymentOptions{}
	}
	d.options[id] = options
	return options
}

// shareResources returns the same objects in a list that others have. When they were made differs from
// cluster to cluster, and nothing on the hub asks for it.
func (d *Deployments) shareResources(list []fleet.BundleDeploymentResource) []fleet.BundleDeploymentResource {
	if len(list) == 0 {
		return nil
	}
	var text strings.Builder
	for i := range list {
		list[i].CreatedAt = metav1.Time{}
		for _, field := range []string{list[i].APIVersion, list[i].Kind, list[i].Namespace, list[i].Name} {
			text.WriteString(field)
			text.WriteByte(0)
		}
	}
	key := text.String()
	if known, ok := d.resources[key]; ok && slices.Equal(known, list) {
		return known
	}
	if d.resources == nil || len(d.resources) >= kept {
		d.resources = map[string][]fleet.BundleDeploymentResource{}
	}
	d.resources[key] = list
	return list
}

func share(labels map[string]string) map[string]string {
	if labels == nil {
		return nil
	}
	shared := make(map[string]string, len(labels))
	for key, value := range labels {
		shared[intern(key)] = intern(value)
	}
	return shared
}

// intern returns the text that all equal texts share.
func intern(text string) string {
	if text == "" {
		return ""
	}
	return unique.Make(text).Value()
}
