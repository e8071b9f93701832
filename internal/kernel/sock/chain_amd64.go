package sock

//go:noescape
func run(first *call, n int) (done int)
