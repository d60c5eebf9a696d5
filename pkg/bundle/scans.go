package bundle

import (
	"strconv"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/names"
)

// scans returns the ImageScans that fleet.yaml asks for.
func (b *builder) scans() []*fleet.ImageScan {
	var out []*fleet.ImageScan
	for i, entry := range b.spec.ImageScans {
		scan := &fleet.ImageScan{Spec: entry.ImageScanSpec}
		scan.APIVersion, scan.Kind = fleet.GroupVersion.String(), "ImageScan"
		scan.Name, scan.Namespace = names.SafeConcat("imagescan", b.name, strconv.Itoa(i)), b.req.Namespace
		scan.Labels = map[string]string{fleet.RepoLabel: b.req.Name}
		scan.Spec.GitRepoName = b.req.Name
		out = append(out, scan)
	}
	return out
}
