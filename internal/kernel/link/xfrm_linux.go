package link

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/vocab/each"
)

// XFRMState is a security association of IPsec. With it the kernel encrypts or decrypts the packets of one direction of
// a tunnel, by ESP with AES-GCM. The key is derived from the addresses, so it is not secret: it is only for
// measurements.
type XFRMState struct {
	From, To netip.Addr
	// SPI is the number of the association, equal at both ends.
	SPI int
	// Mark and Mask select packets by their mark; Mask 0 selects all. OutMark and OutMask set the mark of the result.
	Mark, Mask, OutMark, OutMask uint32
}

// XFRMPolicy defines what the kernel requires of packets in one direction.
type XFRMPolicy struct {
	// Direction is "out", "in" or "fwd".
	Direction string
	// To has the destinations; the sources are any.
	To netip.Prefix
	// Mark and Mask select packets by their mark; Mask 0 selects all.
	Mark, Mask uint32
	Priority   int
	// State is the association that packets must use. The zero State permits any association, and packets without one.
	State XFRMState
	// Drop drops all these packets; State is then ignored.
	Drop bool
}

// directions has the kernel's numbers of the directions of a policy.
var directions = map[string]netlink.Dir{"out": netlink.XFRM_DIR_OUT, "in": netlink.XFRM_DIR_IN, "fwd": netlink.XFRM_DIR_FWD}

// requestID is the number that links a policy to its states.
const requestID = 1

// withXFRM calls do with a netlink socket for IPsec in the namespace.
func (h *Handle) withXFRM(do func(*netlink.Handle) error) error {
	return h.ns.Do(func() error {
		nl, err := netlink.NewHandle(unix.NETLINK_XFRM)
		if err != nil {
			return fmt.Errorf("open netlink for IPsec: %w", err)
		}
		defer nl.Close()
		return do(nl)
	})
}

// xfrmMark returns a mark in netlink's format, nil if mask is 0.
func xfrmMark(value, mask uint32) *netlink.XfrmMark {
	if mask == 0 {
		return nil
	}
	return &netlink.XfrmMark{Value: value, Mask: mask}
}

func (s XFRMState) addTo(h *Handle) error {
	const salt = 4
	key := sha256.Sum256([]byte("cnibench " + s.From.String() + " " + s.To.String()))
	state := netlink.XfrmState{
		Src: netIP(s.From), Dst: netIP(s.To), Proto: netlink.XFRM_PROTO_ESP, Mode: netlink.XFRM_MODE_TUNNEL, Spi: s.SPI, Reqid: requestID,
		ReplayWindow: 1024, ESN: true, Mark: xfrmMark(s.Mark, s.Mask), OutputMark: xfrmMark(s.OutMark, s.OutMask),
		Aead: &netlink.XfrmStateAlgo{Name: "rfc4106(gcm(aes))", Key: key[:16+salt], ICVLen: 128},
	}
	if err := h.withXFRM(func(nl *netlink.Handle) error { return nl.XfrmStateAdd(&state) }); err != nil {
		return stateError(fmt.Errorf("add IPsec state from %s to %s: %w", s.From, s.To, err))
	}
	return nil
}

// stateError adds advice to err if the kernel lacks ESP (its type or its protocol) or the cipher (ENOSYS).
func stateError(err error) error {
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPROTONOSUPPORT) {
		return missingError("ESP with AES-GCM", "CONFIG_INET_ESP, CONFIG_CRYPTO_GCM", "-a esp4 gcm", err)
	}
	return err
}

func (p XFRMPolicy) addTo(h *Handle) error {
	everywhere := ipNet(netip.PrefixFrom(netip.IPv4Unspecified(), 0))
	policy := netlink.XfrmPolicy{
		Dir: directions[p.Direction], Src: everywhere, Dst: ipNet(p.To), Mark: xfrmMark(p.Mark, p.Mask), Priority: p.Priority,
	}
	switch {
	case p.Drop:
		policy.Action = netlink.XFRM_POLICY_BLOCK
	case p.State == XFRMState{}:
		policy.Tmpls = []netlink.XfrmPolicyTmpl{{Proto: netlink.XFRM_PROTO_ESP, Mode: netlink.XFRM_MODE_TUNNEL, Optional: 1}}
	default:
		policy.Tmpls = []netlink.XfrmPolicyTmpl{{
			Proto: netlink.XFRM_PROTO_ESP, Mode: netlink.XFRM_MODE_TUNNEL, Src: netIP(p.State.From), Dst: netIP(p.State.To), Spi: p.State.SPI, Reqid: requestID,
		}}
	}
	if err := h.withXFRM(func(nl *netlink.Handle) error { return nl.XfrmPolicyUpdate(&policy) }); err != nil {
		return fmt.Errorf("add IPsec policy %s to %s: %w", p.Direction, p.To, err)
	}
	return nil
}

// XFRM returns short descriptions of the IPv4 states and policies of IPsec.
func (h *Handle) XFRM() (list []string, err error) {
	err = h.withXFRM(func(nl *netlink.Handle) error {
		states, err := nl.XfrmStateList(unix.AF_INET)
		if err != nil {
			return fmt.Errorf("list IPsec states: %w", err)
		}
		policies, err := nl.XfrmPolicyList(unix.AF_INET)
		if err != nil {
			return fmt.Errorf("list IPsec policies: %w", err)
		}
		list = append(each.Of(states, func(s netlink.XfrmState) string {
			algorithm := "no AEAD"
			if s.Aead != nil {
				algorithm = s.Aead.Name
			}
			return fmt.Sprintf("state %s > %s spi %d mark %s %s", s.Src, s.Dst, s.Spi, markWords(s.Mark), algorithm)
		}), each.Of(policies, func(p netlink.XfrmPolicy) string {
			return fmt.Sprintf("policy %s %s mark %s", p.Dir, p.Dst, markWords(p.Mark))
		})...)
		return nil
	})
	return list, err
}

func markWords(m *netlink.XfrmMark) string {
	if m == nil {
		return "any"
	}
	return fmt.Sprintf("%#x/%#x", m.Value, m.Mask)
}
