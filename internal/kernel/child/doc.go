// Package child runs a program of somebody else beside the caller: on given CPUs, with bounded output, its CPU time
// counted, and dead when the caller is.
package child
