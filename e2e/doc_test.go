// Package e2e tests the program on real clusters (docs/how-to/run-a-test-cluster.md). All other files of the package have
// the build tag e2e.
package e2e
