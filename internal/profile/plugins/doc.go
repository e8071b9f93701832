// Package plugins is the reference CNI plugins alone, with static routes between the nodes: bridge, ptp, macvlan, ipvlan.
package plugins
