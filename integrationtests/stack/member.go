package stack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fairlead-dev/fairlead/integrationtests/kube"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

// tokenLifetime is longer than any run.
const tokenLifetime = 24 * time.Hour

// Member is one cluster of the fleet, with its agent.
type Member struct {
	Cluster *kube.Cluster
	// Name is also that of its Cluster object.
	Name   string
	Labels map[string]string
	// Namespace on the hub holds its BundleDeployments.
	Namespace string
	Agent     *Program
	// Client is the administrator's on the member.
	Client client.Client
}

func agentName(member string) string { return agentProgram + "-" + member }

// join makes a cluster a member, as the README has a person do it, and waits until it is Available.
func (s *Stack) join(ctx context.Context, member *Member) error {
	values, err := s.token(ctx, member.Name)
	if err != nil {
		return err
	}
	labels := map[string]any{}
	for key, value := range member.Labels {
		labels[key] = value
	}
	maps.Copy(values, map[string]any{"clusterName": member.Name, "labels": labels})
	if err := install(ctx, member.Cluster, "fleet-agent", values); err != nil {
		return err
	}
	// There is one agent, as there is one controller: see startController.
	args := append([]string{"--leader-elect=false"}, s.options.AgentArgs...)
	member.Agent, err = s.startProgram(ctx, member.Cluster, s.options.Programs.Agent, agentProgram, agentName(member.Name), args...)
	if err != nil {
		return err
	}
	return member.Agent.waitFor(ctx, "Cluster "+member.Name+" is Available", func(ctx context.Context) error {
		return s.available(ctx, member)
	})
}

// token makes a registration token and returns the values it offers to the agent's chart.
func (s *Stack) token(ctx context.Context, name string) (map[string]any, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Workspace}}
	if err := s.Client.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("create namespace %s: %w", Workspace, err)
	}
	token := &fleet.ClusterRegistrationToken{ObjectMeta: metav1.ObjectMeta{Namespace: Workspace, Name: name}}
	token.Spec.TTL = &fleet.Duration{Duration: tokenLifetime}
	if err := s.Client.Create(ctx, token); err != nil {
		return nil, fmt.Errorf("create registration token %s: %w", name, err)
	}
	var secret corev1.Secret
	err := s.Controller.waitFor(ctx, "registration token "+name+" has its values", func(ctx context.Context) error {
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(token), token); err != nil {
			return err
		}
		if token.Status.SecretName == "" {
			return errors.New("it names no Secret")
		}
		return s.Client.Get(ctx, client.ObjectKey{Namespace: Workspace, Name: token.Status.SecretName}, &secret)
	})
	if err != nil {
		return nil, err
	}
	values := map[string]any{}
	if err := yaml.Unmarshal(secret.Data["values"], &values); err != nil {
		return nil, fmt.Errorf("read the values of registration token %s: %w", name, err)
	}
	return values, nil
}

func (s *Stack) available(ctx context.Context, member *Member) error {
	var cluster fleet.Cluster
	if err := s.Client.Get(ctx, client.ObjectKey{Namespace: Workspace, Name: member.Name}, &cluster); err != nil {
		return err
	}
	if !status.IsTrue(cluster.Status.Conditions, fleet.ConditionAvailable) {
		return fmt.Errorf("phase %q, conditions %v", cluster.Status.Phase, cluster.Status.Conditions)
	}
	member.Namespace = cluster.Status.Namespace
	return nil
}

// shownWidth is where a shown line of a log is cut.
const shownWidth = 600

// tail returns the last lines of a log under a line with its path.
func tail(path string, lines int) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Sprintf("--- %v\n", err)
	}
	all := bytes.Split(bytes.TrimRight(content, "\n"), []byte("\n"))
	var out bytes.Buffer
	fmt.Fprintf(&out, "--- %s\n", path)
	for _, line := range all[max(0, len(all)-lines):] {
		fmt.Fprintf(&out, "%s\n", line[:min(len(line), shownWidth)])
	}
	return out.String()
}
