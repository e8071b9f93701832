package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/plan"
)

// get runs our client against whatever listens on port.
func get(t *testing.T, h plan.HTTP, port int, spoil func(*control.Prepare)) result {
	t.Helper()
	o := options(plan.Workload{Spec: h})
	o.Port = port
	if spoil != nil {
		spoil(&o)
	}
	c := prepare(t, control.SideClient, o)
	return wait(t, start(t.Context(), c), 1)[0]
}

// listen returns a TCP listener on the loopback that is closed with the test, and its port.
func listen(t *testing.T) (net.Listener, int) {
	t.Helper()
	needNamespace(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l, l.Addr().(*net.TCPAddr).Port
}

// TestClientAgainstNetHTTP: the client takes what another server says, too.
func TestClientAgainstNetHTTP(t *testing.T) {
	l, port := listen(t)
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Backend", "go")
		_, _ = io.WriteString(w, "hello, "+r.Method)
	})}
	go func() { _ = s.Serve(l) }()
	defer s.Close()
	for _, connection := range []string{"keep-alive", "close"} {
		r := get(t, plan.HTTP{Connection: connection, Connections: 7}, port, nil)
		if r.err != nil {
			t.Fatalf("%s: %v", connection, r.err)
		}
		o := r.o
		if len(o.Errors) > 0 || o.BytesReceived != o.Operations*uint64(len("hello, GET")) || uint64(o.RTT.Count()) != o.Operations {
			t.Errorf("%s: %d operations, %d bytes, %d times, errors %v", connection, o.Operations, o.BytesReceived, o.RTT.Count(), o.Errors)
		}
		b := o.Backends["go"]
		if b.Requests != o.Operations || connection == "keep-alive" && b.Connections != 7 || connection == "close" && b.Connections != b.Requests {
			t.Errorf("%s: %d operations, backends %v", connection, o.Operations, o.Backends)
		}
	}
}

// serving prepares and starts our server.
func serving(t *testing.T, o control.Prepare) int {
	t.Helper()
	needNamespace(t)
	s := prepare(t, control.SideServer, o)
	start(t.Context(), s)
	return s.Port()
}

