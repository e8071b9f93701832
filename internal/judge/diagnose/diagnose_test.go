package diagnose

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/measure/netstate"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
)

// healthy is the evidence of a network without a fault, by the numbers of flannel in the lab.
func healthy() *Evidence {
	trials := func(trip, bulk float64) *Trials {
		t := &Trials{Values: map[string][]float64{}, Succeeded: map[string]int{}, Failed: map[string]int{}, Why: map[string]string{}, Counters: map[string]int64{"Tcp.OutSegs": 60_000}}
		for _, noise := range []float64{1, 1.1, 0.95} {
			for name, v := range map[string]float64{
				"ping rtt.min": trip, "ping rtt.p50": trip, "rr rtt.min": 0.9 * trip, "rr rtt.p50": trip, "rr rtt.p99": 3 * trip,
				"crr connect_time.min": 1.8 * trip, "crr connect_time.p50": 2 * trip, "stream goodput": bulk, "stream reverse goodput": bulk, "udp frame_loss_rate": 0,
				"dns resolution_time.min": 2 * trip, "dns resolution_time.p50": 2.5 * trip,
			} {
				t.Values[name] = append(t.Values[name], noise*v)
			}
		}
		for _, kind := range []string{"ping", "rr", "crr", "stream", "stream reverse", "udp"} {
			t.Succeeded[kind] = 3
		}
		t.Datagrams, t.Echoes = Lossy{Sent: 15_000}, Lossy{Sent: 50_000}
		t.Names = map[string]Lossy{"dns": {Sent: 300}}
		t.Prober = Prober{Elapsed: 10 * time.Second, Whole: 10 * time.Second, Of: 18}
		return t
	}
	e := &Evidence{Encapsulation: "vxlan", Paths: map[plan.Path]*Trials{HostPath: trials(12e3, 22e9), PodPath: trials(25e3, 11e9), ServicePath: trials(28e3, 10e9)}}
	for _, name := range []string{"node-1/pod-1", "node-2/pod-1", "node-1", "node-2"} {
		e.Places = append(e.Places, Place{Name: name, Pod: strings.Contains(name, "/"), Account: netstate.Account{Counters: map[string]int64{}, Tracked: 900, TrackedMax: 262144}})
	}
	for i := range e.Places {
		if !e.Places[i].Pod {
			e.Places[i].Proxies = []string{"iptables"}
		}
	}
	sent := netstate.Traffic{Sent: 1024}
	all := netstate.Exchange{There: sent, Back: sent}
	for _, p := range []plan.Path{HostPath, PodPath} {
		for _, way := range [][2]string{{"a", "b"}, {"b", "a"}} {
			e.Sizes = append(e.Sizes, Size{Path: p, From: way[0], To: way[1], PathMTU: netstate.PathMTU{There: 1450, Back: 1450, Own: 1450},
				Content: netstate.Content{Small: all, Large: all, Words: netstate.Exchange{There: netstate.Traffic{Sent: 512}, Back: netstate.Traffic{Sent: 512}}, Blocks: netstate.Exchange{There: netstate.Traffic{Sent: 256}, Back: netstate.Traffic{Sent: 256}}, Dials: netstate.Dialled{Times: make([]int64, 20)}}})
		}
	}
	return e
}

// later adds to the values of paths whose names are late.
func later(e *Evidence, ns float64, late func(name string) bool, paths []plan.Path) {
	for _, p := range paths {
		for name, values := range e.Paths[p].Values {
			for i := range values {
				if late(name) {
					values[i] += ns
				}
			}
		}
	}
}

// far adds to all round trips of paths.
func far(e *Evidence, ns float64, paths ...plan.Path) {
	later(e, ns, func(name string) bool { return strings.Contains(name, "rtt") || strings.Contains(name, "connect_time") }, paths)
}

// lateTCP adds to the times of TCP on paths.
func lateTCP(e *Evidence, ns float64, paths ...plan.Path) {
	later(e, ns, func(name string) bool {
		return strings.HasPrefix(name, "rr rtt") || strings.Contains(name, "connect_time")
	}, paths)
}

// scale multiplies a metric of the given paths.
func scale(e *Evidence, by float64, metrics []string, paths ...plan.Path) {
	for _, p := range paths {
		for name, values := range e.Paths[p].Values {
			if slices.ContainsFunc(metrics, func(m string) bool { return strings.Contains(name, m) }) {
				for i := range values {
					values[i] *= by
				}
			}
		}
	}
}

var all = []plan.Path{HostPath, PodPath, ServicePath}

// busyAndLate is a busy machine on which names of pods took so many ns at least in each trial, and other datagrams 60 us.
func busyAndLate(least ...float64) func(*Evidence) {
	return func(e *Evidence) {
		for _, p := range []plan.Path{PodPath, ServicePath} {
			e.Paths[p].Values["dns resolution_time.min"] = slices.Clone(least)
		}
		for _, p := range e.Paths {
			p.Prober.Foreign, p.Prober.Own = 3*time.Second, 9*time.Second
		}
		for i := range e.Sizes {
			e.Sizes[i].Trip = 60e3
		}
	}
}

