package link

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/vishvananda/netlink"
	"golang.zx2c4.com/wireguard/wgctrl"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"
)

// WireGuard is a device that encrypts with the key of Owner. If a process serves a device of this name in user space,
// Add configures that device. Otherwise Add creates a device, and fails if the kernel has no WireGuard.
type WireGuard struct {
	Name  string
	MTU   int
	Owner string
	// Port is the UDP port on which the device listens.
	Port int
	// Mark is the mark of the packets that the device sends to its peers, 0 for none.
	Mark int
}

// WireGuardPeer is the far end of a tunnel.
type WireGuardPeer struct {
	// Device is the near end. Owner is the owner of the far end's key.
	Device, Owner string
	// Endpoint is the address at which the far end listens.
	Endpoint netip.AddrPort
	// Allowed are the prefixes behind the peer. The device sends packets for them to the peer, and accepts from the
	// peer only packets from them.
	Allowed []netip.Prefix
}

// wireGuardKey returns the private key of owner. The key is derived from the name, so that two ends need not exchange
// keys. Such a key is not secret: it is only for measurements.
func wireGuardKey(owner string) wgtypes.Key {
	key := wgtypes.Key(sha256.Sum256([]byte("cnibench " + owner)))
	key[0] &= 248
	key[31] = key[31]&127 | 64
	return key
}

func (w WireGuard) addTo(h *Handle) error {
	key := wireGuardKey(w.Owner)
	config := wgtypes.Config{PrivateKey: &key, ListenPort: &w.Port, FirewallMark: &w.Mark}
	if c, err := h.dialWireGuard(w.Name); err == nil {
		return cmp.Or(setWireGuard(c, config), h.Up(w.Name))
	}
	if err := h.makeDevice(&netlink.Wireguard{LinkAttrs: deviceAttrs(w.Name, w.MTU, nil)}); err != nil {
		return err
	}
	return h.configureWireGuard(w.Name, config)
}

func (p WireGuardPeer) addTo(h *Handle) error {
	allowed := each.Of(p.Allowed, func(a netip.Prefix) net.IPNet { return *ipNet(a) })
	peer := wgtypes.PeerConfig{
		PublicKey: wireGuardKey(p.Owner).PublicKey(), Endpoint: net.UDPAddrFromAddrPort(p.Endpoint), AllowedIPs: allowed,
	}
	return h.configureWireGuard(p.Device, wgtypes.Config{Peers: []wgtypes.PeerConfig{peer}})
}

// WireGuardPeers returns the UDP port at which a device listens, and its peers in no particular order. Their Owner is
// "".
func (h *Handle) WireGuardPeers(device string) (port int, peers []WireGuardPeer, err error) {
	if c, err := h.dialWireGuard(device); err == nil {
		return readWireGuard(c, device)
	}
	err = h.withWireGuardClient(func(c *wgctrl.Client) error {
		d, err := c.Device(device)
		if err != nil {
			return fmt.Errorf("ask %s for its peers: %w", device, err)
		}
		port = d.ListenPort
		for _, p := range d.Peers {
			peer := WireGuardPeer{Device: device}
			if p.Endpoint != nil {
				end := p.Endpoint.AddrPort()
				peer.Endpoint = netip.AddrPortFrom(end.Addr().Unmap(), end.Port())
			}
			for _, a := range p.AllowedIPs {
				peer.Allowed = append(peer.Allowed, prefixOf(&a))
			}
			peers = append(peers, peer)
		}
		return nil
	})
	return port, peers, err
}

// configureWireGuard configures a device. It asks the process that serves the device in user space. If there is none,
// it asks the kernel.
func (h *Handle) configureWireGuard(device string, c wgtypes.Config) error {
	if socket, err := h.dialWireGuard(device); err == nil {
		return setWireGuard(socket, c)
	}
	return h.withWireGuardClient(func(client *wgctrl.Client) error {
		if err := client.ConfigureDevice(device, c); err != nil {
			return fmt.Errorf("configure %s: %w", device, err)
		}
		return nil
	})
}

// withWireGuardClient calls do with a client for the kernel's WireGuard in the namespace.
func (h *Handle) withWireGuardClient(do func(*wgctrl.Client) error) error {
	return h.ns.Do(func() error {
		client, err := wgctrl.New()
		if err != nil {
			return fmt.Errorf("speak to WireGuard: %w", err)
		}
		return errors.Join(do(client), client.Close())
	})
}