// TestServerAgainstNetHTTP: another client reads what the server says, whatever it asks.
func TestServerAgainstNetHTTP(t *testing.T) {
	o := options(plan.Workload{Spec: plan.HTTP{ResponseSize: 5000}})
	o.Name = "node-1/pod-2"
	url := fmt.Sprintf("http://127.0.0.1:%d/any/path?q", serving(t, o))
	for _, c := range []struct {
		method string
		body   string
		status int
		length int
	}{
		{"GET", "", 200, 5000}, {"HEAD", "", 200, 0}, {"GET", "", 200, 5000}, {"DELETE", "", 405, 0}, {"GET", "a body", 413, 0},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, url, strings.NewReader(c.body))
		must(t, err)
		res, err := http.DefaultClient.Do(req)
		must(t, err)
		body, err := io.ReadAll(res.Body)
		must(t, errors.Join(err, res.Body.Close()))
		if res.StatusCode != c.status || len(body) != c.length || res.Header.Get("X-Backend") != o.Name {
			t.Errorf("%s: %s, %d bytes from %q", c.method, res.Status, len(body), res.Header.Get("X-Backend"))
		}
		if c.method == "HEAD" && res.ContentLength != 5000 {
			t.Errorf("HEAD speaks of %d bytes", res.ContentLength)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestServerAgainstTools runs the usual tools against the server; they must count no failure.
func TestServerAgainstTools(t *testing.T) {
	port := strconv.Itoa(serving(t, options(plan.Workload{Spec: plan.HTTP{}})))
	url := "http://127.0.0.1:" + port + "/"
	for _, c := range []struct {
		argv      []string
		want, not string
	}{
		{[]string{"curl", "-sS", "-i", url}, `(?s)HTTP/1.1 200 OK.*X-Backend: `, `curl:`},
		{[]string{"curl", "-sS", "-I", url}, `(?s)HTTP/1.1 200 OK.*Content-Length: 1024`, `curl:`},
		{[]string{"curl", "-sS", "-0", "-o", os.DevNull, "-w", "%{http_code} %{size_download}", url}, `200 1024`, `curl:`},
		{[]string{"wrk", "-t", "2", "-c", "100", "-d", "1s", url}, `Requests/sec: +[1-9]`, `Socket errors|Non-2xx`},
		{[]string{"wrk", "-t", "1", "-c", "5", "-d", "1s", "-H", "Connection: close", url}, `Requests/sec: +[1-9]`, `Socket errors|Non-2xx`},
		{[]string{"hey", "-n", "500", "-c", "10", url}, `\[200\]\s+500 responses`, `Error distribution`},
		{[]string{"hey", "-n", "200", "-c", "10", "-disable-keepalive", url}, `\[200\]\s+200 responses`, `Error distribution`},
	} {
		t.Run(strings.Join(c.argv[:3], " "), func(t *testing.T) {
			if _, err := exec.LookPath(c.argv[0]); err != nil {
				t.Skipf("needs %s: %v", c.argv[0], err)
			}
			out, err := exec.CommandContext(t.Context(), c.argv[0], c.argv[1:]...).CombinedOutput()
			if err != nil || !regexp.MustCompile(c.want).Match(out) || regexp.MustCompile(c.not).Match(out) {
				t.Errorf("%v: %v\n%s", c.argv, err, out)
			}
		})
	}
}

// TestServerTakesRequestsAsTheyCome: many in one piece, with more to answer than the socket holds, one in many pieces,
// and one whose sender has ended its direction.
func TestServerTakesRequestsAsTheyCome(t *testing.T) {
	const size = 300_000
	port := serving(t, options(plan.Workload{Spec: plan.HTTP{ResponseSize: size}}))
	const request = "GET /x HTTP/1.1\r\nHost: a\r\nUser-Agent: test\r\n\r\n"
	for name, c := range map[string]struct {
		send func(net.Conn)
		want int
	}{
		"in a row": {func(conn net.Conn) { _, _ = io.WriteString(conn, strings.Repeat(request, 300)) }, 300},
		"in pieces": {func(conn net.Conn) {
			for i := range request {
				_, _ = io.WriteString(conn, request[i:i+1])
			}
		}, 1},
		"half-closed": {func(conn net.Conn) {
			_, _ = io.WriteString(conn, request+request)
			_ = conn.(*net.TCPConn).CloseWrite()
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
			must(t, err)
			defer conn.Close()
			must(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
			go c.send(conn)
			r := bufio.NewReader(conn)
			for range c.want {
				res, err := http.ReadResponse(r, nil)
				must(t, err)
				n, err := io.Copy(io.Discard, res.Body)
				must(t, err)
				if res.StatusCode != 200 || n != size {
					t.Fatalf("%s, %d bytes", res.Status, n)
				}
			}
			if name == "half-closed" {
				if _, err := r.ReadByte(); err != io.EOF {
					t.Errorf("after the last response: %v", err)
				}
			}
		})
	}
}

// TestStrangeServers: what a server may do wrong is counted by its kind, and what it may do is no error.
func TestStrangeServers(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	for name, c := range map[string]struct {
		// answers are sent one after another, one to each request on a connection; then it is closed if ends.
		answers []string
		ends    bool
		want    string // kind of the failures, "" for none
		works   bool   // some requests are well
	}{
		"garbage":            {[]string{"220 mail.example ESMTP\r\n"}, false, protocol.String(), false},
		"chunked":            {[]string{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"}, false, protocol.String(), false},
		"until close":        {[]string{"HTTP/1.1 200 OK\r\n\r\nok"}, true, protocol.String(), false},
		"too much":           {[]string{ok + "ok"}, false, protocol.String(), false},
		"endless head":       {[]string{"HTTP/1.1 200 OK\r\nA: " + strings.Repeat("b", 10_000)}, false, protocol.String(), false},
		"half a head":        {[]string{ok[:20]}, true, gone.String(), false},
		"half a body":        {[]string{ok[:len(ok)-1]}, true, gone.String(), false},
		"nothing":            {nil, true, gone.String(), false},
		"half, and silence":  {[]string{ok[:20]}, false, timedOut.String(), false},
		"silence":            {[]string{""}, false, timedOut.String(), false},
		"refusal":            {[]string{"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"}, true, badStatus.String(), false},
		"closes unannounced": {[]string{ok, ok}, true, gone.String(), true},
		"closes announced":   {[]string{ok, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"}, true, "", true},
		"old":                {[]string{"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"}, true, "", true},
	} {
		for _, connection := range []string{"keep-alive", "close"} {
			t.Run(name+" "+connection, func(t *testing.T) {
				if connection == "close" && strings.HasPrefix(name, "closes") {
					t.Skip("the client has gone by then")
				}
				l, port := listen(t)
				go strange(l, c.answers, c.ends)
				r := get(t, plan.HTTP{Connection: connection, Connections: 3}, port, func(o *control.Prepare) { o.Timeout = 40 * time.Millisecond })
				checkStrange(t, r, c.want, c.works)
			})
		}
	}
}

// TestAConnectionThatHangs: the others go on, and it does not go unseen although the timeout is beyond the window.
func TestAConnectionThatHangs(t *testing.T) {
	l, port := listen(t)
	hangs := make(chan net.Conn, 1)
	go func() {
		if conn, err := l.Accept(); err == nil {
			hangs <- conn
			strange(l, []string{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"}, false)
		}
	}()
	r := get(t, plan.HTTP{Connections: 4}, port, func(o *control.Prepare) { o.Timeout = time.Minute })
	if r.err != nil || r.o.Operations == 0 || r.o.Errors[unanswered.String()] != 1 || len(r.o.Errors) != 1 {
		t.Errorf("%v, %+v", r.err, r.o)
	}
	must(t, (<-hangs).Close())
	silent, port := listen(t)
	go strange(silent, []string{""}, false)
	if r = get(t, plan.HTTP{Connection: "close"}, port, nil); kindOf(r.err) != unanswered.String() {
		t.Errorf("all hang: %v", r.err)
	}
}

func checkStrange(t *testing.T, r result, want string, works bool) {
	t.Helper()
	if !works {
		if kindOf(r.err) != want {
			t.Errorf("%v, want kind %q", r.err, want)
		}
		return
	}
	if r.err != nil {
		t.Fatal(r.err)
	}
	// A request that is under way to a server which has just closed is answered by a reset.
	failed := r.o.Errors[want] + r.o.Errors[reset.String()]
	if r.o.Operations == 0 || want == "" && failed > 0 || want != "" && failed == 0 || failures(r.o) > failed {
		t.Errorf("%d operations, errors %v, want %q", r.o.Operations, r.o.Errors, want)
	}
}

// strange is a server that follows a script on each connection.
func strange(l net.Listener, answers []string, ends bool) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			r := bufio.NewReader(conn)
			for i := 0; i < len(answers) || !ends; i++ {
				if _, err := http.ReadRequest(r); err != nil {
					return
				}
				if len(answers) > 0 {
					_, _ = io.WriteString(conn, answers[min(i, len(answers)-1)])
				}
			}
			if len(answers) == 0 {
				_, _ = http.ReadRequest(r) // so that it ends in an orderly way
			}
		}()
	}
}

// TestResponseInPieces: a response that comes byte by byte is whole in the end.
func TestResponseInPieces(t *testing.T) {
	l, port := listen(t)
	const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Backend: slow\r\n\r\nok"
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for r := bufio.NewReader(conn); ; {
					if _, err := http.ReadRequest(r); err != nil {
						return
					}
					for i := range ok {
						_, _ = io.WriteString(conn, ok[i:i+1])
					}
				}
			}()
		}
	}()
	for _, connection := range []string{"keep-alive", "close"} {
		r := get(t, plan.HTTP{Connection: connection, Threads: 1, Connections: 2}, port, nil)
		if r.err != nil || r.o.Operations == 0 || r.o.Backends["slow"].Requests != r.o.Operations {
			t.Errorf("%s: %v %+v", connection, r.err, r.o)
		}
		for kind := range r.o.Errors { // how soon it answers is not what is asked here
			if kind != unanswered.String() {
				t.Errorf("%s: %v", connection, r.o.Errors)
			}
		}
	}
}

// TestLastResponseEndsItsConnection: who has read the response has the end of the connection with it, not some time later.
func TestLastResponseEndsItsConnection(t *testing.T) {
	needNamespace(t)
	s := prepare(t, control.SideServer, options(plan.Workload{Spec: plan.HTTP{ResponseSize: 1000}}))
	done := start(t.Context(), s)
	for n := range 50 {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		must(t, err)
		f := os.NewFile(uintptr(fd), "connection")
		defer f.Close()
		must(t, unix.Connect(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: s.Port()}))
		_, err = unix.Write(fd, []byte("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"))
		must(t, err)
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN | unix.POLLRDHUP}}
		for {
			if _, err = unix.Poll(p, 10_000); err != unix.EINTR {
				break
			}
		}
		must(t, err)
		if p[0].Revents&unix.POLLRDHUP == 0 {
			t.Fatalf("connection %d: %#x is reported, and not the end", n, p[0].Revents)
		}
		b, err := io.ReadAll(f)
		must(t, err)
		if !strings.HasPrefix(string(b), "HTTP/1.1 200 ") || len(b) < 1000 {
			t.Fatalf("connection %d: %d bytes: %.60q", n, len(b), b)
		}
	}
	must(t, s.Close())
	<-done
}

