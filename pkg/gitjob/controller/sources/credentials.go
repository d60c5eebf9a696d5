package sources

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/git"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/git/credential"
)

// defaultSecret is used when a GitRepo names no Secret and one of this name exists.
const defaultSecret = "gitcredential"

// gitSource returns where and with which credentials a GitRepo is read.
func (o *Opener) gitSource(ctx context.Context, repo *fleet.GitRepo) (git.Source, error) {
	source := git.Source{
		URL:                   repo.Spec.Repo,
		Branch:                repo.Spec.Branch,
		Revision:              repo.Spec.Revision,
		CABundle:              repo.Spec.CABundle,
		InsecureSkipTLSVerify: repo.Spec.InsecureSkipTLSVerify,
	}
	secret, err := o.secret(ctx, repo)
	if err != nil {
		return source, err
	}
	hostKeys, err := o.HostKeys(ctx)
	if err != nil {
		return source, fmt.Errorf("read known hosts: %w", err)
	}
	source.Auth = credential.Anonymous(hostKeys)
	if secret != nil {
		source.Auth, err = credential.FromSecret(string(secret.Type), secret.Data, hostKeys)
	}
	if err != nil {
		return source, fmt.Errorf("credentials of gitrepo %s/%s: %w", repo.Namespace, repo.Name, err)
	}
	return source, nil
}

// secret returns the GitRepo's credentials, or nil when it has none.
func (o *Opener) secret(ctx context.Context, repo *fleet.GitRepo) (*corev1.Secret, error) {
	if repo.Spec.ClientSecretName != "" {
		return o.namedSecret(ctx, repo, "clientSecretName", repo.Spec.ClientSecretName)
	}
	var secret corev1.Secret
	err := o.Reader.Get(ctx, types.NamespacedName{Namespace: repo.Namespace, Name: defaultSecret}, &secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Secret %s/%s: %w", repo.Namespace, defaultSecret, err)
	}
	return &secret, nil
}
