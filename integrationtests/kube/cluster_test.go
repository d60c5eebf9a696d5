package kube_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fairlead-dev/fairlead/integrationtests/kube"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
)

var clusters = kubetest.Share(kubetest.Options{Nodes: 2})

func TestMain(m *testing.M) { os.Exit(clusters.Run(m)) }

func TestRestartKeepsDataAndAddress(t *testing.T) {
	cluster := clusters.Get(t).Hub
	namespace := kubetest.Namespace(t, cluster)
	createConfigMap(t, cluster, namespace, "kept")
	address, pid := cluster.URL(), cluster.Processes()[kube.APIServer]

	if err := cluster.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.Clients().CoreV1().ConfigMaps(namespace).Get(t.Context(), "kept", metav1.GetOptions{}); err == nil {
		t.Error("a stopped API server answered")
	}
	if err := cluster.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := cluster.StartAPIServer(t.Context()); err == nil {
		t.Error("started an API server that runs")
	}
	if err := cluster.RestartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.Clients().CoreV1().ConfigMaps(namespace).Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Errorf("what was stored: %v", err)
	}
	if cluster.URL() != address {
		t.Errorf("address %s, was %s", cluster.URL(), address)
	}
	if cluster.Processes()[kube.APIServer] == pid {
		t.Error("the same process still runs")
	}
	if err := cluster.Err(); err != nil {
		t.Errorf("the others took it badly: %v", err)
	}
	// The controllers, the scheduler and kwok have found it again.
	createDeployment(t, cluster, namespace, deployment("after", nil))
	waitAvailable(t, cluster, namespace, "after")
}

func TestStopLeavesNothingBehind(t *testing.T) {
	binaries := findBinaries(t)
	dir := filepath.Join(t.TempDir(), "cluster")
	cluster, err := kube.Start(t.Context(), kube.Options{Name: "brief", Dir: dir, Binaries: binaries, APIOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Errorf("second Stop: %v", err)
		}
	})
	processes := cluster.Processes()
	if len(processes) != 2 {
		t.Errorf("an API only cluster runs %v", processes)
	}
	if err := cluster.Stop(); err != nil {
		t.Fatal(err)
	}
	for name, pid := range processes {
		if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
			t.Errorf("%s (pid %d) still runs: %v", name, pid, err)
		}
	}
	if left := cluster.Processes(); len(left) != 0 {
		t.Errorf("Processes names %v", left)
	}
	if err := cluster.StartAPIServer(t.Context()); err == nil {
		t.Error("started the API server of a stopped cluster")
	}
	if err := cluster.RemoveData(); err != nil {
		t.Fatal(err)
	}
	if logs := cluster.LogTails(1); strings.Count(logs, dir) != 2 {
		t.Errorf("the logs are not kept:\n%s", logs)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("data is not removed: %v %v", left, err)
	}
}

