package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/render"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/content/registry"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// ReasonWaitingForContent is the reason of waiting for what a deployment refers to; for its values there is
// fleet.ReasonWaitingForValues.
const ReasonWaitingForContent = "WaitingForContent"

// Keys of the values Secret.
const (
	valuesKey       = "values"
	stagedValuesKey = "stagedValues"
)

// Input reads everything a deployment needs from the hub.
func (h *Hub) Input(ctx context.Context, deployment *fleet.BundleDeployment) (render.Input, error) {
	input := render.Input{
		BundleID: deployment.Name, Commit: deployment.Labels[fleet.CommitLabel],
		Options: *deployment.Spec.Options.DeepCopy(),
	}
	input.ManifestID, _, _ = strings.Cut(deployment.Spec.DeploymentID, ":")
	read := h.stored
	if deployment.Spec.OCIContents {
		read = h.pulled
	}
	var err error
	if input.Manifest, err = read(ctx, input.ManifestID); err != nil {
		return input, err
	}
	return input, h.readValues(ctx, deployment, &input.Options)
}

// stored reads the files of a bundle from the hub, chunk by chunk where there are some.
func (h *Hub) stored(ctx context.Context, id string) (content.Manifest, error) {
	head, err := h.content(ctx, id)
	if err != nil {
		return content.Manifest{}, err
	}
	var missing error
	manifest, err := content.Load(head, func(name string) (chunk *fleet.Content, err error) {
		chunk, missing = h.content(ctx, name)
		return chunk, missing
	})
	if missing != nil {
		return manifest, missing
	}
	return manifest, fault.Wrap(fault.Stalled, "InvalidContent", err)
}

// pulled reads the files of a bundle from a registry, with the access that the hub has put beside the
// deployment.
func (h *Hub) pulled(ctx context.Context, id string) (content.Manifest, error) {
	secret, err := h.secret(ctx, id)
	if apierrors.IsNotFound(err) {
		return content.Manifest{}, fault.New(fault.Waiting, ReasonWaitingForContent, "the access to the registry with contents %s is not on the hub yet", id)
	}
	if err != nil {
		return content.Manifest{}, fmt.Errorf("get access to contents %s: %w", id, err)
	}
	access, err := registry.AccessOf(secret)
	if err != nil {
		return content.Manifest{}, err
	}
	return h.registry.Pull(ctx, access.ForAgents(), id)
}

// Copies reads the Secrets and ConfigMaps that the hub has put next to the deployment for the member.
func (h *Hub) Copies(ctx context.Context, deployment *fleet.BundleDeployment) ([]*unstructured.Unstructured, error) {
	var copies []*unstructured.Unstructured
	for _, wanted := range deployment.Spec.Options.DownstreamResources {
		var object runtime.Object
		var err error
		switch strings.ToLower(wanted.Kind) {
		case "secret":
			var secret *corev1.Secret
			if secret, err = h.secret(ctx, wanted.Name); err == nil {
				object = &corev1.Secret{Data: secret.Data, Type: secret.Type}
			}
		case "configmap":
			var configMap *corev1.ConfigMap
			if configMap, err = h.configMap(ctx, wanted.Name); err == nil {
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
func (h *Hub) readValues(ctx context.Context, deployment *fleet.BundleDeployment, options *fleet.BundleDeploymentOptions) error {
	if deployment.Spec.ValuesHash == "" {
		return nil
	}
	secret, err := h.secret(ctx, deployment.Name)
	if apierrors.IsNotFound(err) {
		return fault.New(fault.Waiting, fleet.ReasonWaitingForValues, "the values are not on the hub yet")
	}
	if err != nil {
		return fmt.Errorf("get values of %s: %w", deployment.Name, err)
	}
	values := secret.Data[valuesKey]
	if content.DeploymentValuesHash(values, secret.Data[stagedValuesKey]) != deployment.Spec.ValuesHash {
		return fault.New(fault.Waiting, fleet.ReasonWaitingForValues, "the values on the hub belong to another version of the deployment")
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
