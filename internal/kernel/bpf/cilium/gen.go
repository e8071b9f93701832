package cilium

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -target bpfel -tags linux host host.bpf.c -- -I../include -Wall -Werror -mcpu=v3
//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -target bpfel -tags linux lxc lxc.bpf.c -- -I../include -Wall -Werror -mcpu=v3
//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -target bpfel -tags linux sock sock.bpf.c -- -I../include -Wall -Werror -mcpu=v3
