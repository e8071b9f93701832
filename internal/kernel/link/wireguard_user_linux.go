package link

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"
)

// WireGuardSocket returns the address of the socket at which a process serves a WireGuard device in user space. Each
// network namespace has separate addresses.
func WireGuardSocket(device string) string { return "@cnibench/wireguard/" + device }

// dialWireGuard connects to the process that serves a WireGuard device in user space. It fails if there is no such
// process, for example if the kernel has the device.
func (h *Handle) dialWireGuard(device string) (c net.Conn, err error) {
	err = h.ns.Do(func() error {
		c, err = net.Dial("unix", WireGuardSocket(device))
		return err
	})
	return c, err
}

// setWireGuard configures a device by WireGuard's text protocol, and closes c.
func setWireGuard(c net.Conn, config wgtypes.Config) error {
	var b strings.Builder
	b.WriteString("set=1\n")
	if config.PrivateKey != nil {
		fmt.Fprintf(&b, "private_key=%s\nlisten_port=%d\nfwmark=%d\n", hex.EncodeToString(config.PrivateKey[:]), *config.ListenPort, *config.FirewallMark)
	}
	for _, p := range config.Peers {
		fmt.Fprintf(&b, "public_key=%s\nendpoint=%s\n", hex.EncodeToString(p.PublicKey[:]), p.Endpoint.AddrPort())
		for _, a := range p.AllowedIPs {
			fmt.Fprintf(&b, "allowed_ip=%s\n", a.String())
		}
	}
	return askWireGuard(c, b.String(), func(string, string) error { return nil })
}

// readWireGuard returns the port and the peers of a device, and closes c.
func readWireGuard(c net.Conn, device string) (port int, peers []WireGuardPeer, err error) {
	err = askWireGuard(c, "get=1\n", func(key, value string) (err error) {
		if len(peers) == 0 && (key == "endpoint" || key == "allowed_ip") {
			return errors.New("no public_key is before it")
		}
		switch key {
		case "listen_port":
			port, err = strconv.Atoi(value)
		case "public_key":
			peers = append(peers, WireGuardPeer{Device: device})
		case "endpoint":
			peers[len(peers)-1].Endpoint, err = netip.ParseAddrPort(value)
		case "allowed_ip":
			var a netip.Prefix
			a, err = netip.ParsePrefix(value)
			peers[len(peers)-1].Allowed = append(peers[len(peers)-1].Allowed, a)
		}
		return err
	})
	return port, peers, err
}

// askWireGuard sends a request, calls line for each line of the answer, and closes c. It fails if the process reports
// an error.
func askWireGuard(c net.Conn, request string, line func(key, value string) error) error {
	defer c.Close()
	if _, err := fmt.Fprintf(c, "%s\n", request); err != nil {
		return fmt.Errorf("ask WireGuard in user space: %w", err)
	}
	ended := false
	answer := bufio.NewScanner(c)
	for answer.Scan() && answer.Text() != "" {
		key, value, _ := strings.Cut(answer.Text(), "=")
		if key == "errno" && value != "0" {
			return fmt.Errorf("WireGuard in user space refuses: errno %s", value)
		}
		ended = ended || key == "errno"
		if err := line(key, value); err != nil {
			return fmt.Errorf("WireGuard in user space says %q: %w", answer.Text(), err)
		}
	}
	if err := answer.Err(); err != nil || ended {
		return err
	}
	return errors.New("WireGuard in user space ended before its answer did")
}
