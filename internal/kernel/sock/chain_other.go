//go:build linux && !amd64

package sock

func run(first *call, n int) (done int) { return plainRun(first, n) }
