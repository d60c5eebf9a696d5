package releases

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// listPage is how many records are listed at a time.
const listPage = 500

// List returns the releases of this agent, newest revisions only and without their objects. It reads
// metadata; only releases made by other agents are decoded, and only when they are new.
func (r *Reader) List(ctx context.Context) ([]Record, error) {
	client, err := metadata.NewForConfig(r.member.Config())
	if err != nil {
		return nil, fmt.Errorf("list releases: %w", err)
	}
	newest := map[[2]string]Record{}
	options := metav1.ListOptions{LabelSelector: "owner=helm", Limit: listPage}
	for {
		page, err := client.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("list releases: %w", err)
		}
		for i := range page.Items {
			record, mine, err := r.listed(ctx, &page.Items[i])
			if err != nil {
				return nil, fmt.Errorf("list releases: %w", err)
			}
			id := [2]string{record.Namespace, record.Name}
			if mine && record.Revision >= newest[id].Revision {
				newest[id] = record
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			break
		}
	}
	records := make([]Record, 0, len(newest))
	for _, record := range newest {
		records = append(records, record)
	}
	slices.SortFunc(records, func(a, b Record) int { return strings.Compare(a.String(), b.String()) })
	return records, nil
}

// listed reads one record's metadata and says whether the release is this agent's.
func (r *Reader) listed(ctx context.Context, secret *metav1.PartialObjectMetadata) (Record, bool, error) {
	labels := secret.Labels
	revision, err := strconv.Atoi(labels["version"])
	if err != nil {
		return Record{}, false, nil
	}
	record := Record{Name: labels["name"], Namespace: secret.Namespace, Revision: revision, Deployed: labels["status"] == release.StatusDeployed.String()}
	if agent, labelled := labels[agentNamespaceLabel]; labelled {
		record.BundleID = labels[bundleIDLabel]
		return record, agent == r.agent.Namespace && labels[agentScopeLabel] == r.agent.Scope, nil
	}
	return r.decoded(ctx, secret, record)
}

// decoded reads the annotations of a record without our labels: one of another agent's or of a person's.
func (r *Reader) decoded(ctx context.Context, secret *metav1.PartialObjectMetadata, record Record) (Record, bool, error) {
	r.mu.Lock()
	bundle, known := r.foreign[secret.UID]
	r.mu.Unlock()
	if !known {
		self, err := r.member.Self()
		if err != nil {
			return record, false, err
		}
		stored, err := driver.NewSecrets(self.Clients.CoreV1().Secrets(secret.Namespace)).Get(secret.Name)
		if errors.Is(err, driver.ErrReleaseNotFound) {
			return record, false, nil
		}
		if err == nil && stored.Chart != nil && stored.Chart.Metadata != nil {
			annotations := stored.Chart.Metadata.Annotations
			if annotations[fleet.ReleaseAgentNamespaceAnnotation] == r.agent.Namespace {
				bundle = annotations[fleet.ReleaseBundleIDAnnotation]
			}
		}
		r.mu.Lock()
		r.foreign[secret.UID] = bundle
		r.mu.Unlock()
	}
	record.BundleID = bundle
	return record, bundle != "", ctx.Err()
}
