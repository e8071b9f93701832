// Package spin has a BPF program that executes useless code a known number of times: a cost of known place and size, to
// test code that measures and explains costs.
package spin
