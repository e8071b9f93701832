package cilium

import (
	"net/netip"

	"github.com/cilium/ebpf"

	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
)

// wireguardKey is the key in the ipcache entries of addresses whose packets WireGuard encrypts, as Cilium's agent
// sets it.
const wireguardKey = 0xff

// wireguardCalls has the slots of the tail calls at the WireGuard device, as edge.h numbers them.
var wireguardCalls = map[uint32]string{1: "handle_wireguard", 4: "nat_egress", 5: "dsr", 6: "nat_ingress"}

// variants maps a program to its two replacements on nodes that encrypt: the first for WireGuard, the second for IPsec.
// "" means no replacement.
var variants = map[string][2]string{
	"from_container": {"from_container_marked", "from_container_marked"},
	"from_netdev":    {"", "from_netdev_ipsec"},
	"to_netdev":      {"to_netdev_sealing", "to_netdev_ipsec"},
	"to_host":        {"", "to_host_ipsec"},
}

// programVariant returns the name of the program that this node uses instead of program: its replacement in variants, or
// program itself.
func (n *Node) programVariant(program string) string {
	in := variants[program]
	switch e := n.opts.Encryption; {
	case e.WireGuard != "" && in[0] != "":
		return in[0]
	case e.IPsec != 0 && in[1] != "":
		return in[1]
	}
	return program
}

// removeUnusedEncryption removes from a specification the programs and tables for encryption that this node does not use.
func (n *Node) removeUnusedEncryption(spec *ebpf.CollectionSpec) {
	for plain, others := range variants {
		for _, name := range []string{plain, others[0], others[1]} {
			if name != n.programVariant(plain) {
				delete(spec.Programs, name)
			}
		}
	}
	if n.opts.Encryption.IPsec == 0 {
		delete(spec.Maps, "cilium_node_map")
		delete(spec.Maps, "cilium_encrypt_state")
	}
}

// configureEncryption sets in n.config the indexes of the devices to which packets are sent for encryption. It does
// nothing without encryption, and fails if a device is missing.
func (n *Node) configureEncryption() error {
	o := n.opts
	if o.Encryption.WireGuard != "" {
		dev, err := attach.Interface(o.NS, o.Encryption.WireGuard)
		if err != nil {
			return err
		}
		n.config.Wireguard = uint32(dev.Index)
	}
	if o.Encryption.IPsec == 0 {
		return nil
	}
	host, err := attach.Interface(o.NS, o.Pair[0])
	if err != nil {
		return err
	}
	net, err := attach.Interface(o.NS, o.Pair[1])
	if err != nil {
		return err
	}
	n.config.Host, n.config.Net = uint32(host.Index), uint32(net.Index)
	copy(n.config.NetMac.Addr[:], net.HardwareAddr)
	return nil
}

// loadEncryption loads the programs of the WireGuard device, or stores the node's key for IPsec. It does nothing
// without encryption.
func (n *Node) loadEncryption() error {
	if key := n.opts.Encryption.IPsec; key != 0 {
		return n.host.Maps["cilium_encrypt_state"].Put(uint32(0), key)
	}
	if n.opts.Encryption.WireGuard == "" {
		return nil
	}
	spec, err := loadWireguard()
	if err != nil {
		return err
	}
	n.setCapacities(spec)
	n.removeUnusedEncryption(spec)
	if err := spec.Variables["node"].Set(n.config); err != nil {
		return err
	}
	if n.wireguard, err = attach.Load("cilium wireguard", spec, n.loadOptions(spec)); err != nil {
		return err
	}
	return fillCallTable(n.wireguard, wireguardCalls)
}

// encryptionKey returns the key for the ipcache entries of addresses whose packets are encrypted, 0 without encryption.
func (n *Node) encryptionKey() uint8 {
	if n.opts.Encryption.WireGuard != "" {
		return wireguardKey
	}
	return n.opts.Encryption.IPsec
}

// SetNode stores the number of another node under a, an address of that node. It requires IPsec on this node.
func (n *Node) SetNode(a netip.Addr, number uint16) error {
	key := hostNodeKey{Family: n.fam.number, Ip: addressWords(a)}
	return n.host.Maps["cilium_node_map"].Put(key, hostNodeEntry{Id: number, Key: n.opts.Encryption.IPsec})
}
