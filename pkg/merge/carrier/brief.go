package carrier

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// metadataAlone asks an API server to answer with no more than the metadata of an object, if it can
// (https://kubernetes.io/docs/reference/using-api/api-concepts/#metadata-only-fetches).
const metadataAlone = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

var deploymentKind = fleet.GroupVersion.WithKind("BundleDeployment")

// brief is a client that is told of a new BundleDeployment's metadata alone.
type brief struct {
	client.Client
	deployments rest.Interface
}

// Brief returns a client that is as another, but asks for no more than the metadata of BundleDeployments that it makes:
// a fan-out need not be told again what it sent. They get their UID and resource version. The config and its HTTP client
// are those of the other client.
func Brief(other client.Client, config *rest.Config, via *http.Client) (client.Client, error) {
	deployments, err := apiutil.RESTClientForGVK(deploymentKind, true, false, config, serializer.NewCodecFactory(other.Scheme()), via)
	if err != nil {
		return nil, fmt.Errorf("make a client of BundleDeployments: %w", err)
	}
	return &brief{Client: other, deployments: deployments}, nil
}

// Create makes an object; one with options as the other client does.
func (b *brief) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	deployment, ok := object.(*fleet.BundleDeployment)
	if !ok || len(options) > 0 {
		return b.Client.Create(ctx, object, options...)
	}
	sent := *deployment
	sent.SetGroupVersionKind(deploymentKind)
	body, err := json.Marshal(&sent)
	if err != nil {
		return fmt.Errorf("encode deployment %s/%s: %w", deployment.Namespace, deployment.Name, err)
	}
	answer := b.deployments.Post().Namespace(deployment.Namespace).Resource("bundledeployments").
		SetHeader("Accept", metadataAlone).SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body).Do(ctx)
	if err := answer.Error(); err != nil {
		return err
	}
	var made metav1.PartialObjectMetadata
	data, err := answer.Raw()
	if err == nil {
		err = json.Unmarshal(data, &made)
	}
	if err != nil {
		return fmt.Errorf("read the answer to a new deployment %s/%s: %w", deployment.Namespace, deployment.Name, err)
	}
	deployment.UID, deployment.ResourceVersion = made.UID, made.ResourceVersion
	return nil
}
