package source

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ctx is for measured processes, which have no test.
var ctx = context.Background()

// everything selects all clusters.
var everything = &metav1.LabelSelector{}
