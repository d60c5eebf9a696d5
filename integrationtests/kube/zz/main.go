package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"time"

	"github.com/fairlead-dev/fairlead/integrationtests/kube"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	b, err := kube.FindBinaries(ctx, "", os.Stderr)
	if err != nil {
		panic(err)
	}
	os.RemoveAll("/tmp/kx/c")
	t := time.Now()
	var opts []kube.Options
	for i := range len(os.Args[1:]) {
		nodes := 0
		fmt.Sscan(os.Args[1+i], &nodes)
		opts = append(opts, kube.Options{Name: fmt.Sprintf("c%d", i), Dir: fmt.Sprintf("/tmp/kx/c/c%d", i), Binaries: b, Nodes: nodes, Logf: func(f string, a ...any) { fmt.Printf(f+"\n", a...) }})
	}
	cs, err := kube.StartAll(ctx, opts)
	if err != nil {
		panic(err)
	}
	fmt.Println("all", time.Since(t))
	for _, c := range cs {
		for n, pid := range c.Processes() {
			out, _ := exec.Command("sh", "-c", fmt.Sprintf("grep -E 'VmRSS|RssAnon' /proc/%d/status | tr -s '\\n\\t ' ' '; cut -d' ' -f14,15 /proc/%d/stat", pid, pid)).Output()
			fmt.Printf("%s %-25s %d %s", c.Name(), n, pid, out)
		}
		fmt.Println(c.Admin().Kubeconfig)
	}
	<-ctx.Done()
	t = time.Now()
	fmt.Println(kube.StopAll(cs), time.Since(t))
}
