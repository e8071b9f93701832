package ipt_test

import (
	"errors"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/dataplane/policy"
	"github.com/cnibench/cnibench/internal/dataplane/walktest"
	"github.com/cnibench/cnibench/internal/kernel/ipt"
)

// world is a node whose rules one flavour of iptables loads.
type world struct {
	walktest.World
	tool *ipt.Tool
}

// eachWorld builds a world for every flavour of iptables that the machine has.
func eachWorld(t *testing.T, test func(t *testing.T, w *world)) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: it makes network namespaces")
	}
	for _, flavor := range []ipt.Flavor{ipt.NFT, ipt.Legacy} {
		t.Run(string(flavor), func(t *testing.T) {
			tool, err := ipt.Find(t.Context(), flavor, false)
			if errors.Is(err, ipt.ErrMissing) {
				t.Skipf("no iptables of this flavour: %v", err)
			}
			if err != nil {
				t.Fatal(err)
			}
			test(t, &world{walktest.New(t), tool})
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) load(t *testing.T, n policy.Node) {
	t.Helper()
	rules, sets := n.Render()
	if sets != "" {
		program, err := ipt.FindIPSet(t.Context())
		if errors.Is(err, ipt.ErrMissing) {
			t.Skipf("no ipset: %v", err)
		}
		must(t, err)
		must(t, program.Restore(t.Context(), w.World["node"], sets))
	}
	must(t, w.tool.Restore(t.Context(), w.World["node"], rules))
}

// settled is save when no packet is under way any more: tables are read one after the other, and an answer's acknowledgement
// follows it by up to 40 ms.
func (w *world) settled(t *testing.T) []ipt.SavedTable {
	t.Helper()
	last := w.save(t)
	for range 100 {
		time.Sleep(60 * time.Millisecond)
		now := w.save(t)
		if reflect.DeepEqual(now, last) {
			return now
		}
		last = now
	}
	t.Fatal("packets keep coming")
	return nil
}

// save reads all tables of the node with their counters.
func (w *world) save(t *testing.T) []ipt.SavedTable {
	t.Helper()
	text, err := w.tool.Save(t.Context(), w.World["node"], "")
	must(t, err)
	tables, err := ipt.ParseSave(text)
	must(t, err)
	return tables
}
