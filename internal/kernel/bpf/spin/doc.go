// Package spin has a BPF program that does nothing for a known number of instructions: a cost of known place, to test what
// explains costs.
package spin
