package sources

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/fetch"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// credentialsByPath is the key of the Secret of spec.helmSecretNameForPaths.
const credentialsByPath = "secrets-path.yaml"

// charts returns where the charts of a GitRepo come from, with its credentials. The caller closes it.
func (o *Opener) charts(ctx context.Context, repo *fleet.GitRepo) (*fetch.Source, error) {
	switch {
	case repo.Spec.HelmSecretNameForPaths != "":
		secret, err := o.namedSecret(ctx, repo, "helmSecretNameForPaths", repo.Spec.HelmSecretNameForPaths)
		if err != nil {
			return nil, err
		}
		byPath, err := fetch.CredentialsByPath(secret.Data[credentialsByPath])
		if err != nil {
			return nil, fmt.Errorf("read Secret %s/%s: %w", secret.Namespace, secret.Name, err)
		}
		return o.Fetcher.Source(func(path string) fetch.Credentials { return withFlags(byPath(path), repo) }), nil
	case repo.Spec.HelmSecretName != "":
		secret, err := o.namedSecret(ctx, repo, "helmSecretName", repo.Spec.HelmSecretName)
		if err != nil {
			return nil, err
		}
		credentials, err := fetch.CredentialsFromSecret(secret.Data)
		if err != nil {
			return nil, fmt.Errorf("read Secret %s/%s: %w", secret.Namespace, secret.Name, err)
		}
		credentials.URLRegex = repo.Spec.HelmRepoURLRegex
		return o.Fetcher.Source(func(string) fetch.Credentials { return withFlags(credentials, repo) }), nil
	}
	return o.Fetcher.Source(func(string) fetch.Credentials { return withFlags(fetch.Credentials{}, repo) }), nil
}

// withFlags adds what the GitRepo says about TLS, which upstream applies to charts as well.
func withFlags(credentials fetch.Credentials, repo *fleet.GitRepo) fetch.Credentials {
	credentials.InsecureSkipTLSVerify = credentials.InsecureSkipTLSVerify || repo.Spec.InsecureSkipTLSVerify
	return credentials
}

func (o *Opener) namedSecret(ctx context.Context, repo *fleet.GitRepo, field, name string) (*corev1.Secret, error) {
	var secret corev1.Secret
	err := o.Reader.Get(ctx, types.NamespacedName{Namespace: repo.Namespace, Name: name}, &secret)
	if apierrors.IsNotFound(err) {
		return nil, fault.New(fault.Stalled, "SecretNotFound",
			"Secret %s/%s named by spec.%s does not exist; create it or correct the name", repo.Namespace, name, field)
	}
	if err != nil {
		return nil, fmt.Errorf("read Secret %s/%s: %w", repo.Namespace, name, err)
	}
	return &secret, nil
}
