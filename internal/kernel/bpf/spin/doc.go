// Package spin has a BPF program that does nothing of use a known number of times: a cost of known place and size, to test what measures
// and explains costs.
package spin
