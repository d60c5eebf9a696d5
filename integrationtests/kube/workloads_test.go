package kube_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/fairlead-dev/fairlead/integrationtests/kube"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
)

const simulate = "kube.fairlead.dev/simulate"

func TestNodesTakePods(t *testing.T) {
	cluster := clusters.Get(t).Hub
	nodes, err := cluster.Clients().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(nodes.Items) != 2 {
		t.Fatalf("%d nodes, want 2", len(nodes.Items))
	}
	for _, node := range nodes.Items {
		if len(node.Spec.Taints) != 0 {
			t.Errorf("%s is tainted: %v", node.Name, node.Spec.Taints)
		}
	}
}

func TestDeploymentBecomesAvailableAndGoes(t *testing.T) {
	cluster := clusters.Get(t).Hub
	namespace := kubetest.Namespace(t, cluster)
	createDeployment(t, cluster, namespace, deployment("web", nil))
	waitAvailable(t, cluster, namespace, "web")

	err := cluster.Clients().AppsV1().Deployments(namespace).Delete(t.Context(), "web", metav1.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	waitNoPods(t, cluster, namespace)
}

func TestStatefulSetAndDaemonSetBecomeReady(t *testing.T) {
	cluster := clusters.Get(t).Hub
	namespace := kubetest.Namespace(t, cluster)
	apps := cluster.Clients().AppsV1()
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "set"}}
	meta := metav1.ObjectMeta{Name: "set"}
	_, err := apps.StatefulSets(namespace).Create(t.Context(), &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{
		Replicas: ptr.To[int32](2), Selector: selector, Template: podTemplate("set", nil),
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	daemonSelector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "daemon"}}
	_, err = apps.DaemonSets(namespace).Create(t.Context(), &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{
		Selector: daemonSelector, Template: podTemplate("daemon", nil),
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	kubetest.Eventually(t, "both sets are ready on two nodes", func(ctx context.Context) error {
		stateful, err := apps.StatefulSets(namespace).Get(ctx, "set", metav1.GetOptions{})
		if err != nil {
			return err
		}
		daemons, err := apps.DaemonSets(namespace).Get(ctx, "set", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if stateful.Status.AvailableReplicas != 2 || daemons.Status.NumberAvailable != 2 {
			return fmt.Errorf("available: %d replicas, %d daemons", stateful.Status.AvailableReplicas, daemons.Status.NumberAvailable)
		}
		return nil
	})
}

func TestJobsEnd(t *testing.T) {
	cluster := clusters.Get(t).Hub
	namespace := kubetest.Namespace(t, cluster)
	jobs := cluster.Clients().BatchV1().Jobs(namespace)
	for name, test := range map[string]struct {
		labels map[string]string
		want   batchv1.JobConditionType
	}{
		"completes": {nil, batchv1.JobComplete},
		"fails":     {map[string]string{simulate: "crash"}, batchv1.JobFailed},
	} {
		t.Run(name, func(t *testing.T) {
			template := podTemplate(name, test.labels)
			template.Spec.RestartPolicy = corev1.RestartPolicyNever
			_, err := jobs.Create(t.Context(), &batchv1.Job{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec:       batchv1.JobSpec{BackoffLimit: ptr.To[int32](0), Template: template},
			}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			kubetest.Eventually(t, "the job "+name, func(ctx context.Context) error {
				job, err := jobs.Get(ctx, name, metav1.GetOptions{})
				if err != nil {
					return err
				}
				for _, condition := range job.Status.Conditions {
					if condition.Type == test.want && condition.Status == corev1.ConditionTrue {
						return nil
					}
				}
				return fmt.Errorf("conditions %v", job.Status.Conditions)
			})
		})
	}
}

func TestPodsPlayWhatTheirLabelAsksFor(t *testing.T) {
	cluster := clusters.Get(t).Hub
	namespace := kubetest.Namespace(t, cluster)
	pods := cluster.Clients().CoreV1().Pods(namespace)
	createDeployment(t, cluster, namespace, deployment("hang", map[string]string{simulate: "hang"}))
	createDeployment(t, cluster, namespace, deployment("crash", map[string]string{simulate: "crash"}))

	var hanging string
	kubetest.Eventually(t, "one pod hangs and one crashes", func(ctx context.Context) error {
		list, err := pods.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		states := map[string]bool{}
		for _, pod := range list.Items {
			switch {
			case pod.Labels["app"] == "hang" && pod.Spec.NodeName != "" && pod.Status.Phase == corev1.PodPending:
				hanging, states["hang"] = pod.Name, true
			case pod.Labels["app"] == "crash" && crashLoops(pod):
				states["crash"] = true
			}
		}
		if !states["hang"] || !states["crash"] {
			return fmt.Errorf("pods: %v", states)
		}
		return nil
	})
	unlabel := []byte(`{"metadata":{"labels":{"` + simulate + `":null}}}`)
	if _, err := pods.Patch(t.Context(), hanging, types.MergePatchType, unlabel, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	waitAvailable(t, cluster, namespace, "hang")
}

func TestNamespaceIsRemovedWithItsContent(t *testing.T) {
	cluster := clusters.Get(t).Hub
	namespaces := cluster.Clients().CoreV1().Namespaces()
	namespace, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "gone-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	createDeployment(t, cluster, namespace.Name, deployment("web", nil))
	waitAvailable(t, cluster, namespace.Name, "web")
	if err := namespaces.Delete(t.Context(), namespace.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	kubetest.Eventually(t, "the namespace is gone", func(ctx context.Context) error {
		_, err := namespaces.Get(ctx, namespace.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it is there"), err)
	})
}

func TestApprovedRequestGetsACertificate(t *testing.T) {
	cluster := clusters.Get(t).Hub
	const user = "system:fleet:cluster-test:agent"
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	requests := cluster.Clients().CertificatesV1().CertificateSigningRequests()
	request, err := requests.Create(t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "agent-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:           signingRequest(t, key, user),
			SignerName:        certificatesv1.KubeAPIServerClientSignerName,
			ExpirationSeconds: ptr.To[int32](3600),
			Usages:            []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test", Message: "approved by a test",
	}}
	if _, err := requests.UpdateApproval(t.Context(), request.Name, request, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	var certificate []byte
	kubetest.Eventually(t, "the certificate is issued", func(ctx context.Context) error {
		got, err := requests.Get(ctx, request.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if certificate = got.Status.Certificate; len(certificate) == 0 {
			return fmt.Errorf("conditions %v", got.Status.Conditions)
		}
		return nil
	})
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	config := &rest.Config{Host: cluster.URL(), TLSClientConfig: rest.TLSClientConfig{
		CAData:   cluster.CA(),
		CertData: certificate,
		KeyData:  pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}),
	}}
	if got := whoamiBy(t, config); got != user {
		t.Errorf("with the certificate one is %s, want %s", got, user)
	}
}

func signingRequest(t *testing.T, key *ecdsa.PrivateKey, user string) []byte {
	t.Helper()
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: user, Organization: []string{"system:fleet:agents"}}}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

func whoami(t *testing.T, access kube.Access) string {
	t.Helper()
	return whoamiBy(t, access.Config)
}

func whoamiBy(t *testing.T, config *rest.Config) string {
	t.Helper()
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	review, err := clients.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status.UserInfo.Username
}

func crashLoops(pod corev1.Pod) bool {
	for _, container := range pod.Status.ContainerStatuses {
		if container.State.Waiting != nil && container.State.Waiting.Reason == "CrashLoopBackOff" {
			return true
		}
	}
	return false
}

func deployment(name string, labels map[string]string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
		Template: podTemplate(name, labels),
	}}
}

func podTemplate(app string, labels map[string]string) corev1.PodTemplateSpec {
	all := map[string]string{"app": app}
	for key, value := range labels {
		all[key] = value
	}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: all},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "prepare", Image: "example.invalid/prepare"}},
			Containers:     []corev1.Container{{Name: "main", Image: "example.invalid/main"}, {Name: "side", Image: "example.invalid/side"}},
		},
	}
}

func createDeployment(t *testing.T, cluster *kube.Cluster, namespace string, wanted *appsv1.Deployment) {
	t.Helper()
	if _, err := cluster.Clients().AppsV1().Deployments(namespace).Create(t.Context(), wanted, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func waitAvailable(t *testing.T, cluster *kube.Cluster, namespace, name string) {
	t.Helper()
	kubetest.Eventually(t, "deployment "+name+" is available", func(ctx context.Context) error {
		got, err := cluster.Clients().AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range got.Status.Conditions {
			if condition.Type == appsv1.DeploymentAvailable && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("conditions %v", got.Status.Conditions)
	})
}

func waitNoPods(t *testing.T, cluster *kube.Cluster, namespace string) {
	t.Helper()
	kubetest.Eventually(t, "no pod is left", func(ctx context.Context) error {
		pods, err := cluster.Clients().CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("%d pods are", len(pods.Items))
		}
		return err
	})
}
