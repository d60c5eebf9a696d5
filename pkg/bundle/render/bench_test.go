package render

import "testing"

func BenchmarkObjects(b *testing.B) {
	for _, recorded := range readRecordings(b) {
		switch recorded.name {
		case "23-content-encoding/silo-one/silo-grain", "06-chart-in-dir/beacon-cape/beacon-lamp", "12-kustomize-dirs/cellar-a/cellar-wine":
		default:
			continue
		}
		b.Run(recorded.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Objects(b.Context(), recorded.input, Capabilities{}, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
