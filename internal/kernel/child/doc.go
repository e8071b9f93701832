// Package child runs another program: on given CPUs, with bounded output and counted CPU time. The program ends when
// the caller ends. The package also sets the process attributes of commands that other packages start. A Room runs
// programs of the user.
package child
