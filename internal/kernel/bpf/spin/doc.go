// Package spin has BPF programs that execute useless code a known number of times. So the place and the size of their
// cost are known. They test code that measures and explains costs.
package spin
