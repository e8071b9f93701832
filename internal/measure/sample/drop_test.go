package sample

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDropsBetween(t *testing.T) {
	drop := func(host, device, kind string, n uint64) Drop {
		return Drop{Host: host, Device: device, Kind: kind, Packets: n}
	}
	before := []Drop{drop("a", "eth0", DropTX, 5), drop("a", "eth0", DropRX, 5), drop("b", "eth0", DropTX, 9), drop("b", "eth1", DropTX, 9)}
	after := []Drop{
		drop("a", "eth0", DropTX, 7), // grew
		drop("a", "eth0", DropRX, 5), // stood still
		drop("b", "eth0", DropTX, 3), // went back: another device of that name
		drop("c", "eth0", DropTX, 3), // is new
	}
	want := []Drop{drop("a", "eth0", DropTX, 2)}
	if diff := cmp.Diff(want, DropsBetween(before, after)); diff != "" {
		t.Error(diff)
	}
	if got := DropsBetween(nil, after); got != nil {
		t.Errorf("without a reading before there is %v", got)
	}
}
