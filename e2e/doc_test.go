// Package e2e tests the program on real clusters (docs/e2e.md). All other files of the package have the build tag e2e.
package e2e
