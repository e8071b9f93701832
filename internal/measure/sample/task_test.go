package sample

import "testing"

func TestOfPath(t *testing.T) {
	for command, want := range map[string]bool{
		"kworker/1:1-wg-crypt-wg0": true, "kworker/1:1+wg-crypt-flannel-wg": true, "kworker/u8:2-wg-kex-wg0": true,
		"kworker/0:2-events_power_efficient": true, "kworker/R-wg-crypt-wg0": true, "kworker/0:1-pencrypt_serial": true,
		"napi/veth0-8192": true, "backlog_napi/3": true, "cpumap/1/map:7": true,
		"kworker/1:1-events": false, "kworker/1:1": false, "kworker/u8:2-events_unbound": false, "kworker/u8:1-netns": false,
		"wg-crypt-wg0": false, "gzip": false, "napi": false, "ksoftirqd/1": false, "": false, "kworker/": false,
	} {
		if got := (Task{Command: command}).OfPath(); got != want {
			t.Errorf("%s: %v", command, got)
		}
	}
}
