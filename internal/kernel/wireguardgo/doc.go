// Package wireguardgo runs WireGuard in user space, for kernels without its module.
package wireguardgo
