package own

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
	"github.com/cnibench/cnibench/internal/kernel/ipt"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/plan/profilefile"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// Place is a network namespace that a profile file changes.
type Place struct {
	Name string
	NS   *netns.NS
	// Changes are the file's changes for this namespace.
	Changes profilefile.Place
	// Profile is the profile file. Values are the values of its variables.
	Profile profilefile.Profile
	Values  map[string]string
	// Pods are the node's ends of its pods' devices, for BPF programs.
	Pods []string
	// Iptables returns the programs that load Changes.Rules.
	Iptables func() (*ipt.Tool, error)
}

// Change makes the changes one key after another until one fails. The caller closes the returned BPF programs, also
// after an error. The other changes last as long as the namespace.
func (p Place) Change(ctx context.Context) ([]io.Closer, error) {
	var programs []io.Closer
	for _, step := range []struct {
		key string
		do  func(context.Context) error
	}{
		{"sysctls", p.setSysctls}, {"routes", p.addRoutes}, {"offloads", p.setOffloads}, {"rules", p.Rules}, {"nft", p.runNFT}, {"tc", p.runTC},
		{"bpf", func(context.Context) (err error) { programs, err = p.attachPrograms(); return err }},
	} {
		if err := step.do(ctx); err != nil {
			return programs, fmt.Errorf("%s: %s: %w", p.Name, step.key, err)
		}
	}
	return programs, nil
}

func (p Place) setSysctls(context.Context) error {
	var list []netns.Setting
	for _, name := range slices.Sorted(maps.Keys(p.Changes.Sysctls)) {
		list = append(list, netns.Setting{Name: profilefile.SysctlPath(name), Value: p.Changes.Sysctls[name]})
	}
	return netns.SetSysctls(p.NS, list)
}

func (p Place) addRoutes(context.Context) error {
	if len(p.Changes.Routes) == 0 {
		return nil
	}
	var list []link.Thing
	for _, r := range p.Changes.Routes {
		to, err := netip.ParsePrefix(profilefile.Expand(r.To, p.Values))
		if err != nil {
			return err
		}
		var via netip.Addr
		if r.Via != "" {
			if via, err = netip.ParseAddr(profilefile.Expand(r.Via, p.Values)); err != nil {
				return err
			}
		}
		list = append(list, link.Route{To: to, Via: via, Dev: r.Dev, MTU: r.MTU})
	}
	return link.In(p.NS, func(at *link.Handle) error { return at.Add(list...) })
}

func (p Place) setOffloads(context.Context) error {
	for _, dev := range slices.Sorted(maps.Keys(p.Changes.Offloads)) {
		features, err := profilefile.ParseFeatures(p.Changes.Offloads[dev])
		if err == nil {
			err = link.In(p.NS, func(at *link.Handle) error { return at.SetFeatures(dev, features) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Rules adds the iptables rules of the file. Call it again after kube-proxy's rules were replaced, because the
// replacement also removes the rules of the file.
func (p Place) Rules(ctx context.Context) error {
	if p.Changes.Rules == "" {
		return nil
	}
	tool, err := p.Iptables()
	if err != nil {
		return err
	}
	return tool.Change(ctx, p.NS, profilefile.Expand(p.Changes.Rules, p.Values))
}

func (p Place) runNFT(ctx context.Context) error {
	return p.feedProgram(ctx, "nft", p.Changes.NFT, "-f", "-")
}

func (p Place) runTC(ctx context.Context) error {
	return p.feedProgram(ctx, "tc", p.Changes.TC, "-batch", "-")
}

// feedProgram runs a program with text, its variables expanded, as input. It does nothing if text is "".
func (p Place) feedProgram(ctx context.Context, program, text string, args ...string) error {
	if text == "" {
		return nil
	}
	err := ipt.Feed(ctx, p.NS, program, profilefile.Expand(text, p.Values), args...)
	if err != nil {
		return advice.With(err, "the text of the profile file is the input of "+program+" "+strings.Join(args, " "))
	}
	return nil
}

// attachPrograms attaches the BPF programs. It returns those that it attached, also after an error.
func (p Place) attachPrograms() ([]io.Closer, error) {
	var all []io.Closer
	for _, b := range p.Changes.BPF {
		hook := attach.Ingress
		if b.Hook == attach.Egress.String() {
			hook = attach.Egress
		}
		devices := []string{b.Dev}
		if b.Dev == "pods" {
			devices = p.Pods
		}
		var places []attach.Place
		for _, dev := range devices {
			places = append(places, attach.Place{Device: dev, Hook: hook, Program: b.Program})
		}
		c, err := attach.File(p.NS, p.Profile.Path(b.File), places...)
		all = append(all, c...)
		if err != nil {
			return all, err
		}
	}
	return all, nil
}
