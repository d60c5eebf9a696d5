// Package kubetest gives tests real clusters: a hub and members, started together, stopped and
// removed afterwards, their logs shown when a test fails.
//
// A test that needs clusters of its own calls Start. Tests of one package that can live next to each
// other share a set:
//
//	var clusters = kubetest.Share(kubetest.Options{Members: 3})
//
//	func TestMain(m *testing.M) { os.Exit(clusters.Run(m)) }
//
//	func TestSomething(t *testing.T) {
//		fleet := clusters.Get(t) // started by the first test that asks
//		namespace := kubetest.Namespace(t, fleet.Hub)
//		...
//	}
//
// There is no skipping: programs that are missing are built (hack/kube/build.sh), and clusters that
// do not start fail the test. A set of four takes about eight seconds to start on two cores and
// one and a half gigabytes: run no more than two packages that use it at a time (go test -p 2).
package kubetest
