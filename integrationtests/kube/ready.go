package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// NodeNameFormat makes the name of a cluster's node from the cluster's name and a number from 1.
const NodeNameFormat = "%s-node-%d"

// askEvery is how often a process that is starting is asked whether it is ready: what is waited for
// tells nobody when it happens.
const askEvery = 50 * time.Millisecond

// waitFor asks until there is no error, and gives up when a process of the cluster ends by itself or
// the context does; the error then holds the last answer.
func (c *Cluster) waitFor(ctx context.Context, what string, ask func(context.Context) error) error {
	ticker := time.NewTicker(askEvery)
	defer ticker.Stop()
	for {
		answer := ask(ctx)
		if answer == nil {
			return nil
		}
		if err := c.Err(); err != nil {
			return fmt.Errorf("wait for %s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w; at last: %w", what, ctx.Err(), answer)
		case <-ticker.C:
		}
	}
}

// waitReady waits until the API server has finished all it does when it starts.
func (c *Cluster) waitReady(ctx context.Context) error {
	client, err := rest.HTTPClientFor(c.Admin().Config)
	if err != nil {
		return fmt.Errorf("wait for the API server: %w", err)
	}
	defer client.CloseIdleConnections()
	return c.waitFor(ctx, "the API server", func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL()+"/readyz", nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("/readyz: %s", response.Status)
		}
		return nil
	})
}

// waitControllers waits for what the controller manager does first for everybody: without the
// default service account no pod is admitted.
func (c *Cluster) waitControllers(ctx context.Context) error {
	if c.options.APIOnly {
		return nil
	}
	err := c.waitFor(ctx, "the controllers", func(ctx context.Context) error {
		_, err := c.clients.CoreV1().ServiceAccounts(corev1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		if err != nil {
			return err
		}
		_, err = c.clients.CoreV1().ConfigMaps(corev1.NamespaceDefault).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		return err
	})
	if err == nil {
		c.step("controllers work")
	}
	return err
}

// createNodes creates the nodes and waits until they take pods.
func (c *Cluster) createNodes(ctx context.Context) error {
	if c.options.Nodes == 0 {
		return nil
	}
	for i := 1; i <= c.options.Nodes; i++ {
		name := fmt.Sprintf(NodeNameFormat, c.options.Name, i)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname:   name,
			corev1.LabelOSStable:   "linux",
			corev1.LabelArchStable: "amd64",
		}}}
		if _, err := c.clients.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create node %s: %w", name, err)
		}
	}
	err := c.waitFor(ctx, "the nodes", func(ctx context.Context) error {
		nodes, err := c.clients.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var unready []error
		for i := range nodes.Items {
			unready = append(unready, c.takesPods(&nodes.Items[i]))
		}
		return errors.Join(unready...)
	})
	if err == nil {
		c.step("nodes are ready")
	}
	return err
}

// takesPods returns why a node takes no pods. A new node is tainted until the controller manager has
// seen it Ready; where there is none, the taint stays.
func (c *Cluster) takesPods(node *corev1.Node) error {
	if len(node.Spec.Taints) > 0 && !c.options.APIOnly {
		return fmt.Errorf("node %s is tainted %s", node.Name, node.Spec.Taints[0].Key)
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("node %s is not Ready", node.Name)
}
