package kube

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
)

// tokenLifetime of the service account tokens handed out: longer than any test or demo.
const tokenLifetime = 24 * time.Hour

// Access is one identity on a cluster, for code in this process and, as a file, for programs.
type Access struct {
	// Config is the caller's to change. It has no client-side rate limit.
	Config *rest.Config
	// Kubeconfig is the path of a file that says the same; it goes with the cluster's folder.
	Kubeconfig string
}

// URL returns the address of the API server. It stays the same when the API server is restarted.
func (c *Cluster) URL() string { return fmt.Sprintf("https://127.0.0.1:%d", c.port.Number()) }

// CA returns the certificate, in PEM, of the authority that signed the API server's.
func (c *Cluster) CA() []byte { return c.authority.CertPEM() }

// Admin returns the access of the administrator, who may do everything.
func (c *Cluster) Admin() Access {
	return Access{Config: rest.CopyConfig(c.admin.Config), Kubeconfig: c.admin.Kubeconfig}
}

// User returns access by a client certificate for any user in any groups. What it may do is up to
// RBAC.
func (c *Cluster) User(name string, groups ...string) (Access, error) {
	return c.certificateAccess(filepath.Join(accessDir, "user_"+url.PathEscape(name)), name, groups)
}

// ServiceAccount returns access by a token of a service account that exists, valid for a day, as a
// pod that runs under it has.
func (c *Cluster) ServiceAccount(ctx context.Context, namespace, name string) (Access, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: ptr.To(int64(tokenLifetime.Seconds())),
	}}
	token, err := c.clients.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return Access{}, fmt.Errorf("request a token for service account %s/%s on %s: %w", namespace, name, c.options.Name, err)
	}
	return c.writeAccess(filepath.Join(accessDir, "serviceaccount_"+namespace+"_"+name), name, &clientcmdapi.AuthInfo{Token: token.Status.Token})
}

// openAdmin makes the administrator's access, which everything else here uses.
func (c *Cluster) openAdmin() error {
	admin, err := c.certificateAccess(adminFile, adminUser, []string{mastersGroup})
	if err != nil {
		return err
	}
	clients, err := kubernetes.NewForConfig(admin.Config)
	if err != nil {
		return fmt.Errorf("make clients: %w", err)
	}
	c.admin, c.clients = admin, clients
	return nil
}

func (c *Cluster) certificateAccess(file, user string, groups []string) (Access, error) {
	certPEM, keyPEM, err := c.authority.Client(user, groups)
	if err != nil {
		return Access{}, fmt.Errorf("issue a certificate for user %s: %w", user, err)
	}
	return c.writeAccess(file, user, &clientcmdapi.AuthInfo{ClientCertificateData: certPEM, ClientKeyData: keyPEM})
}

// writeAccess writes a kubeconfig below the cluster's folder and reads it back as a client config.
func (c *Cluster) writeAccess(file, user string, auth *clientcmdapi.AuthInfo) (Access, error) {
	kubeconfig := clientcmdapi.NewConfig()
	name := c.options.Name
	kubeconfig.Clusters[name] = &clientcmdapi.Cluster{Server: c.URL(), CertificateAuthorityData: c.authority.CertPEM()}
	kubeconfig.AuthInfos[user] = auth
	kubeconfig.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: user}
	kubeconfig.CurrentContext = name
	path := filepath.Join(c.options.Dir, file)
	if err := clientcmd.WriteToFile(*kubeconfig, path); err != nil { // mode 0600
		return Access{}, fmt.Errorf("write kubeconfig of %s: %w", user, err)
	}
	config, err := clientcmd.NewDefaultClientConfig(*kubeconfig, nil).ClientConfig()
	if err != nil {
		return Access{}, fmt.Errorf("read kubeconfig of %s: %w", user, err)
	}
	config.QPS = -1
	return Access{Config: config, Kubeconfig: path}, nil
}
