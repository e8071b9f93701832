// Package sriov is a model of SR-IOV: each pod has a device of its own on the switch.
package sriov
