package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/render"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

// Reasons of waiting.
const (
	ReasonWaitingForDependency = "WaitingForDependency"
	ReasonWaitingForContent    = "WaitingForContent"
	ReasonWaitingForValues     = "WaitingForValues"
	ReasonDependencyCycle      = "DependencyCycle"
)

// Keys of the values Secret.
const (
	valuesKey       = "values"
	stagedValuesKey = "stagedValues"
)

// gather reads everything a deployment needs from the hub.
func (c *Controller) gather(ctx context.Context, deployment *fleet.BundleDeployment) (render.Input, error) {
	input := render.Input{
		BundleID: deployment.Name, Commit: deployment.Labels[fleet.CommitLabel],
		Options: *deployment.Spec.Options.DeepCopy(),
	}
	if deployment.Spec.OCIContents {
		return input, fault.New(fault.Stalled, "OCIContents", "contents in a registry cannot be read by this agent; store them on the hub")
	}
	input.ManifestID, _, _ = strings.Cut(deployment.Spec.DeploymentID, ":")
	stored, err := c.hub.content(ctx, input.ManifestID)
	if apierrors.IsNotFound(err) {
		return input, fault.New(fault.Waiting, ReasonWaitingForContent, "content %s is not on the hub yet", input.ManifestID)
	}
	if err != nil {
		return input, fmt.Errorf("get content %s: %w", input.ManifestID, err)
	}
	if input.Manifest, err = content.Load(stored); err != nil {
		return input, fault.Wrap(fault.Stalled, "InvalidContent", err)
	}
	return input, c.readValues(ctx, deployment, &input.Options)
}

// copies reads the Secrets and ConfigMaps that the hub has put next to the deployment for the member.
func (c *Controller) copies(ctx context.Context, deployment *fleet.BundleDeployment) ([]*unstructured.Unstructured, error) {
	var copies []*unstructured.Unstructured
	for _, wanted := range deployment.Spec.Options.DownstreamResources {
		var object runtime.Object
		var err error
		switch strings.ToLower(wanted.Kind) {
		case "secret":
			var secret *corev1.Secret
			if secret, err = c.hub.secret(ctx, wanted.Name); err == nil {
				object = &corev1.Secret{Data: secret.Data, Type: secret.Type}
			}
		case "configmap":
			var configMap *corev1.ConfigMap
			if configMap, err = c.hub.configMap(ctx, wanted.Name); err == nil {
				object = &corev1.ConfigMap{Data: configMap.Data, BinaryData: configMap.BinaryData}
			}
		default:
			err = fault.New(fault.Stalled, "InvalidDownstreamResource", "downstreamResources: kind %q is neither Secret nor ConfigMap", wanted.Kind)
		}
		if apierrors.IsNotFound(err) {
			return nil, fault.New(fault.Waiting, ReasonWaitingForContent, "%s %s is not on the hub yet", wanted.Kind, wanted.Name)
		}
		if err != nil {
			return nil, fmt.Errorf("get %s %s: %w", wanted.Kind, wanted.Name, err)
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return nil, err
		}
		made := &unstructured.Unstructured{Object: content}
		made.SetAPIVersion("v1")
		made.SetKind(map[bool]string{true: "Secret", false: "ConfigMap"}[strings.EqualFold(wanted.Kind, "secret")])
		made.SetName(wanted.Name)
		copies = append(copies, made)
	}
	return copies, nil
}

// readValues puts the values from the deployment's Secret into the options. A Secret that does not fit
// the hash is older or newer than the deployment: the right pair is on its way.
func (c *Controller) readValues(ctx context.Context, deployment *fleet.BundleDeployment, options *fleet.BundleDeploymentOptions) error {
	if deployment.Spec.ValuesHash == "" {
		return nil
	}
	secret, err := c.hub.secret(ctx, deployment.Name)
	if apierrors.IsNotFound(err) {
		return fault.New(fault.Waiting, ReasonWaitingForValues, "the values are not on the hub yet")
	}
	if err != nil {
		return fmt.Errorf("get values of %s: %w", deployment.Name, err)
	}
	values := secret.Data[valuesKey]
	if content.DeploymentValuesHash(values, secret.Data[stagedValuesKey]) != deployment.Spec.ValuesHash {
		return fault.New(fault.Waiting, ReasonWaitingForValues, "the values on the hub belong to another version of the deployment")
	}
	if len(values) == 0 {
		return nil
	}
	if options.Helm == nil {
		options.Helm = &fleet.HelmOptions{}
	}
	options.Helm.Values = &fleet.GenericMap{}
	if err := json.Unmarshal(values, options.Helm.Values); err != nil {
		// The decoder's message may quote a value.
		return fault.New(fault.Stalled, "InvalidValues", "the values on the hub are no JSON object")
	}
	return nil
}

