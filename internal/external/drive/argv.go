package drive

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/cnibench/cnibench/internal/plan"
)

// Ask is one side of one trial as a tool needs to know it.
type Ask struct {
	// Workload is normalized, and within what its Tool can do.
	Workload plan.Workload
	// Address is what the client dials, or what the server binds to ("" is any); Port goes with it.
	Address string
	Port    int
	// Window and Warmup are those of the plan; the tool may make others of them (plan.Workload.Measured).
	Window, Warmup time.Duration
}

// Limits of what is asked of a tool.
const (
	// pingQuiet is the window from which ping prints no line for each reply: there would be too many.
	pingQuiet = 4 * time.Second
	// httpTimeout bounds a request of hey and wrk, in seconds.
	httpTimeout = 5
)

// Program returns the name of the file that is run for w.
func Program(w plan.Workload) string {
	if w.Tool != plan.Neper {
		return w.Tool
	}
	return "tcp_" + string(w.Kind)
}

// Client returns the command line of the client.
func Client(a Ask) []string {
	window, warmup := a.Workload.Measured(a.Window, a.Warmup)
	c := client{Ask: a, port: strconv.Itoa(a.Port), seconds: strconv.Itoa(int(window / time.Second)), window: window, warmup: warmup}
	if a.Workload.Tool == plan.Sockperf {
		c.seconds = strconv.Itoa(int((window + plan.SockperfEdges) / time.Second))
	}
	switch a.Workload.Tool {
	case plan.Iperf3:
		return c.iperf3()
	case plan.Netperf:
		return c.netperf()
	case plan.Wrk:
		return c.wrk()
	case plan.Hey:
		return c.hey()
	case plan.PingTool:
		return c.ping()
	case plan.Neper:
		return c.neper()
	case plan.Sockperf:
		return c.sockperf()
	}
	return nil
}

// client is an Ask with its numbers as text.
type client struct {
	Ask
	port, seconds  string
	window, warmup time.Duration
}

func (c client) iperf3() []string {
	w := c.Workload
	argv := []string{"iperf3", "-c", c.Address, "-p", c.port, "-t", c.seconds, "-J", "-l", strconv.Itoa(w.MessageSize), "-P", strconv.Itoa(w.Flows)}
	if c.warmup > 0 {
		argv = append(argv, "-O", strconv.Itoa(int(c.warmup/time.Second)))
	}
	if w.Protocol == plan.UDP {
		// Its rate is that of one flow; 0 is as fast as possible.
		argv = append(argv, "-u", "-b", strconv.FormatFloat(w.Rate/float64(w.Flows), 'f', 0, 64))
	} else {
		argv = append(argv, "-C", w.Congestion)
	}
	if w.Reverse {
		argv = append(argv, "-R")
	}
	return argv
}

func (c client) wrk() []string {
	w := c.Workload
	argv := []string{"wrk", "-t", strconv.Itoa(w.Threads), "-c", strconv.Itoa(w.Connections), "-d", c.seconds + "s", "--latency",
		"--timeout", fmt.Sprintf("%ds", httpTimeout)}
	if w.Connection == "close" {
		argv = append(argv, "-H", "Connection: close")
	}
	return append(argv, c.url())
}

func (c client) hey() []string {
	w := c.Workload
	argv := []string{"hey", "-z", c.window.String(), "-c", strconv.Itoa(w.Connections), "-cpus", strconv.Itoa(w.Threads), "-t", strconv.Itoa(httpTimeout)}
	if w.Rate > 0 {
		// Its rate is that of one of its workers, and it has one for each connection.
		argv = append(argv, "-q", strconv.FormatFloat(w.Rate/float64(w.Connections), 'f', -1, 64))
	}
	if w.Connection == "close" {
		argv = append(argv, "-disable-keepalive")
	}
	return append(argv, c.url())
}

func (c client) url() string { return "http://" + net.JoinHostPort(c.Address, c.port) + "/" }

func (c client) ping() []string {
	argv := []string{"ping", "-n", "-w", c.seconds, "-s", strconv.Itoa(c.Workload.MessageSize)}
	switch interval := c.Workload.Interval; {
	case interval > 0:
		argv = append(argv, "-i", strconv.FormatFloat(interval.Seconds(), 'f', -1, 64))
	case c.window >= pingQuiet:
		argv = append(argv, "-A", "-q")
	default:
		argv = append(argv, "-A")
	}
	return append(argv, c.Address)
}

func (c client) sockperf() []string {
	argv := []string{"sockperf", "ping-pong", "-i", c.Address, "-p", c.port, "-t", c.seconds, "-m", strconv.Itoa(c.Workload.RequestSize), "--full-rtt"}
	return append(argv, c.transport()...)
}

