package agent

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-dev/fairlead/integrationtests/bench/report"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	"github.com/fairlead-dev/fairlead/integrationtests/stack/pair"
)

func isAgent(userAgent string) bool { return strings.HasPrefix(userAgent, "fleet-agent/") }

// secretBundle holds Secrets, so that the agent watches that kind.
const secretBundle = `apiVersion: v1
kind: Secret
metadata: {name: ours, labels: {bench: ours}}
stringData: {a: b}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: ours, labels: {bench: ours}}
data: {value: first}
`

// measureSecrets compares what an agent holds with what one holds that starts, works and collects garbage
// among very many Secrets that are not its own.
func measureSecrets(b *testing.B) {
	p := start(b)
	l := load{name: "unrelated", bundles: 20, objects: 10}
	deployments := l.store(b, p, "first")
	told := settled(b, p, deployments)
	each(b, l.bundles, atOnce, func(ctx context.Context, i int) error { return p.Create(ctx, deployments[i]) })
	told()
	p.Put(b, pair.Bundle{Name: "secrets", Files: map[string]string{"all.yaml": secretBundle}})
	restart := func(value string) {
		if err := p.Restart(); err != nil {
			b.Fatal(err)
		}
		changed := l.store(b, p, value)
		told := settled(b, p, changed)
		each(b, l.bundles, atOnce, func(ctx context.Context, i int) error { return p.Change(ctx, changed[i]) })
		told()
		pause(b, 2*quietTime)
	}
	restart("second")
	before := addMemory(b, p, "restarted, none of somebody else's Secrets", memoryLimit)

	namespace := kubetest.Namespace(b, p.Member)
	data := map[string][]byte{"value": []byte(strings.Repeat("x", 1024))}
	each(b, size.secrets, atOnce, func(ctx context.Context, i int) error {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("unrelated-%05d", i)}, Data: data}
		_, err := p.Member.Clients().CoreV1().Secrets(namespace).Create(ctx, secret, metav1.CreateOptions{})
		return err
	})
	restart("third")
	after := addMemory(b, p, fmt.Sprintf("restarted among %d unrelated Secrets of 1 KB", size.secrets), memoryLimit)
	sheet.Add(report.Figure{Chapter: "agent: resident memory", Name: "growth", Value: after - before, Unit: report.Megabytes})
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(before, "MB-before")
	b.ReportMetric(after, "MB-after")
}

// measureMany gives one agent very many bundles.
func measureMany(b *testing.B) {
	p := start(b)
	l := load{name: "many", bundles: size.bundles, objects: 10}
	deployments := l.store(b, p, "first")
	told := settled(b, p, deployments)
	began := time.Now()
	each(b, l.bundles, atOnce, func(ctx context.Context, i int) error { return p.Create(ctx, deployments[i]) })
	took := told().Sub(began)
	what := fmt.Sprintf("%d bundles of %d objects", l.bundles, l.objects)
	addMemory(b, p, what, manyMemoryLimit)
	if err := p.Restart(); err != nil {
		b.Fatal(err)
	}
	changed := l.store(b, p, "second")
	told = settled(b, p, changed)
	again := time.Now()
	each(b, l.bundles, atOnce, func(ctx context.Context, i int) error { return p.Change(ctx, changed[i]) })
	tookAgain := told().Sub(again)
	used, err := p.Agent.ProcessorTime()
	if err != nil {
		b.Fatal(err)
	}
	pause(b, quietTime)
	addMemory(b, p, what+", restarted and all changed", manyMemoryLimit)
	const chapter = "agent: very many bundles"
	sheet.Add(
		report.Figure{Chapter: chapter, Name: what + ": created", Value: took.Seconds(), Unit: report.Seconds},
		report.Figure{Chapter: chapter, Name: what + ": changed, by an agent that starts", Value: tookAgain.Seconds(), Unit: report.Seconds},
		report.Figure{Chapter: chapter, Name: what + ": of it the agent's processor time", Value: used.Seconds(), Unit: report.Seconds},
	)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(took.Seconds(), "s-create")
	b.ReportMetric(tookAgain.Seconds(), "s-change")
}
