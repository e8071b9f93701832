package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// daemon starts one at a socket and returns a client of it.
func daemon(t *testing.T, a *addresses) *http.Client {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "aws-node", "ipamd.sock")
	listener, err := listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, listener, a) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	transport := &http.Transport{Protocols: new(http.Protocols), DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// asked makes a call and returns the answer's message and the state of the call.
func asked(t *testing.T, c *http.Client, method string, message []byte) (answer []byte, status string) {
	t.Helper()
	body := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
	response, err := c.Post("http://localhost/rpc.CNIBackend/"+method, "application/grpc", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if answer, err = io.ReadAll(response.Body); err != nil {
		t.Fatal(err)
	}
	if status = response.Trailer.Get("Grpc-Status"); status == "" {
		status = response.Header.Get("Grpc-Status") + " " + response.Header.Get("Grpc-Message")
	}
	if len(answer) > 0 {
		answer = answer[5:]
	}
	return answer, status
}

// named is a request of a container: another field, and the one with the name.
func named(field protowire.Number, container string) []byte {
	m := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "pod")
	m = protowire.AppendVarint(protowire.AppendTag(m, 9, protowire.VarintType), 1)
	return protowire.AppendString(protowire.AppendTag(m, field, protowire.BytesType), container)
}

func addressesOf(t *testing.T, first, last string, number int) *addresses {
	t.Helper()
	a, err := newAddresses(first, last, number)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestCalls: each container has an address of its own, keeps it until it is removed, and no other address is given out.
func TestCalls(t *testing.T) {
	c := daemon(t, addressesOf(t, "172.18.129.2", "172.18.129.3", 1))
	want := func(method, container, contains, status string) {
		t.Helper()
		field := protowire.Number(fieldAdded)
		if method == "DelNetwork" {
			field = fieldRemoved
		}
		answer, got := asked(t, c, method, named(field, container))
		if !strings.Contains(string(answer), contains) || (contains == "") != (len(answer) == 0) || got != status {
			t.Errorf("%s of %s: %q, %s; want %s, %s", method, container, answer, got, contains, status)
		}
	}
	want("AddNetwork", "a", "172.18.129.2", "0")
	want("AddNetwork", "b", "172.18.129.3", "0")
	want("AddNetwork", "a", "172.18.129.2", "0")
	want("AddNetwork", "c", "", "0") // no success
	want("DelNetwork", "a", "172.18.129.2", "0")
	want("DelNetwork", "a", "", "2 datastore: unknown pod")
	want("AddNetwork", "c", "172.18.129.2", "0")
	if _, status := asked(t, c, "AddNetwork", nil); status != "2 request has no field 7 with the container" {
		t.Error(status)
	}
	if _, status := asked(t, c, "AddNetwork", []byte{0xff}); !strings.HasPrefix(status, "2 ") {
		t.Error(status)
	}
}

// TestReply: the answer has the fields of the contract. A pod of the first interface uses the main table.
func TestReply(t *testing.T) {
	for _, tc := range []struct {
		first         string
		number        int
		field         protowire.Number
		device, table uint64
	}{{"10.0.0.1", 1, fieldIPv4, 0, 254}, {"10.0.0.1", 2, fieldIPv4, 1, 2}, {"fd00::1", 1, fieldIPv6, 0, 254}} {
		a := addressesOf(t, tc.first, tc.first, tc.number)
		want := protowire.AppendTag([]byte{fieldSuccess << 3, 1}, fieldAllocations, protowire.BytesType)
		one := protowire.AppendString(protowire.AppendTag(nil, tc.field, protowire.BytesType), tc.first)
		one = protowire.AppendVarint(protowire.AppendTag(one, fieldDevice, protowire.VarintType), tc.device)
		one = protowire.AppendVarint(protowire.AppendTag(one, fieldTable, protowire.VarintType), tc.table)
		if got := reply(a.add("pod"), a.number); !bytes.Equal(got, protowire.AppendBytes(want, one)) {
			t.Errorf("%s at interface %d: %x", tc.first, tc.number, got)
		}
	}
}

func TestBadAddresses(t *testing.T) {
	for _, tc := range []struct {
		first, last string
		number      int
	}{{"", "10.0.0.1", 1}, {"10.0.0.1", "x", 1}, {"10.0.0.2", "10.0.0.1", 1}, {"10.0.0.1", "fd00::1", 1}, {"10.0.0.1", "10.0.0.1", 0}} {
		if _, err := newAddresses(tc.first, tc.last, tc.number); err == nil {
			t.Errorf("%v is accepted", tc)
		}
	}
}