func (a Ask) transport() []string {
	if a.Workload.Protocol == plan.TCP {
		return []string{"--tcp"}
	}
	return nil
}

// netperfKeys are the selectors that package foreign reads.
const netperfKeys = "PROTOCOL,DIRECTION,THROUGHPUT,THROUGHPUT_UNITS,ELAPSED_TIME"

func (c client) netperf() []string {
	w := c.Workload
	test, keys, options := "TCP_STREAM", netperfKeys, []string{"-m", strconv.Itoa(w.MessageSize)}
	switch {
	case w.Kind == plan.Stream && w.Protocol == plan.UDP:
		options = append(options, "-R", "1") // else its datagrams are not routed
		test, keys = "UDP_STREAM", keys+",LOCAL_SEND_SIZE,LOCAL_SEND_THROUGHPUT,LOCAL_SEND_CALLS,REMOTE_RECV_CALLS"
	case w.Kind == plan.Stream && w.Reverse:
		test, keys, options[0] = "TCP_MAERTS", keys+",REMOTE_SEND_SIZE", "-M"
	case w.Kind == plan.Stream:
		keys += ",LOCAL_SEND_SIZE,LOCAL_TRANSPORT_RETRANS"
	default:
		test = map[plan.Kind]string{plan.RR: "TCP_RR", plan.CRR: "TCP_CRR"}[w.Kind]
		if w.Protocol == plan.UDP {
			test = "UDP_RR"
		}
		keys += ",REQUEST_SIZE,RESPONSE_SIZE,MIN_LATENCY,MEAN_LATENCY,MAX_LATENCY,STDDEV_LATENCY,P50_LATENCY,P90_LATENCY,P99_LATENCY"
		options = []string{"-r", fmt.Sprintf("%d,%d", w.RequestSize, w.ResponseSize)}
	}
	argv := []string{"netperf", "-H", c.Address, "-p", c.port, "-t", test, "-l", c.seconds, "-P", "0", "-j", "--"}
	return append(append(argv, options...), "-k", keys)
}

func (c client) neper() []string {
	argv := append([]string{Program(c.Workload), "-c", "-H", c.Address}, c.neperBoth()...)
	if c.Workload.Kind != plan.Stream {
		argv = append(argv, "-p", "50,90,99,99.9")
	}
	return argv
}

// neperSample is how often neper looks at its counters, in seconds: its rate is the slope of a line through what it sees.
const neperSample = "0.1"

// neperBoth are the options that its client and its server must be given alike.
func (a Ask) neperBoth() []string {
	w := a.Workload
	window, _ := w.Measured(a.Window, a.Warmup)
	flows := strconv.Itoa(w.Flows)
	argv := []string{
		"-C", strconv.Itoa(a.Port), "-P", strconv.Itoa(a.Port + 1), "-l", strconv.Itoa(int(window / time.Second)), "-F", flows, "-T", flows,
		"-I", neperSample, "--congestion-control", w.Congestion,
	}
	if family := a.family(); family != "" {
		argv = append(argv, family)
	}
	if w.Close == "fin" {
		argv = append(argv, "--time-wait") // else it resets its connections
	}
	if w.Kind == plan.Stream {
		return append(argv, "-B", strconv.Itoa(w.MessageSize))
	}
	return append(argv, "-Q", strconv.Itoa(w.RequestSize), "-R", strconv.Itoa(w.ResponseSize))
}

// Server returns the command line of the server, nil where the server is ours (http) or the kernel (ping).
func Server(a Ask) []string {
	port := strconv.Itoa(a.Port)
	switch a.Workload.Tool {
	case plan.Iperf3:
		argv := []string{"iperf3", "-s", "-1", "-p", port}
		if a.Address != "" {
			argv = append(argv, "-B", a.Address)
		}
		return argv
	case plan.Netperf:
		argv := []string{"netserver", "-D", "-f", "-p", port}
		if family := a.family(); family != "" {
			argv = append(argv, family)
		}
		return argv
	case plan.Neper:
		return append([]string{Program(a.Workload)}, a.neperBoth()...)
	case plan.Sockperf:
		address := a.Address
		if address == "" {
			address = "0.0.0.0"
		}
		return append([]string{"sockperf", "server", "-i", address, "-p", port}, a.transport()...)
	}
	return nil
}

// family is the option by which netserver and neper are told the version of IP, "" where the address says none.
func (a Ask) family() string {
	addr, err := netip.ParseAddr(a.Address)
	switch {
	case err != nil:
		return ""
	case addr.Is6():
		return "-6"
	}
	return "-4"
}

// EndsItself says whether the server of a tool ends when its client has.
func EndsItself(tool string) bool { return tool == plan.Iperf3 || tool == plan.Neper }
