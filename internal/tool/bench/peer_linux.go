package bench

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// peer is a tool that is a server and a client process.
type peer struct {
	title string
	tasks []string
	// server and client are command lines.
	server func(t task, port string) []string
	client func(t task, port string) []string
	parse  func(b []byte, t task) (count, error)
	// agent is the command line of our agent, where that is the server.
	agent []string
	// scale is units of work per unit counted: 1 but for streams, which count bits and cost per KB.
	scale func(t task) float64
}

func (p *peer) does(t task) bool { return slices.Contains(p.tasks, t.name) }

func (p *peer) run(ctx context.Context, w *world, t task) (reading, error) {
	if p.agent != nil {
		_, r, err := p.guest(ctx, w, t, nil)
		if err != nil {
			return reading{}, fmt.Errorf("%s, %s: %w", p.title, t.name, err)
		}
		return r, nil
	}
	c, cpu, err := p.both(ctx, w, t, nil)
	if err != nil {
		return reading{}, fmt.Errorf("%s, %s: %w", p.title, t.name, err)
	}
	return c.reading(cpu, p.scale(t))
}

// both runs the two processes and returns what the client counted and the CPU time of the two. before is put in front of
// the client's command line.
func (p *peer) both(ctx context.Context, w *world, t task, before []string) (count, time.Duration, error) {
	port := w.nextPort()
	text := strconv.Itoa(port)
	server, _, complaint := command(ctx, p.server(t, text))
	if err := w.start(w.server, server); err != nil {
		return count{}, 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	var out string
	err := w.listening(ctx, w.server, port)
	client, answer, words := command(ctx, append(before, p.client(t, text)...))
	if err == nil {
		err = w.start(w.client, client)
	}
	if err == nil {
		err = client.Wait()
		out = answer.String()
	}
	finish(server, ended)
	if err != nil {
		said := strings.TrimSpace(words.String() + " " + complaint.String() + " " + out)
		return count{}, 0, fmt.Errorf("%w: %s", err, said)
	}
	c, err := p.parse([]byte(out), t)
	return c, used(server.ProcessState) + used(client.ProcessState), err
}

// finish waits for a server that ends with its client, and ends one that does not.
func finish(server *exec.Cmd, ended <-chan error) {
	patience := time.NewTimer(200 * time.Millisecond)
	defer patience.Stop()
	select {
	case <-ended:
		return
	case <-patience.C:
	}
	// The way it ends is ours, so its exit status says nothing.
	_ = server.Process.Signal(syscall.SIGTERM)
	patience.Reset(2 * time.Second)
	select {
	case <-ended:
	case <-patience.C:
		_ = server.Process.Kill()
		<-ended
	}
}

// used is what wait4 says a process used, its own children included.
func used(s *os.ProcessState) time.Duration { return s.UserTime() + s.SystemTime() }

func (p *peer) trace(ctx context.Context, w *world, t task, dir string) (tracing, error) {
	table := filepath.Join(dir, "calls")
	var c count
	var err error
	if p.agent != nil {
		c, _, err = p.guest(ctx, w, t, strace(table))
	} else {
		c, _, err = p.both(ctx, w, t, strace(table))
	}
	if err != nil {
		return tracing{}, fmt.Errorf("%s under strace: %w", p.title, err)
	}
	return readTable(table, tracing{task: t.name, tool: p.title, side: "client", transactions: c.units})
}

func strace(table string) []string {
	return []string{"strace", "-f", "-c", "-U", "calls,name", "-o", table}
}

func readTable(table string, t tracing) (tracing, error) {
	b, err := os.ReadFile(table)
	if err != nil {
		return t, fmt.Errorf("read strace's table: %w", err)
	}
	if t.calls = parseCalls(b); len(t.calls) == 0 {
		return t, errors.New("strace's table is empty")
	}
	return t, nil
}

func one(task) float64 { return 1 }

func seconds(t task) string { return strconv.Itoa(max(1, int(t.length/time.Second))) }

// iperf3 moves bulk data, with the congestion control and the message size of ours.
func iperf3() *peer {
	return &peer{
		title: "iperf3", tasks: []string{taskStream, taskUDP},
		server: func(_ task, port string) []string {
			return []string{"iperf3", "-s", "-1", "-4", "-p", port}
		},
		client: func(t task, port string) []string {
			argv := []string{"iperf3", "-c", serverAddress, "-p", port, "-t", seconds(t), "-l", strconv.Itoa(t.message), "-J"}
			if t.name == taskUDP {
				return append(argv, "-u", "-b", "0")
			}
			return append(argv, "-C", "cubic")
		},
		parse: func(b []byte, t task) (count, error) {
			if t.name == taskUDP {
				return parseIperf3(b, t.message)
			}
			return parseIperf3(b, 0)
		},
		scale: func(t task) float64 {
			if t.name == taskUDP {
				return 1
			}
			return 1.0 / 8 / 1000 // bits to KB
		},
	}
}

// netperf is the classic; not free software in the version that Debian packages.
func netperf() *peer {
	return &peer{
		title: "netperf", tasks: []string{taskRR, taskCRR}, scale: one,
		server: func(_ task, port string) []string {
			return []string{"netserver", "-D", "-f", "-4", "-p", port}
		},
		client: func(t task, port string) []string {
			test := "TCP_RR"
			if t.name == taskCRR {
				test = "TCP_CRR"
			}
			return []string{
				"netperf", "-H", serverAddress, "-p", port, "-t", test, "-l", seconds(t), "-P", "0", "--",
				"-r", fmt.Sprintf("%d,%d", t.sizes[0], t.sizes[1]), "-k", "THROUGHPUT,ELAPSED_TIME",
			}
		},
		parse: func(b []byte, _ task) (count, error) { return parseNetperf(b) },
	}
}

//go:embed peer/pingpong.c
var pingpongSource []byte

// pingpong compiles the C program into dir.
func pingpong(ctx context.Context, dir string) (*peer, error) {
	source, program := filepath.Join(dir, "pingpong.c"), filepath.Join(dir, "pingpong")
	if err := os.WriteFile(source, pingpongSource, 0o600); err != nil {
		return nil, err
	}
	if out, err := exec.CommandContext(ctx, "cc", "-O2", "-o", program, source).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("cc: %w: %s", err, strings.TrimSpace(string(out)))
	}
	argv := func(side string, t task, port string) []string {
		return []string{program, side, t.name, serverAddress, port, strconv.Itoa(t.sizes[0]), strconv.Itoa(t.sizes[1])}
	}
	return &peer{
		title: "C", tasks: []string{taskRR, taskCRR}, scale: one,
		server: func(t task, port string) []string { return argv("server", t, port) },
		client: func(t task, port string) []string { return append(argv("client", t, port), seconds(t)) },
		parse:  func(b []byte, _ task) (count, error) { return parsePingpong(b) },
	}, nil
}
