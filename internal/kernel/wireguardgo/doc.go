// Package wireguardgo plays WireGuard in user space, for kernels without its module.
package wireguardgo
