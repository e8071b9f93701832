// Package sriov is a model of SR-IOV: each pod has its own device on the switch.
package sriov
