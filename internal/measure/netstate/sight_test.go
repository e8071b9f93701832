package netstate

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
)

var everywhere = netip.MustParsePrefix("0.0.0.0/0")

func TestWay(t *testing.T) {
	lo, eth0, eth1 := Device{Name: "lo", MTU: 65536}, Device{Name: "eth0", MTU: 1500}, Device{Name: "eth1", MTU: 9000}
	for _, c := range []struct {
		name   string
		s      State
		device string
		mtu    int
	}{
		{"the default route's device", State{Devices: []Device{lo, eth0, eth1}, Routes: []Route{{To: everywhere, Device: "eth1"}}}, "eth1", 9000},
		{"the route's own MTU", State{Devices: []Device{lo, eth0}, Routes: []Route{{To: everywhere, Device: "eth0", MTU: 1450}}}, "eth0", 1450},
		{"the only device", State{Devices: []Device{lo, eth0}}, "eth0", 1500},
		{"one of two", State{Devices: []Device{eth0, eth1}}, "", 0},
		{"a route that drops", State{Devices: []Device{eth0, eth1}, Routes: []Route{{To: everywhere, Blackhole: true}}}, "", 0},
		{"none", State{Devices: []Device{lo}}, "", 0},
	} {
		d, mtu, ok := c.s.Way()
		if d.Name != c.device || mtu != c.mtu || ok != (c.device != "") {
			t.Errorf("%s: %s %d %v", c.name, d.Name, mtu, ok)
		}
	}
}

func TestCount(t *testing.T) {
	c := Count([]string{"KUBE-SVC-AAAA", "KUBE-SEP-B", "KUBE-FIREWALL", "cali-FORWARD", "cali-tw-x", "CILIUM_INPUT", "INPUT", "FLANNEL-FWD"})
	if c.Services != 1 || c.Prefixes["KUBE-"] != 3 || c.Prefixes["cali-"] != 2 || c.Prefixes["CILIUM_"] != 1 || c.Prefixes["FLANNEL-"] != 1 || len(c.Prefixes) != 4 {
		t.Errorf("%+v", c)
	}
}

func TestParse(t *testing.T) {
	whole := State{BootID: "b", Devices: []Device{{Name: "eth0", Kind: "veth", MTU: 1500, Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")}}},
		Programs: &[]Program{}, Unproven: []Unproven{{WhatChains, "no right"}}}
	b, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Parse(b)
	if err != nil || s.Programs == nil || s.Missing(WhatChains) != "no right" || s.Missing(WhatPrograms) != "" {
		t.Errorf("%+v, %v", s, err)
	}
	if d, ok := s.Device("eth0"); !ok || d.Addresses[0].String() != "10.0.0.1/24" {
		t.Errorf("%+v", d)
	}
	for text, want := range map[string]string{"{}": "empty", "": "document of look: ", `{"devices":[{"name":1}]}`: "document of look: ", strings.Repeat(" ", maxDocument+1): "bytes, more than"} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %q in it", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"bootID":"x","devices":[{"name":"eth0"}],"routes":[{"to":"0.0.0.0/0","device":"eth0"}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Parse(b)
		if err != nil {
			return
		}
		if d, _, ok := s.Way(); ok && d.Name == "lo" && len(s.Routes) == 0 {
			t.Error("the loopback is the way out")
		}
	})
}
