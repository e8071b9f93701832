// Package kindnet has kindnet, and kind's kindnetd, from which it originated: routes between nodes, and no tunnel.
package kindnet
