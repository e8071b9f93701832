package cli

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/env/kube/recipe"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// TestPlant: file and routes are there while it runs and gone afterwards; a route of somebody else's stays.
func TestPlant(t *testing.T) {
	ns, err := netns.New()
	if err != nil {
		t.Skipf("no right to make network namespaces: %v", err)
	}
	defer ns.Close()
	h, err := link.Open(ns)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	via, mine, theirs := netip.MustParseAddr("192.0.2.2"), netip.MustParsePrefix("10.1.1.0/24"), netip.MustParsePrefix("10.1.2.0/24")
	for _, err := range []error{
		h.Add(link.Bridge{Name: "eth0"}), h.Add(link.Address{Dev: "eth0", Addr: netip.MustParsePrefix("192.0.2.1/24")}), h.Up("eth0"),
		h.Add(link.Route{To: theirs, Via: via, Dev: "eth0"}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	dir, ready := t.TempDir(), filepath.Join(t.TempDir(), "ready")
	s := recipe.PlantSpec{File: "10-x.conflist", Text: "{}", Routes: []recipe.PlantRoute{{To: mine, Via: via}, {To: theirs, Via: via}}}
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- ns.Do(func() error { return keepPlanted(ctx, s, dir, ready) })
	}()
	for tick := time.Tick(5 * time.Millisecond); ctx.Err() == nil; <-tick {
		if _, err := os.Stat(ready); err == nil {
			break
		}
	}
	if got := destinations(t, h); !slices.Equal(got, []netip.Prefix{mine, theirs}) {
		t.Errorf("routes to %v while it runs", got)
	}
	if _, err := os.Stat(filepath.Join(dir, s.File)); err != nil {
		t.Error(err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := destinations(t, h); !slices.Equal(got, []netip.Prefix{theirs}) {
		t.Errorf("routes to %v afterwards", got)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
	s.Routes[0].Via = netip.MustParseAddr("198.51.100.1")
	err = ns.Do(func() error { return keepPlanted(t.Context(), s, dir, ready) })
	if err == nil || !strings.Contains(err.Error(), "no device is on the network of 198.51.100.1") {
		t.Errorf("%v", err)
	}
}

// destinations are those of the routes that somebody made, in order.
func destinations(t *testing.T, h *link.Handle) []netip.Prefix {
	t.Helper()
	routes, err := h.Routes()
	if err != nil {
		t.Fatal(err)
	}
	var list []netip.Prefix
	for _, r := range routes {
		if r.Via.IsValid() {
			list = append(list, r.To)
		}
	}
	slices.SortFunc(list, func(a, b netip.Prefix) int { return a.Compare(b) })
	return list
}

// TestRunIn: commands run in the other root, all of them, and those that fail are named.
func TestRunIn(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("no right to change the root directory")
	}
	var out strings.Builder
	err := runChrooted(t.Context(), "/", []string{"exit 3", "test -d /proc"}, &out)
	if err == nil || !strings.Contains(err.Error(), "exit 3") || out.String() != "done: test -d /proc\n" {
		t.Errorf("%v, %q", err, out.String())
	}
}
