package ipvs

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// Apply makes servers the only virtual servers of ns. It deletes backends that servers does not list. A backend of a TCP
// server that still has connections stays, but gets no new connections. If the kernel has no IPVS, Apply fails with
// errors.ErrUnsupported.
func Apply(ns *netns.NS, servers []Server) error {
	return withConn(ns, func(c *conn) error {
		old, err := c.servers()
		if err != nil {
			return err
		}
		known := map[key]bool{}
		for _, s := range old {
			known[s.key()] = true
		}
		for _, s := range servers {
			if err := c.putServer(s, known[s.key()]); err != nil {
				return fmt.Errorf("virtual server %s: %w", s, err)
			}
			delete(known, s.key())
		}
		for _, s := range old {
			if known[s.key()] {
				if err := c.sendChange(cmdDelService, s, nil); err != nil {
					return fmt.Errorf("take virtual server %s away: %w", s, err)
				}
			}
		}
		return nil
	})
}

// List returns the virtual servers of ns with the backends that get new connections, in no particular order.
func List(ns *netns.NS) ([]Server, error) {
	var servers []Server
	err := withConn(ns, func(c *conn) (err error) {
		if servers, err = c.servers(); err != nil {
			return err
		}
		for i, s := range servers {
			backends, err := c.backends(s)
			if err != nil {
				return fmt.Errorf("virtual server %s: %w", s, err)
			}
			for _, b := range backends {
				servers[i].Connections += int(b.connections)
				if b.weight > 0 {
					servers[i].Backends = append(servers[i].Backends, b.addr)
				}
			}
		}
		return nil
	})
	return servers, err
}

// conn is a connection to the IPVS of one namespace.
type conn struct {
	*genetlink.Conn
	family uint16
}

// withConn calls do with a connection to the IPVS of ns. It fails with errors.ErrUnsupported if the kernel has no
// IPVS.
func withConn(ns *netns.NS, do func(*conn) error) error {
	c, err := genetlink.Dial(&netlink.Config{NetNS: ns.FD()})
	if err != nil {
		return fmt.Errorf("speak to IPVS: %w", err)
	}
	defer c.Close()
	family, err := c.GetFamily(familyName)
	if errors.Is(err, fs.ErrNotExist) {
		return advice.With(fmt.Errorf("the kernel has no IPVS (CONFIG_IP_VS): %w", errors.ErrUnsupported), "modprobe ip_vs ip_vs_rr, or run a kernel that has it")
	}
	if err != nil {
		return fmt.Errorf("find IPVS: %w", err)
	}
	return do(&conn{Conn: c, family: family.ID})
}

// putServer creates the server s. If known is true, the kernel has s already, and putServer changes it. It adds the
// missing backends of s and retires all others.
func (c *conn) putServer(s Server, known bool) error {
	cmd := uint8(cmdNewService)
	if known {
		cmd = cmdSetService
	}
	err := c.sendChange(cmd, s, nil)
	if errors.Is(err, unix.ENOENT) {
		return advice.With(fmt.Errorf("the kernel has no scheduler %s (CONFIG_IP_VS_RR): %w", roundRobin, errors.ErrUnsupported), "modprobe ip_vs_rr")
	}
	if err != nil {
		return err
	}
	var old []backend
	if known {
		if old, err = c.backends(s); err != nil {
			return err
		}
	}
	for _, b := range s.Backends {
		cmd := uint8(cmdNewDest)
		if slices.ContainsFunc(old, func(o backend) bool { return o.addr == b }) {
			cmd = cmdSetDest
		}
		if err := c.sendChange(cmd, s, &backend{addr: b, weight: 1}); err != nil {
			return fmt.Errorf("backend %s: %w", b, err)
		}
	}
	for _, b := range old {
		if slices.Contains(s.Backends, b.addr) {
			continue
		}
		if err := c.retireBackend(s, b); err != nil {
			return fmt.Errorf("take backend %s away: %w", b.addr, err)
		}
	}
	return nil
}

// retireBackend deletes a backend. While the backend of a TCP server has connections, it only sets the backend's weight to
// 0.
func (c *conn) retireBackend(s Server, b backend) error {
	if s.Protocol == TCP && b.connections > 0 {
		return c.sendChange(cmdSetDest, s, &backend{addr: b.addr})
	}
	return c.sendChange(cmdDelDest, s, &b)
}

func (c *conn) servers() ([]Server, error) {
	return dumpObjects(c, cmdGetService, nil, "virtual servers", decodeServer)
}

func (c *conn) backends(s Server) ([]backend, error) {
	data, err := encodeMessage(s, nil)
	if err != nil {
		return nil, err
	}
	return dumpObjects(c, cmdGetDest, data, "backends", func(b []byte) (backend, error) { return decodeBackend(b, s) })
}

// dumpObjects requests all objects that cmd lists, and returns them decoded. what names them in an error.
func dumpObjects[T any](c *conn, cmd uint8, data []byte, what string, decode func([]byte) (T, error)) ([]T, error) {
	answers, err := c.sendRequest(cmd, data, netlink.Request|netlink.Dump)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", what, err)
	}
	var all []T
	for _, m := range answers {
		one, err := decode(m.Data)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

func (c *conn) sendChange(cmd uint8, s Server, b *backend) error {
	data, err := encodeMessage(s, b)
	if err == nil {
		_, err = c.sendRequest(cmd, data, netlink.Request|netlink.Acknowledge)
	}
	return err
}

func (c *conn) sendRequest(cmd uint8, data []byte, flags netlink.HeaderFlags) ([]genetlink.Message, error) {
	m := genetlink.Message{Header: genetlink.Header{Command: cmd, Version: familyVersion}, Data: data}
	return c.Execute(m, c.family, flags)
}