// awaitDependencies returns an error of class Waiting that names what is not in an accepted state, and
// one of class Stalled when the deployment waits for itself.
func (c *Controller) awaitDependencies(deployment *fleet.BundleDeployment) error {
	if len(deployment.Spec.DependsOn) == 0 {
		return nil
	}
	all := c.deployments()
	if cycle := findCycle(deployment, all); len(cycle) > 0 {
		return fault.New(fault.Stalled, ReasonDependencyCycle, "dependsOn goes in a circle: %s", strings.Join(cycle, " → "))
	}
	var waits []string
	for _, ref := range deployment.Spec.DependsOn {
		if ref.Name == "" && ref.Selector == nil {
			continue // means nothing
		}
		matched, name, err := matching(ref, deployment, all)
		if err != nil {
			return err
		}
		if len(matched) == 0 {
			waits = append(waits, name+": not on this cluster")
		}
		accepted := ref.AcceptedStates
		if len(accepted) == 0 {
			accepted = []fleet.BundleState{fleet.Ready}
		}
		for _, other := range matched {
			if state := status.Of(other); !slices.Contains(accepted, state) {
				waits = append(waits, fmt.Sprintf("%s: %s", other.Name, state))
			}
		}
	}
	if len(waits) > 0 {
		return fault.New(fault.Waiting, ReasonWaitingForDependency, "waiting for %s", strings.Join(waits, ", "))
	}
	return nil
}

// matching returns the deployments a reference means, and words for it.
func matching(ref fleet.BundleRef, dependent *fleet.BundleDeployment, all []*fleet.BundleDeployment) ([]*fleet.BundleDeployment, string, error) {
	selector := labels.Everything()
	words := "bundle " + ref.Name
	if ref.Selector != nil {
		parsed, err := metav1.LabelSelectorAsSelector(ref.Selector)
		if err != nil {
			return nil, "", fault.New(fault.Stalled, "InvalidSelector", "dependsOn: %w", err)
		}
		selector = parsed
		words = strings.TrimSpace("bundles " + parsed.String() + " " + ref.Name)
	}
	namespace := dependent.Labels[fleet.BundleNamespaceLabel]
	var matched []*fleet.BundleDeployment
	for _, other := range all {
		named := ref.Name == "" || other.Labels[fleet.BundleLabel] == ref.Name && other.Labels[fleet.BundleNamespaceLabel] == namespace
		if named && other.Name != dependent.Name && selector.Matches(labels.Set(other.Labels)) {
			matched = append(matched, other)
		}
	}
	return matched, words, nil
}

// findCycle returns the names on a way from the deployment back to itself, or nothing.
func findCycle(from *fleet.BundleDeployment, all []*fleet.BundleDeployment) []string {
	visited := map[string]bool{}
	var walk func(current *fleet.BundleDeployment, way []string) []string
	walk = func(current *fleet.BundleDeployment, way []string) []string {
		way = append(slices.Clone(way), current.Name)
		for _, ref := range current.Spec.DependsOn {
			if ref.Name == "" && ref.Selector == nil {
				continue
			}
			matched, _, err := matching(ref, current, all)
			if err != nil {
				continue
			}
			for _, next := range matched {
				if next.Name == from.Name {
					return append(way, next.Name)
				}
				if visited[next.Name] {
					continue
				}
				visited[next.Name] = true
				if cycle := walk(next, way); len(cycle) > 0 {
					return cycle
				}
			}
		}
		return nil
	}
	return walk(from, nil)
}

func (c *Controller) deployments() []*fleet.BundleDeployment {
	items := c.informer.GetStore().List()
	all := make([]*fleet.BundleDeployment, 0, len(items))
	for _, item := range items {
		if deployment, ok := item.(*fleet.BundleDeployment); ok {
			all = append(all, deployment)
		}
	}
	slices.SortFunc(all, func(a, b *fleet.BundleDeployment) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// wakeDependents queues all deployments that wait for others.
func (c *Controller) wakeDependents() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, e := range c.entries {
		if e.waits {
			c.queue.Add(name)
		}
	}
}
