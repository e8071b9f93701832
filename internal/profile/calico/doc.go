// Package calico is Calico with its iptables, nftables and eBPF dataplanes.
package calico
