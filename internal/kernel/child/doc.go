// Package child runs another program: on given CPUs, with bounded output and counted CPU time, and no longer than the
// caller lives. It also sets the process attributes of commands that other packages start. A Room runs what a user brings.
package child