func TestEndOfAProcessIsReported(t *testing.T) {
	cluster, err := kube.Start(t.Context(), kube.Options{Name: "hurt", Dir: t.TempDir(), Binaries: findBinaries(t), APIOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := cluster.Err(); err != nil {
		t.Errorf("before: %v", err)
	}
	if err := syscall.Kill(cluster.Processes()[kube.Etcd], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	kubetest.Eventually(t, "the cluster says that etcd is gone", func(context.Context) error {
		if err := cluster.Err(); err == nil || !strings.Contains(err.Error(), "etcd ended by itself") {
			return fmt.Errorf("it says %w", err)
		}
		return nil
	})
	if err := cluster.Stop(); err == nil || !strings.Contains(err.Error(), "etcd ended by itself") {
		t.Errorf("Stop says %v", err)
	}
}

func TestFailingStartSaysWhyAndLeavesNothing(t *testing.T) {
	real := findBinaries(t)
	broken := t.TempDir()
	for _, name := range []string{kube.Etcd, kube.ControllerManager, kube.Scheduler, kube.Kwok, kube.Kubectl} {
		if err := os.Symlink(real.Path(name), filepath.Join(broken, name)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := kube.FindBinaries(t.Context(), broken, t.Output()); err == nil || !strings.Contains(err.Error(), kube.APIServer) {
		t.Errorf("a folder without API server: %v", err)
	}
	script := []byte("#!/bin/sh\necho it is broken\nexit 7\n")
	if err := os.WriteFile(filepath.Join(broken, kube.APIServer), script, 0o755); err != nil {
		t.Fatal(err)
	}
	binaries, err := kube.FindBinaries(t.Context(), broken, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	_, err = kube.StartAll(t.Context(), []kube.Options{
		{Name: "well", Dir: filepath.Join(dir, "well"), Binaries: real, APIOnly: true},
		{Name: "ill", Dir: filepath.Join(dir, "ill"), Binaries: binaries, APIOnly: true},
	})
	if err == nil {
		t.Fatal("started without an API server")
	}
	for _, part := range []string{"ill", "exit status 7", filepath.Join(dir, "ill", "logs", "kube-apiserver.log")} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
	if pids := runningBelow(t, dir); len(pids) != 0 {
		t.Errorf("processes %v are left", pids)
	}
}

func TestIdentities(t *testing.T) {
	cluster := clusters.Get(t).Hub
	namespace := kubetest.Namespace(t, cluster)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "worker"}}
	if _, err := cluster.Clients().CoreV1().ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	worker, err := cluster.ServiceAccount(t.Context(), namespace, "worker")
	if err != nil {
		t.Fatal(err)
	}
	jane, err := cluster.User("jane", "readers")
	if err != nil {
		t.Fatal(err)
	}
	for name, access := range map[string]kube.Access{
		"system:serviceaccount:" + namespace + ":worker": worker,
		"jane":             jane,
		"kubernetes-admin": cluster.Admin(),
	} {
		t.Run(name, func(t *testing.T) {
			if got := whoami(t, access); got != name {
				t.Errorf("is %s", got)
			}
		})
	}

	clients := clientsFor(t, worker)
	_, err = clients.CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("without a role: %v, want forbidden", err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "worker"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "worker"}},
	}
	if _, err := cluster.Clients().RbacV1().RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	kubetest.Eventually(t, "the role is in force", func(ctx context.Context) error {
		_, err := clients.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{})
		return err
	})
	if _, err := cluster.ServiceAccount(t.Context(), namespace, "nobody"); !apierrors.IsNotFound(err) {
		t.Errorf("a token for an account that is not there: %v", err)
	}
}

func TestKubectl(t *testing.T) {
	cluster := clusters.Get(t).Hub
	namespace := kubetest.Namespace(t, cluster)
	manifest := strings.NewReader("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: applied}\n")
	if _, err := cluster.Kubectl(t.Context(), manifest, "apply", "--server-side", "-n", namespace, "-f", "-"); err != nil {
		t.Fatal(err)
	}
	if out, err := cluster.Kubectl(t.Context(), nil, "get", "configmap", "-n", namespace, "applied", "-o", "name"); err != nil || strings.TrimSpace(out) != "configmap/applied" {
		t.Errorf("got %q %v", out, err)
	}
	if _, err := cluster.Kubectl(t.Context(), nil, "get", "nonsense"); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("got %v, want what kubectl says", err)
	}
}

func TestLogTails(t *testing.T) {
	cluster := clusters.Get(t).Hub
	tails := cluster.LogTails(3)
	for _, path := range cluster.Logs() {
		if !strings.Contains(tails, path) {
			t.Errorf("%s is not shown", path)
		}
	}
	if lines := strings.Count(tails, "\n"); lines > len(cluster.Logs())*4 {
		t.Errorf("%d lines:\n%s", lines, tails)
	}
}

func findBinaries(t *testing.T) kube.Binaries {
	t.Helper()
	binaries, err := kube.FindBinaries(t.Context(), "", os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	return binaries
}

// clientsFor reads the kubeconfig, as a program does that was given its path.
func clientsFor(t *testing.T, access kube.Access) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", access.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return clients
}

func createConfigMap(t *testing.T, cluster *kube.Cluster, namespace, name string) {
	t.Helper()
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := cluster.Clients().CoreV1().ConfigMaps(namespace).Create(t.Context(), configMap, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// runningBelow returns the processes whose working directory is below dir.
func runningBelow(t *testing.T, dir string) []string {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	var pids []string
	for _, link := range links {
		if cwd, err := os.Readlink(link); err == nil && bytes.HasPrefix([]byte(cwd), []byte(dir)) {
			pids = append(pids, link)
		}
	}
	return pids
}
