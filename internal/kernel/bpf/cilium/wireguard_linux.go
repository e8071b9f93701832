package cilium

import (
	"github.com/cilium/ebpf"

	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
)

// encryptionKey is what the agent writes into entries of addresses whose packets WireGuard encrypts.
const encryptionKey = 0xff

// wireguardCalls are the slots of the tail calls at the device that encrypts; edge.h numbers them.
var wireguardCalls = map[uint32]string{1: "handle_wireguard", 4: "nat_egress", 5: "dsr", 6: "nat_ingress"}

// loadWireGuard loads the programs of the device that encrypts, if there is one.
func (n *Node) loadWireGuard() error {
	if n.opts.WireGuard == "" {
		return nil
	}
	spec, err := loadWireguard()
	if err != nil {
		return err
	}
	n.size(spec)
	if err := spec.Variables["node"].Set(n.config); err != nil {
		return err
	}
	if n.wireguard, err = attach.Load("cilium wireguard", spec, n.share(spec)); err != nil {
		return err
	}
	return fillCalls(n.wireguard, wireguardCalls)
}

// toNetdev is the program that what leaves the node passes last.
func (n *Node) toNetdev() string {
	if n.opts.WireGuard != "" {
		return "to_netdev_sealing"
	}
	return "to_netdev"
}

// fromContainer is the program that what a pod sends passes first.
func (n *Node) fromContainer() string {
	if n.opts.WireGuard != "" {
		return "from_container_marked"
	}
	return "from_container"
}

// only leaves one of several programs in a specification.
func only(spec *ebpf.CollectionSpec, one string, of ...string) {
	for _, name := range of {
		if name != one {
			delete(spec.Programs, name)
		}
	}
}
