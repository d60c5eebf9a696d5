package controller

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/webhook"
)

// installationSecret holds the webhook secrets of GitRepos that name none.
const installationSecret = "gitjob-webhook"

// Announcements connects a webhook.Receiver with GitRepos: a push becomes status.webhookCommit, which
// wakes up the controller wherever it runs. Nothing else writes that field.
type Announcements struct {
	Client client.Client
	// Reader reads Secrets from the API server.
	Reader client.Reader
	// SystemNamespace holds the installation's Secret.
	SystemNamespace string
	Now             func() time.Time
}

var (
	_ webhook.GitRepos = Announcements{}
	_ webhook.Secrets  = Announcements{}
	_ webhook.Notifier = Announcements{}
)

// GitRepos lists all GitRepos.
func (a Announcements) GitRepos(ctx context.Context) ([]webhook.GitRepo, error) {
	var list fleet.GitRepoList
	if err := a.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list gitrepos: %w", err)
	}
	repos := make([]webhook.GitRepo, 0, len(list.Items))
	for i := range list.Items {
		repo := &list.Items[i]
		repos = append(repos, webhook.GitRepo{
			Namespace: repo.Namespace, Name: repo.Name,
			URL: repo.Spec.Repo, Branch: repo.Spec.Branch, Revision: repo.Spec.Revision,
			Secret: repo.Spec.WebhookSecret,
		})
	}
	return repos, nil
}

// WebhookSecret returns the data of the Secret a GitRepo names, or of the installation's.
func (a Announcements) WebhookSecret(ctx context.Context, repo webhook.GitRepo) (map[string][]byte, error) {
	key := types.NamespacedName{Namespace: repo.Namespace, Name: repo.Secret}
	if repo.Secret == "" {
		key = types.NamespacedName{Namespace: a.SystemNamespace, Name: installationSecret}
	}
	var secret corev1.Secret
	err := a.Reader.Get(ctx, key, &secret)
	if client.IgnoreNotFound(err) != nil || err != nil && repo.Secret != "" {
		return nil, fmt.Errorf("read webhook Secret %s: %w", key, err)
	}
	return secret.Data, nil
}

// Notify notes on a GitRepo that a push was announced.
func (a Announcements) Notify(ctx context.Context, announced webhook.GitRepo, commit string) error {
	before := &fleet.GitRepo{ObjectMeta: metav1.ObjectMeta{Namespace: announced.Namespace, Name: announced.Name}}
	after := before.DeepCopy()
	after.Status.WebhookCommit = commit
	after.Status.LastWebhookTime = metav1.NewTime(a.Now())
	err := a.Client.Status().Patch(ctx, after, client.MergeFrom(before))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("announce a push to gitrepo %s/%s: %w", announced.Namespace, announced.Name, err)
	}
	return nil
}
