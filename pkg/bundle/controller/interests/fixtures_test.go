package interests

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// unwatched is a bundle whose plans nobody hears of.
func unwatched() *Bundle {
	return &Bundle{count: func(int, int) {}, awaits: func([]types.NamespacedName) {}}
}

var (
	start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	shop  = types.NamespacedName{Namespace: "ws", Name: "shop"}
)
