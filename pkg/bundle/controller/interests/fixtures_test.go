package interests

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func uncounted(int, int) {}

var (
	start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	shop  = types.NamespacedName{Namespace: "ws", Name: "shop"}
)
