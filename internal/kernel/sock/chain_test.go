package sock

import (
	"net/netip"
	"syscall"
	"testing"
	"time"
)

// runs are the ways to run a chain.
var runs = map[string]func(*Chain) int{
	"run":   (*Chain).Run,
	"plain": func(c *Chain) int { return plainRun(&c.calls[0], len(c.calls)) },
}

// TestChain makes a transaction by one chain at each end. The next begins where the first did, and each has its own sockets.
func TestChain(t *testing.T) {
	for name, run := range runs {
		t.Run(name, func(t *testing.T) {
			from, at := listener(t)
			if err := syscall.SetNonblock(from, false); err != nil {
				t.Fatal(err)
			}
			request, response := []byte("request"), []byte("response")
			got, answered := make([]byte, len(request)), make([]byte, len(response))
			var server, client Chain
			server.Accept(from)
			server.Recv(Made, got, WaitAll)
			server.Send(Made, response)
			server.Close(Made)
			client.Socket(IPv4, Stream)
			client.Connect(Made, &at)
			client.Send(Made, request)
			client.Recv(Made, answered, WaitAll)
			client.Close(Made)
			for range 3 {
				served := make(chan int, 1)
				go func() { served <- run(&server) }()
				clear(answered)
				if n := run(&client); n != 5 || string(answered) != string(response) {
					_, e := client.Result(n)
					t.Fatalf("the client made %d calls, then %v; it has %q", n, e, answered)
				}
				if n := <-served; n != 4 || string(got) != string(request) {
					t.Fatalf("the server made %d calls; it has %q", n, got)
				}
				if began, connected, ended := client.Ticks(0), client.Ticks(1), client.Ticks(3); began != 0 && (began >= connected || connected >= ended) {
					t.Errorf("the counter went back: %d %d %d", began, connected, ended)
				}
			}
		})
	}
}

// TestChainStops: after a call with another result than it should have, no other is made.
func TestChainStops(t *testing.T) {
	for name, run := range runs {
		t.Run(name, func(t *testing.T) {
			pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer Close(pair[0])
			defer Close(pair[1])
			var refused, short, bad Chain
			refused.Socket(IPv4, Stream)
			nowhere := NewAddr(netip.MustParseAddrPort("127.0.0.1:1"), IPv4)
			refused.Connect(Made, &nowhere)
			refused.Close(Made)
			n := run(&refused)
			if _, e := refused.Result(n); n != 1 || e != syscall.ECONNREFUSED {
				t.Errorf("a refused connect: %d calls, then %v", n, e)
			}
			if fd, _ := refused.Result(0); Close(fd) != 0 {
				t.Error("the chain has closed its socket")
			}
			b := make([]byte, 8)
			short.Send(pair[0], b[:3])
			short.Recv(pair[1], b, DontWait)
			short.Send(pair[0], b)
			n = run(&short)
			if got, e := short.Result(n); n != 1 || got != 3 || e != 0 {
				t.Errorf("a short receive: %d calls, then %d bytes, %v", n, got, e)
			}
			bad.Recv(-5, b, 0)
			n = run(&bad)
			if got, e := bad.Result(n); n != 0 || got != -1 || e != syscall.EBADF {
				t.Errorf("a bad descriptor: %d calls, then %d, %v", n, got, e)
			}
		})
	}
}

// TestChainGivesUp: a blocking call that ends without its bytes ends the chain, so its thread looks at the phase.
func TestChainGivesUp(t *testing.T) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer Close(pair[0])
	defer Close(pair[1])
	if err := SetTimeouts(pair[1], 10*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	var c Chain
	c.Recv(pair[1], make([]byte, 8), WaitAll)
	n := c.Run()
	if _, e := c.Result(n); n != 0 || e != syscall.EAGAIN && e != syscall.EINTR {
		t.Errorf("%d calls, then %v", n, e)
	}
}