// TestBackendsAreCounted: each connection and each request once, under the name that the server gave.
func TestBackendsAreCounted(t *testing.T) {
	for _, connection := range []string{"keep-alive", "close"} {
		o := options(plan.Workload{Spec: plan.HTTP{Connection: connection, Threads: 3, Connections: 20}})
		o.Name = "canal/node-1/pod-2"
		client, server := trial(t, o)
		b := client.Backends[o.Name]
		if len(client.Backends) != 1 || b.Requests != client.Operations || server.Backends != nil {
			t.Errorf("%s: %d operations, %v, server %v", connection, client.Operations, client.Backends, server.Backends)
		}
		if connection == "keep-alive" && b.Connections != 20 || connection == "close" && b.Connections != b.Requests {
			t.Errorf("%s: %+v", connection, b)
		}
	}
}

// timeWait returns how many TCP connections of the namespace wait for their time to pass.
func timeWait(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/proc/thread-self/net/sockstat")
	must(t, err)
	m := regexp.MustCompile(`TCP: .* tw (\d+)`).FindSubmatch(b)
	if m == nil {
		t.Fatalf("no tw in %s", b)
	}
	n, err := strconv.Atoi(string(m[1]))
	must(t, err)
	return n
}

// TestConnectionsLeaveNoTrace: thousands of connections, and none of them stays in TIME_WAIT.
func TestConnectionsLeaveNoTrace(t *testing.T) {
	needNamespace(t)
	before := timeWait(t)
	client, _ := trial(t, options(plan.Workload{Spec: plan.HTTP{Connection: "close", ResponseSize: 100_000}}))
	if n := timeWait(t) - before; client.Operations < 50 || n > int(client.Operations/50) {
		t.Errorf("%d connections, %d more in TIME_WAIT", client.Operations, n)
	}
}

