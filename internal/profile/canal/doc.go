// Package canal is Calico's pods and policy over flannel's tunnel.
package canal
