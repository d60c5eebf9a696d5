package stack_test

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fairlead-dev/fairlead/integrationtests/kube"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	"github.com/fairlead-dev/fairlead/integrationtests/stack"
	"github.com/fairlead-dev/fairlead/integrationtests/stack/stacktest"
)

var shared = stacktest.Share(stack.Options{Members: stack.DefaultMembers()[:1]})

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	os.Exit(shared.Run(m))
}

func TestStackRuns(t *testing.T) {
	fleet := shared.Get(t)
	for name, program := range map[string]*stack.Program{"controller": fleet.Controller, "agent": fleet.Members[0].Agent} {
		memory, err := program.Memory()
		if err != nil || memory.Resident == 0 || memory.Peak < memory.Resident {
			t.Errorf("%s: memory %+v, %v", name, memory, err)
		}
		before := program.Pid()
		if err := program.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if program.Pid() == before {
			t.Errorf("%s was not restarted", name)
		}
	}
	_ = kubetest.Eventually
	_ = kube.Options{}
	_ = authenticationv1.TokenReview{}
	_ = metav1.GetOptions{}
	_ = kubernetes.Clientset{}
}
