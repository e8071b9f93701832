// Package flannel is flannel with its backends vxlan, host-gw and wireguard.
package flannel