func TestJudge(t *testing.T) {
	times, rates := []string{"rtt", "connect_time"}, []string{"goodput"}
	for name, c := range map[string]struct {
		plant   func(*Evidence)
		verdict Verdict
		cause   string
		says    string
	}{
		"nothing at all": {func(*Evidence) {}, Fine, "", "25.0 µs"},
		"pods wait 2 ms more": {func(e *Evidence) {
			scale(e, 80, times, PodPath, ServicePath)
		}, CNI, "round-trip", "pods"},
		"nodes are far apart": {func(e *Evidence) { far(e, 18e6, all...) }, Node, "round-trip", "18.0 ms between hosts"},
		"pods take three times as long, and more": {func(e *Evidence) {
			scale(e, 8, times, PodPath, ServicePath)
		}, CNI, "overhead", "200 µs"},
		"one percent of datagrams between hosts and pods": {func(e *Evidence) {
			e.Paths[HostPath].Datagrams.Lost, e.Paths[PodPath].Datagrams.Lost = 150, 160
		}, Node, "loss", "1% of 15000 datagrams"},
		"one percent between pods alone": {func(e *Evidence) { e.Paths[PodPath].Datagrams.Lost = 150 }, CNI, "loss", "pod-to-pod"},
		"a rule drops one percent": {func(e *Evidence) {
			e.Paths[PodPath].Datagrams.Lost = 150
			e.Places[3].Filters = []netstate.Filter{{Chain: "ip filter FORWARD", Place: 3, Verdict: "drop", Packets: 170}}
		}, CNI, "loss", "node-2: rule 3 of ip filter FORWARD"},
		"three datagrams are nothing": {func(e *Evidence) { e.Paths[PodPath].Datagrams.Lost = 3 }, Fine, "", ""},
		"checksums at a pod":          {func(e *Evidence) { e.Places[1].Counters["Tcp.InCsumErrors"] = 40 }, CNI, "checksum", "node-2/pod-1 Tcp.InCsumErrors 40"},
		"checksums between hosts, with the loss that they are": {func(e *Evidence) {
			e.Places[3].Counters["Tcp.InCsumErrors"] = 40
			e.Paths[HostPath].Counters["Tcp.InCsumErrors"] = 40
			e.Paths[HostPath].Counters["Tcp.RetransSegs"] = 60
		}, Node, "checksum", "node-2"},
		"a node refuses damaged packets of TCP": {func(e *Evidence) {
			e.Sizes[2].Content.Words.Back.Resent, e.Places[3].Counters["conntrack.invalid"] = 19, 269
		}, CNI, "checksum", "node-2"},
		"a node refuses damaged datagrams": {func(e *Evidence) {
			e.Sizes[2].Content.Small.Back.Lost, e.Paths[PodPath].Datagrams.Lost, e.Places[3].Counters["conntrack.invalid"] = 21, 300, 400
		}, CNI, "checksum", "2% of 15000 datagrams"},
		"a node refuses all TCP of a pod": {func(e *Evidence) {
			for _, kind := range []string{"rr", "crr", "stream", "stream reverse"} {
				e.Paths[PodPath].Succeeded[kind], e.Paths[PodPath].Failed[kind] = 0, 3
			}
			e.Places[3].Counters["conntrack.invalid"] = 60
			e.Places[3].Filters = []netstate.Filter{{Chain: "ip filter FORWARD", Place: 1, Verdict: "drop", Packets: 60, Invalid: true}}
		}, CNI, "checksum", "no answer to crr, rr"},
		"a rule drops all TCP of a pod": {func(e *Evidence) {
			for _, kind := range []string{"rr", "crr", "stream", "stream reverse"} {
				e.Paths[PodPath].Succeeded[kind], e.Paths[PodPath].Failed[kind] = 0, 3
			}
			e.Places[3].Counters["conntrack.invalid"] = 2
		}, CNI, "unreachable", "no answer to crr, rr"},
		"a rule drops all TCP of a pod, and others have invalid packets": {func(e *Evidence) {
			for _, kind := range []string{"rr", "crr", "stream", "stream reverse"} {
				e.Paths[PodPath].Succeeded[kind], e.Paths[PodPath].Failed[kind] = 0, 3
			}
			e.Places[3].Counters["conntrack.invalid"] = 600
			e.Places[3].Filters = []netstate.Filter{{Chain: "ip filter FORWARD", Place: 1, Verdict: "drop", Packets: 60}}
		}, CNI, "unreachable", "no answer to crr, rr"},
		"datagrams without a checksum are lost as well": {func(e *Evidence) {
			e.Sizes[2].Content.Small.Back.Lost, e.Sizes[2].Content.Bare.Back = 21, netstate.Traffic{Sent: 512, Lost: 6}
			e.Places[3].Counters["conntrack.invalid"] = 600
		}, CNI, "loss", "small datagrams"},
		"a node refuses large packets": {func(e *Evidence) {
			e.Sizes[2].There, e.Sizes[3].Back = 999, 999
			e.Sizes[2].Silent, e.Sizes[3].Silent = true, true
			e.Places[3].Counters["conntrack.invalid"] = 320
		}, CNI, "checksum", "320 packets invalid"},
		"a node refuses what goes to Services": {func(e *Evidence) {
			e.Paths[ServicePath].Counters["Tcp.RetransSegs"], e.Places[2].Counters["conntrack.invalid"] = 400, 2579
		}, Service, "checksum", "pod-to-service"},
		"wrong checksums of a Service alone": {func(e *Evidence) {
			e.Paths[ServicePath].Counters["Tcp.InCsumErrors"], e.Places[1].Counters["Tcp.InCsumErrors"] = 40, 40
		}, Service, "checksum", "node-2/pod-1 Tcp.InCsumErrors 40"},
		"a datagram without a checksum arrives damaged": {func(e *Evidence) { e.Sizes[2].Content.Bare.Back = netstate.Traffic{Sent: 512, Wrong: 9} }, CNI, "checksum", "9 of 512 datagrams without a checksum"},
		"TCP alone is late between hosts":               {func(e *Evidence) { lateTCP(e, 50e6, all...) }, Node, "round-trip", "a request takes at least 50.0 ms"},
		"TCP alone is late between pods":                {func(e *Evidence) { lateTCP(e, 50e6, PodPath, ServicePath) }, CNI, "round-trip", "a request takes at least"},
		"TCP alone is late to a pod that is a backend": {func(e *Evidence) {
			lateTCP(e, 50e6, PodPath, ServicePath)
			delete(e.Paths[PodPath].Values, "rr rtt.min") // too few requests
			e.Backends = []Backend{{"web-1", netstate.Dialled{Times: []int64{147_000}}}, {"web-2", netstate.Dialled{Times: []int64{50_400_000}}}}
		}, CNI, "round-trip", "to connect takes at least"},
		"new connections alone are late to a pod that is a backend": {func(e *Evidence) {
			later(e, 20e6, func(name string) bool { return strings.Contains(name, "connect_time") }, []plan.Path{PodPath, ServicePath})
			e.Sizes[2].From, e.Sizes[2].To = "web-1", "web-2"
			e.Backends = []Backend{{"web-1", netstate.Dialled{Times: []int64{43_000}}}, {"web-2", netstate.Dialled{Times: []int64{20_300_000}}}}
		}, CNI, "round-trip", "to connect takes at least"},
		"new connections alone are late between hosts": {func(e *Evidence) {
			later(e, 20e6, func(name string) bool { return strings.Contains(name, "connect_time") }, all)
		}, Node, "round-trip", "to connect takes at least 20.0 ms"},
		"large packets alone are late to a pod": {func(e *Evidence) {
			e.Sizes[2].Shortest = netstate.Trips{Small: 40e3, There: 20_040e3, Back: 41e3}
			scale(e, 0.01, rates, PodPath)
		}, CNI, "round-trip", "a large packet and its answer take 20.0 ms"},
		"large packets alone are late between hosts": {func(e *Evidence) {
			e.Sizes[0].Shortest = netstate.Trips{Small: 20e3, There: 22e3, Back: 2_020e3}
			e.Sizes[2].Shortest = netstate.Trips{Small: 40e3, There: 42e3, Back: 2_040e3}
		}, Node, "round-trip", "large ones alone are late"},
		"a delay to pods that varies": {func(e *Evidence) { // what a pod with up to 20 ms had
			for name, values := range e.Paths[PodPath].Values {
				if strings.Contains(name, ".p50") && !strings.HasPrefix(name, "dns") {
					for i := range values {
						values[i] = 15e6
					}
				}
			}
			e.Sizes[2].From, e.Sizes[2].To = "web-1", "web-2"
			e.Backends = []Backend{{"web-1", netstate.Dialled{Times: []int64{43_000}}}, {"web-2", netstate.Dialled{Times: []int64{3_830_000}}}}
		}, CNI, "round-trip", "a delay that varies"},
		"one of 100 packets to a pod is late": {func(e *Evidence) { // as measured
			e.Paths[HostPath].Values["rr rtt.mean"], e.Paths[PodPath].Values["rr rtt.mean"] = []float64{20.4e3, 21e3, 19.8e3}, []float64{185.4e3, 205.8e3, 190e3}
		}, CNI, "round-trip", "the average one 185"},
		"one of 100 packets to a node is late": {func(e *Evidence) {
			e.Paths[HostPath].Values["rr rtt.mean"], e.Paths[PodPath].Values["rr rtt.mean"] = []float64{180e3, 190e3}, []float64{195e3, 200e3}
		}, Node, "round-trip", "some packets alone are late"},
		"a Service alone is late": {func(e *Evidence) { lateTCP(e, 50e6, ServicePath) }, Service, "service", "at least"},
		"two seconds, and no trial has an answer": {func(e *Evidence) {
			for _, p := range all {
				e.Paths[p].Values = map[string][]float64{}
				for _, kind := range []string{"ping", "rr", "crr"} {
					e.Paths[p].Succeeded[kind], e.Paths[p].Failed[kind] = 0, 3
				}
			}
			for i := range e.Sizes {
				e.Sizes[i].Content.Dials.Times = []int64{2_000_000_000, 2_010_000_000, 2_020_000_000}
			}
		}, Node, "round-trip", "2.01 s between hosts"},
		"TCP is sent again, and no packet is invalid": {func(e *Evidence) { e.Sizes[2].Content.Words.Back.Resent = 19 }, CNI, "loss", "small parts of a stream, sent again from"},
		"a few packets are invalid":                   {func(e *Evidence) { e.Places[3].Counters["conntrack.invalid"] = 269 }, Fine, "", ""},
		"two small parts were sent again":             {func(e *Evidence) { e.Sizes[2].Content.Words.Back.Resent = 2 }, Fine, "", ""},
		"IPv6 counts them apart":                      {func(e *Evidence) { e.Places[1].Counters["Udp6InCsumErrors"] = 9 }, CNI, "checksum", "Udp6InCsumErrors"},
		"a pod's MTU is too large": {func(e *Evidence) {
			e.Sizes[2].Own, e.Sizes[2].Silent = 9000, true
			e.Paths[PodPath].Succeeded["stream"], e.Paths[PodPath].Failed["stream"] = 0, 3
		}, CNI, "mtu", "1450 bytes pass"},
		"a router says what passes": {func(e *Evidence) { e.Sizes[2].Own = 1500 }, Fine, "", ""},
		"the table is full": {func(e *Evidence) {
			e.Places[2].Tracked = 262140
			e.Paths[PodPath].Succeeded["crr"], e.Paths[PodPath].Failed["crr"] = 0, 3
		}, Node, "conntrack-full", "262140 of 262144"},
		"the table refused some": {func(e *Evidence) { e.Places[2].Counters["conntrack.drop"] = 12 }, Node, "conntrack-full", "12 new connections"},
		"collisions": {func(e *Evidence) {
			e.Places[2].Counters["conntrack.drop"], e.Places[2].Counters["conntrack.insert_failed"] = 12, 12
			e.Paths[ServicePath].Counters["Tcp.RetransSegs"] = 400
		}, Node, "conntrack-race", "12"},
		"collisions that names wait for": {func(e *Evidence) {
			e.Places[2].Counters["conntrack.insert_failed"] = 12
			e.Paths[ServicePath].Names["dns"] = Lossy{Sent: 300, Lost: 12}
		}, Node, "conntrack-race", "12 of 300 names"},
		"answers of one kind are lost": {func(e *Evidence) {
			e.Paths[PodPath].Names["dns"] = Lossy{Sent: 300, Lost: 290}
			e.Paths[ServicePath].Names["dns"] = Lossy{Sent: 300, Lost: 280}
		}, CNI, "names", "290 of 300 names waited"},
		"datagrams alone are late": {func(e *Evidence) {
			for _, p := range []plan.Path{PodPath, ServicePath} {
				e.Paths[p].Values["dns resolution_time.min"] = []float64{5.1e6, 5.2e6, 5.1e6}
			}
		}, CNI, "names", "datagrams are late"},
		"datagrams are late in one trial of two": {func(e *Evidence) { // its prober had no CPU
			e.Paths[ServicePath].Values["dns resolution_time.min"] = []float64{48.2e6, 0.6e6}
			e.Paths[ServicePath].Values["dns resolution_time.p50"] = []float64{95e6, 0.9e6}
		}, Fine, "", ""},
		"a few late names of one trial of three are a machine that stopped": {func(e *Evidence) {
			p := e.Paths[PodPath]
			p.Names["dns"], p.Stalled, p.Succeeded["dns"] = Lossy{Sent: 312, Lost: 3}, map[string]uint64{"dns": 3}, 3
		}, Fine, "", ""},
		"a few late names in two trials are the network's": {func(e *Evidence) {
			p := e.Paths[PodPath]
			p.Names["dns"], p.Stalled, p.Succeeded["dns"] = Lossy{Sent: 312, Lost: 3}, map[string]uint64{"dns": 2}, 3
		}, CNI, "names", "3 of 312 names waited"},
		"names of pods are 600 ms late, other datagrams are not, beside a busy machine": {busyAndLate(600e6, 601e6, 600e6),
			CNI, "names", "names alone are late, or the first packet of a flow: another datagram takes 60.0 µs"},
		"other tasks have most of the CPUs, and names are 884 ms late": {func(e *Evidence) {
			busyAndLate(884e6, 901e6, 890e6)(e)
			for _, p := range e.Paths {
				p.Prober.Foreign = 8 * time.Second
			}
		}, Tester, "starved", "other tasks took"},
		// What a busy machine made of names without a fault.
		"names of pods are 164 ms late, other datagrams are not, beside a busy machine": {busyAndLate(164e6, 201e6, 180e6),
			Tester, "starved", "other tasks took"},
		"names of pods alone time out": {func(e *Evidence) {
			for _, p := range []plan.Path{PodPath, ServicePath} {
				e.Paths[p].Failed["dns"], e.Paths[p].Why["dns"] = 3, "timeout: no answer"
			}
		}, CNI, "names", "no name was resolved (timeout)"},
		"one trial of datagrams had no CPU": {func(e *Evidence) {
			e.Paths[ServicePath].Failed["udp"], e.Paths[ServicePath].Succeeded["udp"] = 1, 0
			for _, p := range all {
				e.Paths[p].Prober.Foreign, e.Paths[p].Prober.Own = 6*time.Second, 9*time.Second
			}
		}, Fine, "", ""},
		"Services are 20 ms late beside a busy machine": {func(e *Evidence) {
			lateTCP(e, 20e6, ServicePath)
			for _, p := range all {
				e.Paths[p].Prober.Foreign, e.Paths[p].Prober.Own = 3*time.Second, 9*time.Second
			}
		}, Service, "service", "20.0 ms"},
		"datagrams between hosts are late, and VXLAN is of them": {func(e *Evidence) {
			far(e, 30e6, PodPath, ServicePath)
			later(e, 30e6, func(name string) bool { return strings.Contains(name, "resolution_time") }, all)
		}, Node, "round-trip", "they carry the packets of pods"},
		"datagrams between hosts are late, and pods need none": {func(e *Evidence) {
			e.Encapsulation = "none"
			far(e, 30e6, PodPath, ServicePath)
			later(e, 30e6, func(name string) bool { return strings.Contains(name, "resolution_time") }, all)
		}, CNI, "round-trip", "30.0 ms between pods"},
		"one late name is nothing": {func(e *Evidence) { e.Paths[PodPath].Names["dns"] = Lossy{Sent: 300, Lost: 1} }, Fine, "", ""},
		"the resolver is slow": {func(e *Evidence) {
			e.Paths[ServicePath].Values["resolver resolution_time.p50"] = []float64{90e6, 80e6, 95e6}
		}, Resolver, "names", "90.0 ms for a name"},
		"the resolver is quick": {func(e *Evidence) {
			e.Paths[ServicePath].Values["resolver resolution_time.p50"], e.Paths[ServicePath].Names[resolver] = []float64{900e3}, Lossy{Sent: 150}
		}, Fine, "", ""},
		"the resolver loses some": {func(e *Evidence) { e.Paths[ServicePath].Names[resolver] = Lossy{Sent: 150, Lost: 30} }, Resolver, "names", "30 of 150 names of the cluster"},
		"the resolver is silent": {func(e *Evidence) {
			e.Paths[ServicePath].Failed[resolver], e.Paths[ServicePath].Why[resolver] = 3, "timeout: no name was resolved in the window"
		}, Resolver, "names", "it resolved no name (timeout)"},
		"pods do not answer": {func(e *Evidence) {
			for k := range e.Paths[PodPath].Succeeded {
				e.Paths[PodPath].Succeeded[k], e.Paths[PodPath].Failed[k] = 0, 3
			}
			e.Paths[PodPath].Values = nil
			e.Places[3].Filters = []netstate.Filter{{Chain: "ip filter FORWARD", Place: 1, Verdict: "drop", Packets: 3996}}
		}, CNI, "unreachable", "ip filter FORWARD"},
		"only the Service does not": {func(e *Evidence) {
			for k := range e.Paths[ServicePath].Succeeded {
				e.Paths[ServicePath].Succeeded[k], e.Paths[ServicePath].Failed[k] = 0, 3
			}
			e.Paths[ServicePath].Values = nil
		}, Service, "unreachable", "pod-to-service"},
		"a shaper of 100 Mbit/s": {func(e *Evidence) {
			e.Places[2].Shapers = []netstate.Shaper{{Device: "eth0", Kind: "tbf", Rate: 100e6}}
			scale(e, 95e6/22e9, rates, HostPath)
			scale(e, 95e6/11e9, rates, PodPath)
		}, Node, "shaper", "tbf on eth0"},
		"a shaper above every stream": {func(e *Evidence) {
			e.Places[2].Shapers = []netstate.Shaper{{Device: "eth0", Kind: "tbf", Rate: 100e9}}
		}, Fine, "", ""},
		"a NIC at a lower rate": {func(e *Evidence) { scale(e, 0.004, rates, all...) }, Node, "rate", "88.0 Mbit/s"},
		"a limit of CPU time": {func(e *Evidence) {
			for _, p := range all {
				e.Paths[p].Prober.Stopped = 6 * time.Second
			}
			scale(e, 2000, times, all...)
		}, Tester, "cpu-limit", "18s of 30s"},
		"steal": {func(e *Evidence) {
			for _, p := range all {
				e.Paths[p].Prober.Steal = 2 * time.Second
			}
		}, Node, "cpu-steal", "20%"},
		"a starved prober": {func(e *Evidence) {
			for _, p := range all {
				e.Paths[p].Prober.Disturbed = 17
			}
			scale(e, 400, []string{"rtt.p50", "connect_time"}, all...)
			scale(e, 0.1, rates, all...)
		}, Tester, "starved", "takes 4.80 ms"},
		"other tasks have the CPU": {func(e *Evidence) {
			for _, p := range all {
				e.Paths[p].Prober.Foreign, e.Paths[p].Prober.Own = 7*time.Second, 10*time.Second
			}
			scale(e, 0.003, rates, all...)
		}, Tester, "starved", "70%"},
		"other tasks have the CPU, and few trials came about": {func(e *Evidence) { // as three loops at the highest priority had it
			for _, p := range all {
				t := e.Paths[p]
				t.Values = map[string][]float64{"rr rtt.min": {20e3}, "rr rtt.p50": {25e3}}
				t.Succeeded, t.Failed = map[string]int{"rr": 1, "udp": 1}, map[string]int{"crr": 1, "dns": 1}
				t.Why = map[string]string{"crr": "no traffic: nothing was sent", "dns": "no traffic: nothing was sent"}
				t.Datagrams, t.Echoes, t.Names = Lossy{Sent: 12, Lost: 3}, Lossy{}, nil
				t.Prober = Prober{Elapsed: 4 * time.Second, Whole: 4 * time.Second, Foreign: 39 * time.Second / 10, Own: 4 * time.Second, Disturbed: 2, Of: 4}
			}
		}, Tester, "starved", "of 12 workloads of the paths 6 had no trial"},
		"other tasks have the CPU, and trials read a part of the datagrams": {func(e *Evidence) { // 27 %, as they had it
			for _, p := range all {
				e.Paths[p].Datagrams = Lossy{Sent: 15_000, Lost: 4_000}
				e.Paths[p].Prober.Foreign, e.Paths[p].Prober.Own = 9*time.Second, 10*time.Second
			}
			scale(e, 0.003, rates, all...)
		}, Tester, "starved", "90%"},
		"few datagrams on a quiet machine": {func(e *Evidence) {
			for _, p := range all {
				e.Paths[p].Datagrams, e.Paths[p].Echoes = Lossy{Sent: 12}, Lossy{}
			}
		}, Undecided, "", "only 36 datagrams"},
		"other tasks have the CPU, and it does not matter": {func(e *Evidence) {
			for _, p := range all {
				e.Paths[p].Prober.Foreign, e.Paths[p].Prober.Own = 4*time.Second, 10*time.Second
			}
		}, Fine, "", ""},
		"other tasks have most of the CPUs, and names wait for a timeout": {func(e *Evidence) {
			for _, p := range all {
				e.Paths[p].Names["dns"] = Lossy{Sent: 300, Lost: 30}
				e.Paths[p].Prober.Foreign, e.Paths[p].Prober.Own = 7*time.Second, 10*time.Second
			}
		}, Tester, "starved", "70%"},
		"other tasks have most of the CPUs, and no AAAA is answered": {func(e *Evidence) { // as measured
			e.Paths[PodPath].Names["dns"] = Lossy{Sent: 150, Lost: 149}
			for _, p := range all {
				e.Paths[p].Prober.Foreign, e.Paths[p].Prober.Own = 62*time.Second, 100*time.Second
			}
		}, CNI, "names", "149 of 150 names waited"},
		"the prober waits for a CPU while names are asked": {func(e *Evidence) {
			e.Paths[ServicePath].Values["dns resolution_time.min"] = []float64{48e6, 20e6, 31e6}
			e.Paths[ServicePath].Prober.Held, e.Paths[ServicePath].Prober.Paced = 7, 18
		}, Tester, "starved", "7 of 18"},
		"the prober waits for a CPU, and it does not matter": {func(e *Evidence) {
			e.Paths[ServicePath].Prober.Held, e.Paths[ServicePath].Prober.Paced = 7, 18
		}, Fine, "", ""},
		"a cluster's path did not answer before the run": {func(e *Evidence) {
			delete(e.Paths, PodPath)
			e.Refused = map[string]string{PodPath.String(): "it did not pass its proof before the run: no connection to 10.0.0.1:5201 within 90s"}
		}, CNI, "unreachable", "10.0.0.1"},
		"one backend": {func(e *Evidence) {
			e.Backends = []Backend{{"", netstate.Dialled{}}, {"web-1", netstate.Dialled{To: "10.0.0.1:80", Times: []int64{20_000}}}, {"web-2", netstate.Dialled{To: "10.0.0.2:80", Failed: map[string]int{"timeout": 20}}}}
		}, Service, "backend", "web-2"},
		"a bit of what a pod receives, past the last check": {func(e *Evidence) {
			e.Sizes[2].Content.Blocks.There.Wrong, e.Sizes[3].Content.Blocks.Back.Wrong = 5, 4
		}, CNI, "checksum", "a to b: 9 of 512 blocks of a stream"},
		"one message of a node": {func(e *Evidence) { e.Sizes[1].Content.Small.There.Wrong = 1 }, Node, "checksum", "b to a: 1 of 4096 datagrams"},
		"wrong checksums outside of a tunnel": {func(e *Evidence) {
			e.Places[2].Counters["Udp.InCsumErrors"] = 900
			for k := range e.Paths[PodPath].Succeeded {
				e.Paths[PodPath].Succeeded[k], e.Paths[PodPath].Failed[k] = 0, 3
			}
			e.Paths[PodPath].Values = nil
			e.Sizes[2].Failed, e.Sizes[3].Failed = "no answer from 10.0.0.1", "no answer from 10.0.0.2"
		}, CNI, "checksum", "node-1 Udp.InCsumErrors 900"},
		"large packets alone, one way": {func(e *Evidence) {
			for i := range e.Sizes {
				if e.Sizes[i].From == "a" {
					e.Sizes[i].Content.Large.There.Lost = 50
				} else {
					e.Sizes[i].Content.Large.Back.Lost = 50
				}
				scale(e, 0.05, rates, all...)
				e.Paths[HostPath].Prober.Foreign, e.Paths[HostPath].Prober.Own = 7*time.Second, 10*time.Second
			}
		}, Node, "loss", "large datagrams from a to b"},
		"both ways": {func(e *Evidence) {
			for i := range e.Sizes {
				e.Sizes[i].Content.Small.There.Lost, e.Sizes[i].Content.Small.Back.Lost = 12, 9
			}
		}, Node, "loss", "both ways"},
		"one way": {func(e *Evidence) {
			e.Paths[PodPath].Datagrams.Lost = 150
			e.Sizes[2].Content.Small.There.Lost, e.Sizes[3].Content.Large.Back.Lost = 12, 9
		}, CNI, "loss", "one way alone, from a to b"},
		"connections begun at the other end": {func(e *Evidence) {
			e.Sizes[3].Content.Dials = netstate.Dialled{Failed: map[string]int{"timeout": 20}}
		}, CNI, "unreachable", "20 of 20 new connections from b to a failed"},
		"everything begun at the other end": {func(e *Evidence) {
			e.Sizes[3].Failed = "no answer from 10.0.0.1:19412 within 10s"
		}, CNI, "unreachable", "from b to a"},
		"a port answers nothing, and its host does": {func(e *Evidence) {
			e.Sizes[3].Failed = "no answer from 10.0.0.1:19412 within 10s, but to a connection and an echo"
		}, Undecided, "", "close this port alone"},
		"a look that fails is no fault": {func(e *Evidence) { e.Sizes[3].Failed = "exec: the pod has gone" }, Fine, "", ""},
		"an MTU one way": {func(e *Evidence) {
			for i := range e.Sizes {
				e.Sizes[i].Silent = true
			}
			e.Sizes[2].There, e.Sizes[3].Back = 1400, 1400
		}, CNI, "mtu", "1400 bytes pass one way (a to b)"},
		"a shaper of one pod": {func(e *Evidence) {
			e.Places[2].Shapers = []netstate.Shaper{{Device: "veth1", Kind: "tbf", Rate: 100e6}}
			scale(e, 95e6/11e9, rates, PodPath)
			e.Paths[PodPath].Prober.Foreign, e.Paths[PodPath].Prober.Own = 5*time.Second, 10*time.Second
		}, CNI, "shaper", "tbf on veth1"},
		"rules of two modes":                  {func(e *Evidence) { e.Places[3].Proxies = []string{"nftables", "iptables"} }, Service, "proxy-modes", "node-1 iptables, node-2 nftables and iptables"},
		"a node has no rules":                 {func(e *Evidence) { e.Places[3].Proxies = []string{} }, Service, "proxy-modes", "node-2 none"},
		"rules of a node that cannot be read": {func(e *Evidence) { e.Places[3].Proxies = nil }, Fine, "", ""},
		"one backend is 5 ms late": {func(e *Evidence) {
			e.Backends = []Backend{{"", netstate.Dialled{}}, {"web-1", netstate.Dialled{To: "10.0.0.1:80", Times: []int64{20_000, 90_000_000}}}, {"web-2", netstate.Dialled{To: "10.0.0.2:80", Times: []int64{5_020_000}}}}
		}, Service, "backend", "web-2"},
		"a backend on the other node, which is far away": {func(e *Evidence) {
			far(e, 5e6, all...)
			e.Backends = []Backend{{"web-1", netstate.Dialled{Times: []int64{20_000}}}, {"web-2", netstate.Dialled{Times: []int64{5_100_000}}}}
		}, Node, "round-trip", "5.01 ms between hosts"},
		"0.8 ms one way":                       {func(e *Evidence) { far(e, 0.8e6, all...) }, Node, "round-trip", "between hosts"},
		"0.4 ms are another zone":              {func(e *Evidence) { far(e, 0.4e6, all...) }, Fine, "", ""},
		"5 ms between pods that are far apart": {func(e *Evidence) { far(e, 20e6, all...); far(e, 25e6, PodPath) }, CNI, "round-trip", "between pods"},
		"200 ms, with slow streams, drops of them and a busy machine": {func(e *Evidence) {
			far(e, 200e6, all...)
			scale(e, 0.0005, rates, all...)
			e.Places[2].Counters["eth0.tx_dropped"] = 5000
			for _, p := range all {
				e.Paths[p].Prober.Disturbed, e.Paths[p].Prober.Foreign, e.Paths[p].Prober.Own = 18, 6*time.Second, 10*time.Second
				e.Paths[p].Counters["Tcp.RetransSegs"], e.Paths[p].Counters["TcpExt.TCPDSACKRecv"] = 300, 290
			}
		}, Node, "round-trip", "200 ms between hosts"},
		"200 ms, and no echo and no request in half a second": {func(e *Evidence) {
			far(e, 200e6, all...)
			for _, p := range all {
				e.Paths[p].Succeeded["ping"], e.Paths[p].Failed["ping"] = 0, 3
				for name := range e.Paths[p].Values {
					if strings.Contains(name, "rtt") {
						delete(e.Paths[p].Values, name)
					}
				}
			}
			e.Backends = []Backend{{"web-1", netstate.Dialled{Times: []int64{20_000}}}, {"web-2", netstate.Dialled{Times: []int64{200_000_000}}}}
		}, Node, "round-trip", "200 ms between hosts"},
		"segments sent again because an answer was late": {func(e *Evidence) {
			e.Paths[PodPath].Counters["Tcp.RetransSegs"] = 100
		}, Fine, "", ""},
		"probes of connections whose answers are late, up to 20 ms": {func(e *Evidence) { // as measured
			p := e.Paths[PodPath]
			p.Counters = map[string]int64{"Tcp.OutSegs": 12_281, "Tcp.RetransSegs": 212, "TcpExt.TCPLossProbes": 212}
			p.Values["rr rtt.p50"], p.Values["ping rtt.p50"] = []float64{8.9e6, 9.1e6}, []float64{9.5e6, 9.2e6}
		}, CNI, "round-trip", "a delay that varies"},
		"TCP loses one percent, and probes repair it": {func(e *Evidence) {
			e.Paths[ServicePath].Counters = map[string]int64{"Tcp.OutSegs": 14_711, "Tcp.RetransSegs": 158, "TcpExt.TCPLossProbes": 155, "TcpExt.TCPDSACKRecv": 13, "TcpExt.TCPLossProbeRecovery": 7}
		}, Service, "loss", "1% of 14711 segments"},
		"TCP alone loses one percent": {func(e *Evidence) {
			for _, p := range all {
				e.Paths[p].Counters["Tcp.RetransSegs"] = 600
			}
		}, Node, "loss", "segments of requests"},
		"hops differ, and the prober has no CPU": {func(e *Evidence) { // as measured
			e.Sizes[0].HopsThere, e.Sizes[0].HopsBack = 1, 2
			for _, p := range all {
				e.Paths[p].Datagrams, e.Paths[p].Echoes = Lossy{Sent: 125}, Lossy{}
				e.Paths[p].Prober.Foreign, e.Paths[p].Prober.Own = 69*time.Second, 100*time.Second
			}
		}, Node, "asymmetric", "1 hops there and 2 back"},
		"hops differ":                     {func(e *Evidence) { e.Sizes[0].HopsThere, e.Sizes[0].HopsBack = 1, 2 }, Node, "asymmetric", "pass 1 hops there and 2 back"},
		"the Service's path is slow":      {func(e *Evidence) { scale(e, 30, times, ServicePath) }, Service, "service", "through the Service"},
		"a path was not measured":         {func(e *Evidence) { delete(e.Paths, PodPath) }, Undecided, "", "not measured"},
		"nothing was measured":            {func(e *Evidence) { *e = Evidence{} }, Undecided, "", ""},
		"wireguard may take a tenth only": {func(e *Evidence) { e.Encapsulation = "wireguard"; scale(e, 0.1, rates, PodPath) }, Fine, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := healthy()
			c.plant(e)
			a := Judge(e)
			if a.Verdict != c.verdict || a.Cause != c.cause || !strings.Contains(a.Text, c.says) {
				t.Errorf("%s by %q: %s", a.Verdict, a.Cause, a.Text)
			}
			if len(a.Next) == 0 || a.Confidence == "" || len(a.Statements) < len(rules) {
				t.Errorf("no next step, no confidence or too few statements: %+v", a)
			}
			for _, s := range a.Statements {
				if s.Saw == "" || s.Title == "" || (s.State == Fault) != (s.Do != "") {
					t.Errorf("a statement without its measurement or its words: %+v", s)
				}
			}
		})
	}
}

