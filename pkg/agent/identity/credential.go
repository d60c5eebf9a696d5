package identity

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Secret holds the credential, in the agent's namespace on the member.
const Secret = "fleet-agent"

// Keys of the credential Secret.
const (
	kubeconfigKey          = "kubeconfig"
	deploymentNamespaceKey = "deploymentNamespace"
	clusterNamespaceKey    = "clusterNamespace"
	clusterNameKey         = "clusterName"
)

// Credential is an agent's identity on the hub.
type Credential struct {
	// Kubeconfig holds address, authority and client certificate (or, from an upstream hub, a token).
	Kubeconfig []byte
	// DeploymentNamespace on the hub holds the cluster's BundleDeployments.
	DeploymentNamespace string
	// ClusterNamespace and ClusterName name the Cluster.
	ClusterNamespace, ClusterName string
	// TrustSystem makes the system's authorities count beside the kubeconfig's. It is a setting and not stored.
	TrustSystem bool
}

// Config returns the client config in the kubeconfig, without a client-side rate limit.
func (c Credential) Config() (*rest.Config, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(c.Kubeconfig)
	if err != nil {
		// The parser's message may quote what it read.
		return nil, errors.New("the kubeconfig for the hub cannot be read")
	}
	config.QPS = -1
	return config, nil
}

// Certificate returns the client certificate, and nil when the identity is a token.
func (c Credential) Certificate() (*tls.Certificate, error) {
	config, err := c.Config()
	if err != nil || len(config.CertData) == 0 {
		return nil, err
	}
	pair, err := tls.X509KeyPair(config.CertData, config.KeyData)
	if err != nil {
		return nil, errors.New("the client certificate for the hub does not fit its key")
	}
	if pair.Leaf == nil {
		if pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
			return nil, errors.New("the client certificate for the hub cannot be read")
		}
	}
	return &pair, nil
}

// Expired says whether the client certificate has ended, or cannot be read. A token does not end.
func (c Credential) Expired(now time.Time) bool {
	certificate, err := c.Certificate()
	return err != nil || certificate != nil && now.After(certificate.Leaf.NotAfter)
}

// Load reads the credential from the member; nil means that there is none.
func Load(ctx context.Context, member kubernetes.Interface, namespace string) (*Credential, error) {
	secret, err := member.CoreV1().Secrets(namespace).Get(ctx, Secret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get secret %s/%s: %w", namespace, Secret, err)
	}
	if len(secret.Data[kubeconfigKey]) == 0 || len(secret.Data[deploymentNamespaceKey]) == 0 {
		return nil, nil
	}
	return &Credential{
		Kubeconfig:          secret.Data[kubeconfigKey],
		DeploymentNamespace: string(secret.Data[deploymentNamespaceKey]),
		ClusterNamespace:    string(secret.Data[clusterNamespaceKey]),
		ClusterName:         string(secret.Data[clusterNameKey]),
	}, nil
}

// Store writes the credential in one go, so that certificate and key always fit.
func (c Credential) Store(ctx context.Context, member kubernetes.Interface, namespace string) error {
	return Keep(ctx, member, namespace, Secret, map[string][]byte{
		kubeconfigKey:          c.Kubeconfig,
		deploymentNamespaceKey: []byte(c.DeploymentNamespace),
		clusterNamespaceKey:    []byte(c.ClusterNamespace),
		clusterNameKey:         []byte(c.ClusterName),
	})
}

// Keep makes the data of one of the agent's Secrets on the member what is given, whether or not it exists.
func Keep(ctx context.Context, member kubernetes.Interface, namespace, name string, data map[string][]byte) error {
	secrets := member.CoreV1().Secrets(namespace)
	existing, err := secrets.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = secrets.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data,
		}, metav1.CreateOptions{})
	case err == nil:
		existing.Data = data
		_, err = secrets.Update(ctx, existing, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("write secret %s/%s: %w", namespace, name, err)
	}
	return nil
}

// Kubeconfig returns the kubeconfig of a client certificate, as a credential holds it.
func Kubeconfig(url string, ca, certificate, key []byte) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["hub"] = &clientcmdapi.Cluster{Server: url, CertificateAuthorityData: ca}
	config.AuthInfos["agent"] = &clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}
	config.Contexts["hub"] = &clientcmdapi.Context{Cluster: "hub", AuthInfo: "agent"}
	config.CurrentContext = "hub"
	return clientcmd.Write(*config)
}
