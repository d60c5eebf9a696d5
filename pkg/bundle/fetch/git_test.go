package fetch

import (
	"context"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/pkg/bundle/archive"
	"github.com/fairlead-dev/fairlead/pkg/bundle/charts"
	"github.com/fairlead-dev/fairlead/pkg/bundle/tree"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

func TestFetchGit(t *testing.T) {
	repository := fstest.MapFS{
		"Chart.yaml": {Data: []byte("name: top")}, ".helmignore": {Data: []byte("x")}, "charts/web/Chart.yaml": {Data: []byte("name: web")},
		"charts/web/link": {Data: []byte("../../Chart.yaml"), Mode: fs.ModeSymlink}, "out/link": {Data: []byte("../../x"), Mode: fs.ModeSymlink},
	}
	key := Credentials{Username: "u", Password: "p", SSHKey: []byte("k"), KnownHosts: "h", URLRegex: "ssh://git@host\\.test|ssh://host\\.test|https://host\\.test"}
	for name, test := range map[string]struct {
		chart      string
		want       GitRef
		wantFiles  []string
		wantReason string
	}{
		"https":      {"git::https://host.test/x/y//charts/web?ref=v1", GitRef{URL: "https://host.test/x/y", Ref: "v1", Username: "u", Password: "p", SSHKey: []byte("k"), KnownHosts: "h"}, []string{"Chart.yaml", "link"}, ""},
		"whole":      {"https://host.test/y.git", GitRef{URL: "https://host.test/y.git", Username: "u", Password: "p", SSHKey: []byte("k"), KnownHosts: "h"}, []string{"Chart.yaml", "charts/web/Chart.yaml", "charts/web/link"}, tree.ReasonLeaves},
		"ssh":        {"ssh://git@host.test/x/y.git//charts/web", GitRef{URL: "ssh://git@host.test/x/y.git", Username: "u", Password: "p", SSHKey: []byte("k"), KnownHosts: "h"}, []string{"Chart.yaml", "link"}, ""},
		"scp":        {"git@host.test:x/y//charts/web?ref=main", GitRef{URL: "ssh://git@host.test/x/y", Ref: "main", Username: "u", Password: "p", SSHKey: []byte("k"), KnownHosts: "h"}, []string{"Chart.yaml", "link"}, ""},
		"not bound":  {"github.com/x/y//charts/web", GitRef{URL: "https://github.com/x/y", KnownHosts: "h"}, []string{"Chart.yaml", "link"}, ""},
		"in the URL": {"git::https://a:b@other.test/y//charts/web", GitRef{URL: "https://other.test/y", Username: "a", Password: "b", KnownHosts: "h"}, []string{"Chart.yaml", "link"}, ""},
		"no folder":  {"git::https://host.test/y//nope", GitRef{}, nil, ReasonChartNotFound},
		"out of it":  {"git::https://host.test/y//../x", GitRef{}, nil, tree.ReasonLeaves},
		"link out":   {"git::https://host.test/y//out", GitRef{}, nil, tree.ReasonLeaves},
	} {
		t.Run(name, func(t *testing.T) {
			var asked GitRef
			options := Options{Git: func(_ context.Context, ref GitRef) (fs.FS, error) {
				asked = ref
				return repository, nil
			}}
			got, err := fetch(t, options, key, charts.Ref{Chart: test.chart})
			if test.wantReason != "" {
				if fault.ReasonOf(err) != test.wantReason || !fault.NeedsPerson(err) {
					t.Errorf("got %v, want a stalled %s", err, test.wantReason)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			files, err := archive.Unpack(got.Archive, archive.DefaultLimits)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, file := range files {
				names = append(names, file.Name)
			}
			if diff := cmp.Diff(test.wantFiles, names); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}
