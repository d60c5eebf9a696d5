package kube

import (
	_ "embed"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/pki"
)

// Files below a cluster's folder. Processes run in that folder and name them relative to it, which
// also keeps etcd's socket within the 108 bytes a Unix socket's path may have.
const (
	pkiDir         = "pki"
	caCertFile     = "ca.crt"
	caKeyFile      = "ca.key"
	serverCertFile = "apiserver.crt"
	serverKeyFile  = "apiserver.key"
	tokenKeyFile   = "service-account.key"

	logsDir         = "logs"
	accessDir       = "kubeconfigs"
	adminFile       = "kubeconfig"
	auditPolicyFile = "audit-policy.yaml"
	auditLogFile    = "audit.log"
	stagesFile      = "stages.yaml"
	etcdSocket      = "unix://etcd.sock"
)

const (
	serviceCIDR    = "10.96.0.0/20"
	firstServiceIP = "10.96.0.1"
	podCIDR        = "10.244.0.1/16"
	issuer         = "https://kubernetes.default.svc.cluster.local"
)

// The identities of the components, as kubeadm names them: RBAC's default roles are bound to them.
const (
	adminUser             = "kubernetes-admin"
	mastersGroup          = "system:masters"
	controllerManagerUser = "system:kube-controller-manager"
	schedulerUser         = "system:kube-scheduler"
	kwokUser              = "kwok"
)

//go:embed stages.yaml
var stages []byte

//go:embed audit-policy.yaml
var auditPolicy []byte

// writeSettings puts the embedded settings into a cluster's folder.
func writeSettings(dir string) error {
	return writeFiles(dir, map[string][]byte{stagesFile: stages, auditPolicyFile: auditPolicy})
}

// writeKeys puts the keys and certificates that the processes read as files into a cluster's folder.
func writeKeys(dir string, ca *pki.Authority) error {
	serverCert, serverKey, err := ca.Server(net.ParseIP(firstServiceIP))
	if err != nil {
		return fmt.Errorf("issue the API server's certificate: %w", err)
	}
	tokenKey, err := pki.NewKey()
	if err != nil {
		return fmt.Errorf("create the service account key: %w", err)
	}
	return writeFiles(filepath.Join(dir, pkiDir), map[string][]byte{
		caCertFile: ca.CertPEM(), caKeyFile: ca.KeyPEM(),
		serverCertFile: serverCert, serverKeyFile: serverKey,
		tokenKeyFile: tokenKey,
	})
}

// writeFiles writes files for nobody but this user.
func writeFiles(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// etcdArgs listens on Unix sockets only: no port to collide with, and nobody but this user gets in.
func etcdArgs() []string {
	const peer = "http://127.0.0.1:0" // named because it must be; a single member dials nobody
	return []string{
		"--name=only",
		"--data-dir=etcd",
		"--listen-client-urls=" + etcdSocket,
		"--advertise-client-urls=" + etcdSocket,
		"--listen-peer-urls=unix://etcd-peer.sock",
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=only=" + peer,
		// The data is thrown away with the cluster; syncing it to disk only costs time.
		"--unsafe-no-fsync",
		"--heartbeat-interval=100",
		"--election-timeout=500",
		"--log-level=warn",
	}
}

func apiServerArgs(port int) []string {
	return []string{
		"--etcd-servers=" + etcdSocket,
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		"--permit-port-sharing=true", // see process.Port
		// Endpoints may not hold loopback addresses, so the kubernetes Service has none.
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=" + serviceCIDR,
		"--tls-cert-file=" + filepath.Join(pkiDir, serverCertFile),
		"--tls-private-key-file=" + filepath.Join(pkiDir, serverKeyFile),
		"--client-ca-file=" + filepath.Join(pkiDir, caCertFile),
		"--service-account-issuer=" + issuer,
		"--service-account-key-file=" + filepath.Join(pkiDir, tokenKeyFile),
		"--service-account-signing-key-file=" + filepath.Join(pkiDir, tokenKeyFile),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--audit-policy-file=" + auditPolicyFile,
		"--audit-log-path=" + auditLogFile,
		"--audit-log-maxsize=0", // one file, never rotated: Writes reads all of it
		"--profiling=false",
	}
}

func controllerManagerArgs(kubeconfig string) []string {
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--use-service-account-credentials=true",
		"--root-ca-file=" + filepath.Join(pkiDir, caCertFile),
		"--service-account-private-key-file=" + filepath.Join(pkiDir, tokenKeyFile),
		"--cluster-signing-cert-file=" + filepath.Join(pkiDir, caCertFile),
		"--cluster-signing-key-file=" + filepath.Join(pkiDir, caKeyFile),
		"--leader-elect=false", // there is one, and an idle cluster should write nothing
		"--secure-port=0",
		"--profiling=false",
		"--kube-api-qps=400",
		"--kube-api-burst=800",
		// A machine that is busy compiling may starve kwok for a while; its nodes stay.
		"--node-monitor-grace-period=10m",
	}
}

func schedulerArgs(kubeconfig string) []string {
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--leader-elect=false",
		"--secure-port=0",
		"--profiling=false",
		"--kube-api-qps=400",
		"--kube-api-burst=800",
	}
}

func kwokArgs(kubeconfig string) []string {
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--config=" + stagesFile,
		"--manage-all-nodes=true",
		"--cidr=" + podCIDR,
		"--node-lease-duration-seconds=40",
		"--v=WARN",
	}
}
