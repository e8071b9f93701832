// Package bpf is the directory of the BPF programs: one package for each CNI under it, C beside the objects that bpf2go
// made of it, and attach, which puts them on devices. It holds no code, only the test that each object is what its
// source gives.
package bpf
