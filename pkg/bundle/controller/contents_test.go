package controller

import (
	"testing"
	"time"
)

func TestContentsRememberWhatIsNeeded(t *testing.T) {
	now := start
	kept := newContents(nil, nil, nil, nil, nil, func() time.Time { return now })
	if kept.touch("s-a", false) || !kept.lastNeeded("s-a").IsZero() {
		t.Error("a Content that nobody saw counts as known")
	}
	if !kept.touch("s-a", true) || !kept.lastNeeded("s-a").Equal(start) {
		t.Error("a Content that was stored is not known")
	}
	now = start.Add(time.Minute)
	if !kept.touch("s-a", false) || !kept.lastNeeded("s-a").Equal(now) {
		t.Error("a known Content is not needed anew")
	}
	kept.forget("s-a")
	if kept.touch("s-a", false) {
		t.Error("a Content that is gone counts as known")
	}
}

func TestUnusedContentsAreKeptForAWhile(t *testing.T) {
	for name, test := range map[string]struct {
		created, needed time.Time
		want            time.Duration
	}{
		"just made":            {start, time.Time{}, unusedFor},
		"made a minute ago":    {start.Add(-time.Minute), time.Time{}, unusedFor - time.Minute},
		"old":                  {start.Add(-time.Hour), time.Time{}, 0},
		"old, needed just now": {start.Add(-time.Hour), start, unusedFor},
		"old, needed long ago": {start.Add(-time.Hour), start.Add(-unusedFor), 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := keptFor(unusedFor, start, test.created, test.needed); got != test.want {
				t.Errorf("kept for %s, want %s", got, test.want)
			}
		})
	}
}

func TestValuesCache(t *testing.T) {
	var cache valuesCache
	if _, ok := cache.get(shop, "h1"); ok {
		t.Error("an empty cache has values")
	}
	cache.put(shop, "h1", map[string][]byte{"values.yaml": []byte("1")})
	if data, ok := cache.get(shop, "h1"); !ok || string(data["values.yaml"]) != "1" {
		t.Errorf("values %v", data)
	}
	if _, ok := cache.get(shop, "h2"); ok {
		t.Error("values of another version are given out")
	}
	cache.drop(shop)
	if _, ok := cache.get(shop, "h1"); ok || len(cache.entries) != 0 {
		t.Error("dropping leaves something")
	}
}
