package main

import (
	"context"
	"fmt"
	"path/filepath"
)

// introduce shows what runs, where it is, and what to try.
func (d *demo) introduce() {
	fmt.Fprintln(d.out)
	// What is shown is of this moment; that it cannot be read is shown too.
	if progress, err := d.stack.Progress(context.Background(), gitRepo); err != nil {
		fmt.Fprintln(d.out, err)
	} else {
		d.table(progress)
	}
	kubectl, err := d.shortcuts()
	if err != nil {
		fmt.Fprintln(d.out, err)
		return
	}
	fmt.Fprintf(d.out, "\nWhere it is (all on 127.0.0.1)\n")
	for _, line := range [][2]string{
		{"git repository", d.sources.Examples.HTTPURL()},
		{"Helm repository", d.sources.Charts.URL()},
		{"webhooks", d.stack.WebhookURL},
		{"hub's metrics", "http://" + d.stack.Controller.Metrics + "/metrics"},
		{"hub", d.stack.Hub.URL()},
		{"  kubeconfig", short(d.stack.Hub.Admin().Kubeconfig)},
	} {
		fmt.Fprintf(d.out, "  %-16s %s\n", line[0], line[1])
	}
	for _, member := range d.stack.Members {
		fmt.Fprintf(d.out, "  %-16s %s\n  %-16s %s\n", member.Name, member.Cluster.URL(), "  kubeconfig", short(member.Cluster.Admin().Kubeconfig))
	}
	fmt.Fprintf(d.out, "  %-16s %s\n", "logs", short(filepath.Join(d.stack.Dir(), "logs")))
	d.suggest(kubectl)
}

// suggest prints commands that can be pasted as they are.
func (d *demo) suggest(kubectl map[string]string) {
	clone := short(filepath.Join(d.home.run(), "clone"))
	fmt.Fprintf(d.out, `
Three things to try, in another terminal
  1. See what the hub sees:
       %[1]s get gitrepos,bundles,clusters -A
  2. Change something, push it, and watch it arrive on prod:
       git clone -q %[3]s %[4]s && cd %[4]s
       sed -i.bak 's/replicas: 2/replicas: 5/' helm-chart/fleet.yaml && rm helm-chart/fleet.yaml.bak
       git -c user.name=me -c user.email=me@example.com commit -qam 'More replicas' && git push -q && cd - >/dev/null
       %[2]s get deployment guestbook -n helm-chart --watch
  3. Delete something on prod, and watch it come back:
       %[2]s delete deployment hello -n raw-manifests
       %[2]s get deployment hello -n raw-manifests --watch

Ctrl-C stops everything, as does make demo-down.
`, short(kubectl["hub"]), short(kubectl["prod"]), d.sources.Examples.HTTPURL(), clone)
}