// TestNoFalseAlarm: no noise that a healthy machine has makes a fault: each value up to 30 % off, some packets late, a few
// drops.
func TestNoFalseAlarm(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 2000 {
		e := healthy()
		for _, p := range all {
			trials := e.Paths[p]
			for _, values := range trials.Values {
				for j := range values {
					values[j] *= 0.7 + 0.6*rng.Float64()
				}
			}
			trials.Datagrams.Lost, trials.Echoes.Lost = rng.Uint64N(5), rng.Uint64N(5)
			trials.Counters["Tcp.RetransSegs"] = rng.Int64N(5)
			trials.Prober.Disturbed = rng.IntN(19)
		}
		for j := range e.Places {
			e.Places[j].Counters["eth0.rx_dropped"] = rng.Int64N(100)
			e.Places[j].Counters["conntrack.insert_failed"] = rng.Int64N(50)
		}
		if a := Judge(e); a.Verdict != Fine {
			t.Fatalf("%d: %s: %s", i, a.Verdict, a.Text)
		}
	}
}

func TestRulesAreWhole(t *testing.T) {
	list := words()
	if len(list) != len(rules) {
		t.Errorf("page.md has %d rules, and there are %d", len(list), len(rules))
	}
	for i, r := range rules[:min(len(rules), len(list))] {
		if list[i].ID != r.id || list[i].Why == "" || list[i].Do == "" {
			t.Errorf("rule %s: page.md has %+v in its place", r.id, list[i])
		}
	}
	for v := range lead {
		if lead[v] == "" {
			t.Errorf("no words for %s", v)
		}
	}
	got, err := os.ReadFile("../../../docs/reference/diagnose.md")
	if err != nil || string(got) != page {
		t.Errorf("docs/reference/diagnose.md is not page.md (%v); run make generate", err)
	}
}

