package records

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/releaseutil"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// For returns the records of a namespace's releases as whoever the client is sees them, for one
// operation on one release. Place puts the hooks of new revisions where the bundle's options want them; nil leaves them.
func For(secrets corev1.SecretInterface, place Placer) *storage.Storage {
	stored := driver.NewSecrets(secrets)
	stored.Log = func(string, ...any) {}
	records := storage.Init(&recall{Driver: stored, secrets: secrets, place: place, revisions: map[string]map[string]*release.Release{}})
	records.Log = func(string, ...any) {}
	return records
}

// recall is Helm's storage in Secrets, which reads the history of a release once: Helm asks for it three
// or four times in one operation, during which nobody else writes it, because one agent at a time works
// on a release. It is used by one goroutine at a time and lives as long as the operation.
type recall struct {
	driver.Driver
	secrets corev1.SecretInterface
	place   Placer
	// revisions are the records by release and key.
	revisions map[string]map[string]*release.Release
}

// Query implements driver.Queryor. What is asked for by more than name and status is not remembered.
func (r *recall) Query(labels map[string]string) ([]*release.Release, error) {
	rest := maps.Clone(labels)
	for _, known := range []string{"name", "owner", "status"} {
		delete(rest, known)
	}
	name := labels["name"]
	if len(rest) > 0 || name == "" {
		return r.Driver.Query(labels)
	}
	if r.revisions[name] == nil {
		if err := r.read(name); err != nil {
			return nil, err
		}
	}
	var found []*release.Release
	for _, key := range slices.Sorted(maps.Keys(r.revisions[name])) {
		revision := r.revisions[name][key]
		if status, asked := labels["status"]; !asked || revision.Info.Status.String() == status {
			found = append(found, copyOf(revision))
		}
	}
	if len(found) == 0 {
		return nil, driver.ErrReleaseNotFound
	}
	return found, nil
}

func (r *recall) read(name string) error {
	stored, err := r.Driver.Query(map[string]string{"name": name, "owner": "helm"})
	if err != nil && !errors.Is(err, driver.ErrReleaseNotFound) {
		return err
	}
	r.revisions[name] = map[string]*release.Release{}
	for _, revision := range stored {
		r.revisions[name][keyOf(revision)] = revision
	}
	return nil
}

// Create implements driver.Creator. Helm runs no hook of a revision before it is stored.
func (r *recall) Create(key string, revision *release.Release) error {
	if err := placeHooks(revision, r.place); err != nil {
		return err
	}
	err := tooLarge(revision, r.Driver.Create(key, slim(revision)))
	r.wrote(key, revision, err)
	return err
}

// Update implements driver.Updator.
func (r *recall) Update(key string, revision *release.Release) error {
	err := r.Driver.Update(key, slim(revision))
	r.wrote(key, revision, err)
	return err
}

// wrote remembers what was written; after an error nothing is known.
func (r *recall) wrote(key string, revision *release.Release, err error) {
	switch {
	case err != nil:
		delete(r.revisions, revision.Name)
	case r.revisions[revision.Name] != nil:
		r.revisions[revision.Name][key] = copyOf(revision)
	}
}

// Delete implements driver.Deletor, without a look at what is to be deleted where that is known.
func (r *recall) Delete(key string) (*release.Release, error) {
	for name, revisions := range r.revisions {
		revision := revisions[key]
		if revision == nil {
			continue
		}
		err := r.secrets.Delete(context.Background(), key, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			err = driver.ErrReleaseNotFound
		}
		delete(revisions, key)
		if err != nil {
			delete(r.revisions, name)
		}
		return revision, err
	}
	return r.Driver.Delete(key)
}

// slim returns a revision without what only rendering needs. A stored one is never rendered again (a rollback
// takes its manifest) and a chart's files may be larger than what fits into a Secret. Helm itself leaves out
// the charts a chart depends on.
func slim(revision *release.Release) *release.Release {
	if revision.Chart == nil {
		return revision
	}
	slimmed := *revision
	slimmed.Chart = &chart.Chart{Metadata: revision.Chart.Metadata, Lock: revision.Chart.Lock, Values: revision.Chart.Values}
	return &slimmed
}

// tooLarge explains the error of a record that does not fit into a Secret, which it will not later on either.
// The server refuses it as a request or, when it is somewhat smaller, as a Secret.
func tooLarge(revision *release.Release, err error) error {
	if !apierrors.IsRequestEntityTooLargeError(err) && !apierrors.HasStatusCause(err, metav1.CauseType(field.ErrorTypeTooLong)) {
		return err
	}
	return fault.Wrap(fault.Stalled, "ReleaseTooLarge", fmt.Errorf("the %d KiB of manifests are too large, "+
		"compressed, for the Secret that records a release; split the bundle: %w", len(revision.Manifest)>>10, err))
}

// copyOf returns a revision whose state Helm may change without changing what is remembered.
func copyOf(revision *release.Release) *release.Release {
	copied := *revision
	if revision.Info != nil {
		info := *revision.Info
		copied.Info = &info
	}
	return &copied
}

// keyOf returns the name of a revision's record (storage.makeKey).
func keyOf(revision *release.Release) string {
	return fmt.Sprintf("%s.%s.v%d", storage.HelmStorageType, revision.Name, revision.Version)
}

// History returns the revisions of a release, oldest first; none is no error.
func History(records *storage.Storage, name string) ([]*release.Release, error) {
	revisions, err := records.History(name)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read history of release %s: %w", name, err)
	}
	releaseutil.SortByRevision(revisions)
	return revisions, nil
}

// Trim deletes the oldest revisions beyond the bound; what is deployed stays.
func Trim(records *storage.Storage, name string, most int) error {
	revisions, err := History(records, name)
	if err != nil {
		return err
	}
	excess := len(revisions) - most
	for _, revision := range revisions {
		if excess <= 0 {
			break
		}
		if revision.Info.Status == release.StatusDeployed {
			continue
		}
		_, err := records.Delete(name, revision.Version)
		if err != nil && !errors.Is(err, driver.ErrReleaseNotFound) {
			return fmt.Errorf("trim history of release %s: %w", name, err)
		}
		excess--
	}
	return nil
}

// Forget removes the records of a release, newest last, so that an interrupted run finds the rest.
func Forget(records *storage.Storage, revisions []*release.Release) error {
	for _, revision := range revisions {
		_, err := records.Delete(revision.Name, revision.Version)
		if err != nil && !errors.Is(err, driver.ErrReleaseNotFound) {
			return fmt.Errorf("delete revision %d: %w", revision.Version, err)
		}
	}
	return nil
}