func TestManyConnections(t *testing.T) {
	o := options(plan.Workload{Spec: plan.HTTP{Threads: 4, Connections: 2000}})
	o.Window = 500 * time.Millisecond
	eventually(t, 3, func() string {
		client, _ := trial(t, o)
		var connections uint64
		for _, b := range client.Backends {
			connections += b.Connections
		}
		if len(client.Errors) > 0 || connections != 2000 {
			o.Window *= 4 // a busy machine may not come to all of them
			return fmt.Sprintf("%d connections had a response, errors %v", connections, client.Errors)
		}
		return ""
	})
}

func TestHTTPNobodyListens(t *testing.T) {
	needNamespace(t)
	o := options(plan.Workload{Spec: plan.HTTP{}})
	o.Side, o.Port = control.SideClient, 9
	if _, err := Prepare(t.Context(), o); kindOf(err) != refused.String() {
		t.Errorf("keep-alive: %v", err)
	}
	r := get(t, plan.HTTP{Connection: "close"}, 9, nil)
	if kindOf(r.err) != refused.String() {
		t.Errorf("close: %v", r.err)
	}
}

// TestIdleServerIsNoFailure: of several backends one may get no connection.
func TestIdleServerIsNoFailure(t *testing.T) {
	needNamespace(t)
	s := prepare(t, control.SideServer, options(plan.Workload{Spec: plan.HTTP{}}))
	if r := wait(t, start(t.Context(), s), 1)[0]; r.err != nil || r.o.Operations != 0 || r.o.ElapsedNs <= 0 {
		t.Errorf("%+v, %v", r.o, r.err)
	}
}

