// Package kindnet is kindnet, and kindnetd of kind, from which it came: routes between nodes, and no tunnel.
package kindnet