// TestBarredProber: a host-network pod without rights sends no echoes. That is no fault, and the echoes of pods stand beside
// none.
func TestBarredProber(t *testing.T) {
	e := healthy()
	delete(e.Paths[HostPath].Values, "ping rtt.min")
	delete(e.Paths[HostPath].Values, "ping rtt.p50")
	delete(e.Paths[HostPath].Succeeded, "ping")
	ping, err := plan.ParseWorkload("ping")
	if err != nil {
		t.Fatal(err)
	}
	r := &result.Record{Type: result.TypeTrial, Status: result.Failed, Trial: plan.Trial{Case: plan.Case{Path: HostPath, Workload: ping}},
		Error: &result.Failure{Kind: "not permitted", Message: "socket icmp: operation not permitted"}}
	for range 3 {
		if err := e.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	a := Judge(e)
	if a.Verdict != Fine || len(a.Missing) != 1 || a.Missing[0] != "echoes on host-to-host/cross-node: the prober has no right to send them" {
		t.Errorf("%s: %s, missing %q", a.Verdict, a.Text, a.Missing)
	}
	if _, ok := e.Paths[PodPath].median("ping", "rtt.p50"); ok {
		t.Error("echoes of pods are compared with requests of hosts")
	}
	r.Error.Message = "send: operation not permitted" // a rule of a firewall
	for range 3 {
		if err := e.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	if a := Judge(e); a.Cause != "unreachable" {
		t.Errorf("%s: %s", a.Verdict, a.Text)
	}
}
