package render_test

import (
	"context"
	"fmt"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/render"
	"github.com/fairlead-dev/fairlead/pkg/content"
)

func ExampleObjects() {
	in := render.Input{
		BundleID: "shop-web",
		Manifest: content.Manifest{Resources: []fleet.BundleResource{{
			Name:    "settings.yaml",
			Content: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {currency: EUR}\n",
		}, {
			Name:    "overlays/north/settings_patch.yaml",
			Content: "data: {currency: SEK}\n",
		}}},
		Options: fleet.BundleDeploymentOptions{YAML: &fleet.YAMLOptions{Overlays: []string{"north"}}},
	}
	objects, err := render.Objects(context.Background(), in, render.Capabilities{}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, object := range objects {
		fmt.Println(object.GetKind(), object.GetName(), object.Object["data"])
	}
	// Output: ConfigMap settings map[currency:SEK]
}
