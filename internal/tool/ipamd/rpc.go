package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
)

// Fields of the messages, from rpc/rpc.proto of amazon-vpc-cni-k8s 1.23.
const (
	fieldSuccess     = 1
	fieldAllocations = 2
	// Of an allocation.
	fieldIPv4, fieldIPv6, fieldDevice, fieldTable = 1, 2, 3, 4
	// Of the requests to add and to remove.
	fieldAdded, fieldRemoved = 7, 8
)

// mainTable is the kernel's main routing table, which the pods of a node's first interface use.
const mainTable = 254

// addresses are the addresses that the daemon assigns.
type addresses struct {
	first, last netip.Addr
	// number is the number of the interface, from 1.
	number int

	mu sync.Mutex
	// of has the address of each container, by the container's name.
	of map[string]netip.Addr
}

// add returns the address of a container, the first free one. It returns the zero Addr if none is free.
func (a *addresses) add(container string) netip.Addr {
	a.mu.Lock()
	defer a.mu.Unlock()
	if own, ok := a.of[container]; ok {
		return own
	}
	used := map[netip.Addr]bool{}
	for _, other := range a.of {
		used[other] = true
	}
	for free := a.first; free.Compare(a.last) <= 0; free = free.Next() {
		if !used[free] {
			a.of[container] = free
			return free
		}
	}
	return netip.Addr{}
}

// remove frees the address of a container and returns it. It fails if the container has none.
func (a *addresses) remove(container string) (netip.Addr, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	own, ok := a.of[container]
	if !ok {
		return own, errors.New("datastore: unknown pod") // the plugin knows these words
	}
	delete(a.of, container)
	return own, nil
}

// handler answers the plugin's calls.
func handler(a *addresses) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /rpc.CNIBackend/AddNetwork", call(fieldAdded, func(container string) (netip.Addr, error) { return a.add(container), nil }, a.number))
	mux.HandleFunc("POST /rpc.CNIBackend/DelNetwork", call(fieldRemoved, a.remove, a.number))
	return mux
}

// call answers one kind of gRPC call. field is the number of the request's field that has the name of the container.
func call(field protowire.Number, do func(container string) (netip.Addr, error), number int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		container, err := requested(r.Body, field)
		var own netip.Addr
		if err == nil {
			own, err = do(container)
		}
		if err != nil {
			const unknown = "2"
			w.Header().Set("Grpc-Status", unknown)
			w.Header().Set("Grpc-Message", err.Error())
			return
		}
		message := reply(own, number)
		_, _ = w.Write(append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)) // a plugin that is gone waits for no answer
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
	}
}

// maxRequest bounds a request, in bytes.
const maxRequest = 1 << 16

// requested returns the name of the container in a request.
func requested(body io.Reader, field protowire.Number) (string, error) {
	const head = 5 // whether the message is compressed, and its length
	all, err := io.ReadAll(io.LimitReader(body, maxRequest))
	if err != nil {
		return "", err
	}
	if len(all) < head || all[0] != 0 || int(binary.BigEndian.Uint32(all[1:head])) != len(all)-head {
		return "", fmt.Errorf("request of %d bytes is not one plain message", len(all))
	}
	for m := all[head:]; len(m) > 0; {
		n, kind, size := protowire.ConsumeTag(m)
		if size < 0 {
			return "", protowire.ParseError(size)
		}
		m = m[size:]
		if n == field && kind == protowire.BytesType {
			value, size := protowire.ConsumeBytes(m)
			if size < 0 {
				return "", protowire.ParseError(size)
			}
			return string(value), nil
		}
		if size = protowire.ConsumeFieldValue(n, kind, m); size < 0 {
			return "", protowire.ParseError(size)
		}
		m = m[size:]
	}
	return "", fmt.Errorf("request has no field %d with the container", field)
}

// reply returns the answer to both calls: the address, and the interface and routing table of its packets. Without an
// address it is a failure.
func reply(own netip.Addr, number int) []byte {
	if !own.IsValid() {
		return nil // success is false by default
	}
	field, table := protowire.Number(fieldIPv4), number
	if own.Is6() {
		field = fieldIPv6
	}
	if number == 1 {
		table = mainTable
	}
	one := protowire.AppendString(protowire.AppendTag(nil, field, protowire.BytesType), own.String())
	one = appendNumber(one, fieldDevice, number-1)
	one = appendNumber(one, fieldTable, table)
	all := appendNumber(nil, fieldSuccess, 1)
	return protowire.AppendBytes(protowire.AppendTag(all, fieldAllocations, protowire.BytesType), one)
}

// appendNumber appends a field with a number.
func appendNumber(to []byte, field protowire.Number, value int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(to, field, protowire.VarintType), uint64(value))
}
