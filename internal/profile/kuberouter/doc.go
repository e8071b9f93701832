// Package kuberouter is kube-router: a bridge, routes, and a firewall with rules for each pod.
package kuberouter
