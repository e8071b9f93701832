// Package child runs another program: on given CPUs, with bounded output and counted CPU time, which end when the
// caller ends. It also sets the process attributes of commands that other packages start. A Room runs programs of the
// user.
package child