// TestServerKilledMidway: connections break, are refused, and are made again when a server is back.
func TestServerKilledMidway(t *testing.T) {
	for _, connection := range []string{"keep-alive", "close"} {
		o := options(plan.Workload{Spec: plan.HTTP{Connection: connection}})
		o.Window, o.Side = 900*time.Millisecond, control.SideServer
		p := sideProcess(t, o)
		o.Port = p.port
		c := prepare(t, control.SideClient, o)
		p.run(t)
		done := start(t.Context(), c)
		time.Sleep(200 * time.Millisecond)
		must(t, p.cmd.Process.Kill())
		time.Sleep(200 * time.Millisecond)
		again := prepare(t, control.SideServer, o)
		serving := start(t.Context(), again)
		r := wait(t, done, 1)[0]
		if r.err != nil {
			t.Fatal(r.err)
		}
		if r.o.Errors[refused.String()] == 0 || r.o.Operations == 0 {
			t.Errorf("%s: %d operations, errors %v", connection, r.o.Operations, r.o.Errors)
		}
		must(t, c.Close())
		if s := wait(t, serving, 1)[0]; s.err != nil || s.o.Operations == 0 {
			t.Errorf("%s: the second server: %v, %+v", connection, s.err, s.o)
		}
	}
}

func TestTooFewDescriptors(t *testing.T) {
	needNamespace(t)
	var limit syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	defer func() { must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)) }()
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 256, Max: limit.Max}))
	for _, side := range []string{control.SideClient, control.SideServer} {
		o := options(plan.Workload{Spec: plan.HTTP{Connections: 1000}})
		o.Side, o.Port = side, 9
		_, err := Prepare(t.Context(), o)
		if kindOf(err) != descriptors.String() || !strings.Contains(fmt.Sprint(err), "limit is 256") {
			t.Errorf("%s: %v", side, err)
		}
	}
}

// TestDescriptorsRunOutMidway: new connections fail with their kind on the side that has no descriptor left.
func TestDescriptorsRunOutMidway(t *testing.T) {
	needNamespace(t)
	s, c := pair(t, options(plan.Workload{Spec: plan.HTTP{Connection: "close"}}))
	var limit syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	defer func() { must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)) }()
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 3, Max: limit.Max}))
	start(t.Context(), s)
	if r := wait(t, start(t.Context(), c), 1)[0]; kindOf(r.err) != descriptors.String() {
		t.Errorf("%v", r.err)
	}
}

