// Package stacktest gives tests a whole fleet (package stack), shared by the tests of one package: started
// by the first that asks, stopped and removed by TestMain, its logs shown and kept when a test fails.
//
//	var shared = stacktest.Share(stack.Options{})
//
//	func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }
//
//	func TestSomething(t *testing.T) {
//		fleet := shared.Get(t)
//		...
//	}
//
// A stack takes about 1.6 GB: run packages that use it one after another (go test -p 1).
package stacktest
