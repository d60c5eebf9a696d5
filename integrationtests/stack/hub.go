package stack

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-dev/fairlead/integrationtests/charts"
	"github.com/fairlead-dev/fairlead/integrationtests/kube"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/process"
)

func (s *Stack) installHub(ctx context.Context) error {
	if err := install(ctx, s.Hub, "fleet-crd", nil); err != nil {
		return err
	}
	err := install(ctx, s.Hub, "fleet", map[string]any{
		"apiServerURL": s.Hub.URL(),
		"apiServerCA":  string(s.Hub.CA()),
	})
	if err != nil {
		return err
	}
	return s.secureWebhooks(ctx)
}

func install(ctx context.Context, cluster *kube.Cluster, chart string, values map[string]any) error {
	dir, err := charts.Dir(chart)
	if err != nil {
		return err
	}
	_, err = charts.Install(ctx, cluster.Admin().Config, dir, chart, SystemNamespace, values)
	return err
}

// webhookSecret is the Secret of an installation that notifications are signed with, by provider.
const webhookSecret = "gitjob-webhook"

// secureWebhooks makes the Secret that push notifications are signed with.
func (s *Stack) secureWebhooks(ctx context.Context) error {
	s.webhookKey = rand.Text()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: SystemNamespace, Name: webhookSecret},
		StringData: map[string]string{"github": s.webhookKey},
	}
	if err := s.Client.Create(ctx, secret); err != nil {
		return fmt.Errorf("create Secret %s: %w", webhookSecret, err)
	}
	return nil
}

// Announce tells the hub of a push to a branch, with a signature, as GitHub does.
func (s *Stack) Announce(ctx context.Context, cloneURL, branch, commit string) error {
	body, err := json.Marshal(map[string]any{
		"ref": "refs/heads/" + branch, "after": commit, "repository": map[string]string{"clone_url": cloneURL},
	})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.WebhookURL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	mac := hmac.New(sha256.New, []byte(s.webhookKey))
	mac.Write(body)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-GitHub-Event", "push")
	request.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("announce a push to %s: %w", cloneURL, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("announce a push to %s: the hub answers %s", cloneURL, response.Status)
	}
	return nil
}

func (s *Stack) startController(ctx context.Context) error {
	webhook, err := FreeAddress()
	if err != nil {
		return err
	}
	s.WebhookURL = "http://" + webhook + "/"
	// There is one controller. With an election it would end whenever a busy machine or a restart of the API server
	// keeps it from renewing its lease in time, and wait for the lease of its former self when it was killed.
	args := []string{"--leader-elect=false", "--listen=" + webhook, "--cache-dir=" + filepath.Join(s.options.Dir, "cache")}
	program, err := s.startProgram(ctx, s.Hub, s.options.Programs.Controller, controllerProgram, controllerProgram, append(args, s.options.ControllerArgs...)...)
	if err != nil {
		return err
	}
	s.Controller = program
	return program.WaitReady(ctx)
}

// startProgram starts a program as a service account of a cluster.
func (s *Stack) startProgram(ctx context.Context, cluster *kube.Cluster, path, account, name string, args ...string) (*Program, error) {
	access, err := cluster.ServiceAccount(ctx, SystemNamespace, account)
	if err != nil {
		return nil, err
	}
	metrics, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	health, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	child, err := s.parent.Start(process.Command{
		Name: name,
		Path: path,
		Args: append([]string{
			"--kubeconfig=" + access.Kubeconfig,
			"--namespace=" + SystemNamespace,
			"--metrics-bind-address=" + metrics,
			"--health-probe-bind-address=" + health,
		}, args...),
		Dir: cluster.Dir(),
		Log: s.logOf(name),
	})
	if err != nil {
		return nil, err
	}
	return &Program{Process: child, Metrics: metrics, Health: health}, nil
}