func TestHTTPPortsRunOut(t *testing.T) {
	needNamespace(t)
	const file = "/proc/sys/net/ipv4/ip_local_port_range"
	before, err := os.ReadFile(file)
	must(t, err)
	must(t, os.WriteFile(file, []byte("40000 40001"), 0))
	t.Cleanup(func() { must(t, os.WriteFile(file, before, 0)) })
	o := options(plan.Workload{Spec: plan.HTTP{Connections: 8}})
	o.Port = 41001
	prepare(t, control.SideServer, o)
	o.Side = control.SideClient
	_, err = Prepare(t.Context(), o)
	if kindOf(err) != noPort.String() || !strings.Contains(fmt.Sprint(err), "ip_local_port_range") {
		t.Errorf("%v", err)
	}
}

func TestHTTPInABlackhole(t *testing.T) {
	address := blackhole(t).String()
	o := options(plan.Workload{Spec: plan.HTTP{}})
	o.Side, o.Address, o.Port = control.SideClient, address, 7
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := Prepare(ctx, o); kindOf(err) != KindCancelled {
		t.Errorf("keep-alive: %v", err)
	}
	r := get(t, plan.HTTP{Connection: "close"}, 7, func(o *control.Prepare) { o.Address, o.Timeout = address, 40*time.Millisecond })
	if kindOf(r.err) != timedOut.String() {
		t.Errorf("close: %v", r.err)
	}
}

// TestCongestionOfHTTP: a congestion control that is not there is refused with the choices, at both sides.
func TestCongestionOfHTTP(t *testing.T) {
	needNamespace(t)
	_, port := listen(t)
	for _, side := range []string{control.SideServer, control.SideClient} {
		o := options(plan.Workload{Spec: plan.HTTP{Congestion: "hearsay"}})
		o.Side, o.Port = side, port
		if side == control.SideServer {
			o.Port = 0
		}
		if _, err := Prepare(t.Context(), o); kindOf(err) != unsupported.String() || !strings.Contains(fmt.Sprint(err), "reno") {
			t.Errorf("%s: %v", side, err)
		}
	}
}

func TestBadHTTPOptions(t *testing.T) {
	good := options(plan.Workload{Spec: plan.HTTP{}})
	good.Side = control.SideServer
	for name, spoil := range map[string]func(*control.Prepare){
		"name":    func(o *control.Prepare) { o.Name = "a b" },
		"threads": func(o *control.Prepare) { o.Workload = plan.Workload{Spec: plan.HTTP{Threads: plan.MaxThreads + 1}} },
		"connections": func(o *control.Prepare) {
			o.Workload = plan.Workload{Spec: plan.HTTP{Connections: plan.MaxConnections + 1}}
		},
		"idle threads":         func(o *control.Prepare) { o.Workload = plan.Workload{Spec: plan.HTTP{Threads: 4, Connections: 3}} },
		"negative connections": func(o *control.Prepare) { o.Workload = plan.Workload{Spec: plan.HTTP{Connections: -1}} },
		"response": func(o *control.Prepare) {
			o.Workload = plan.Workload{Spec: plan.HTTP{ResponseSize: plan.MaxRequest + 1}}
		},
	} {
		o := good
		spoil(&o)
		if _, err := Prepare(t.Context(), o); kindOf(err) != KindUsage {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestServerThreads: one for each CPU of the server, and the client's as asked for.
func TestServerThreads(t *testing.T) {
	for _, c := range []struct {
		client        bool
		cpus, threads int
	}{{false, 1, 1}, {false, 0, 5}, {true, 1, 5}} {
		if got := httpWork(plan.HTTP{Threads: 5}, c.client, c.cpus).threads; got != c.threads {
			t.Errorf("%+v: %d threads", c, got)
		}
	}
}
