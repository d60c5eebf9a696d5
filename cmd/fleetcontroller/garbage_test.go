package main

import "testing"

func TestGarbageFor(t *testing.T) {
	for live, want := range map[uint64]int{
		0: 800, 8 << 20: 800, 32 << 20: 200, 64 << 20: 100, 128 << 20: 50, 1 << 30: 50,
	} {
		if got := garbageFor(live); got != want {
			t.Errorf("%d MiB in use: %d %%, want %d", live>>20, got, want)
		}
	}
}
