package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
)

// listenerFD is the descriptor of the listening socket that the switch's process inherits.
const listenerFD = 3

// runSwitch holds the namespace that connects the nodes. It also forwards connections from this machine's loopback,
// where the listener is bound, to the API server: so the machine itself gets no device and no route.
func runSwitch(apiServer string) error {
	for _, f := range []string{"iptables", "ip6tables", "arptables"} {
		// A switch does not filter. Without the file there is nothing to turn off.
		if err := os.WriteFile("/proc/sys/net/bridge/bridge-nf-call-"+f, []byte("0"), 0); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	l, err := net.FileListener(os.NewFile(listenerFD, "listener"))
	if err != nil {
		return fmt.Errorf("take over the listener: %w", err)
	}
	for {
		near, err := l.Accept()
		if err != nil {
			return fmt.Errorf("accept a connection for the API server: %w", err)
		}
		go forward(near, apiServer)
	}
}

// forward joins a connection to a new one. If the new one fails, it closes the connection, so the client sees it at
// once.
func forward(near net.Conn, to string) {
	defer near.Close()
	far, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer far.Close()
	var both sync.WaitGroup
	both.Go(func() { pump(far, near) })
	both.Go(func() { pump(near, far) })
	both.Wait()
}

// pump copies one direction and passes its end on. If it ends with an error, the other direction has ended too.
func pump(to, from net.Conn) {
	if _, err := io.Copy(to, from); err != nil {
		to.Close()
		from.Close()
		return
	}
	to.(*net.TCPConn).CloseWrite()
}
