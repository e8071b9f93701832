// Package walktest creates a node with pods and a client outside the cluster, for tests that let packets walk the rules of a
// node in iptables or nftables. The client is also the node's gateway:
//
//	client 198.18.0.2 ── 198.18.0.1 eth0 node ─┬─ calia ── a 10.42.0.11     no address on the node's side, as Calico
//	                                           ├─ calib ── b 10.42.0.12
//	                                           ├─ calic ── c 10.42.0.13
//	                                           └─ vethd ── d 10.42.3.2      10.42.3.1 on the node's side, as ptp
package walktest
