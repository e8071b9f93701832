package cilium

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -target bpfel -tags linux host host.bpf.c -- -I../include -Wall -Werror -mcpu=v3
//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -target bpfel -tags linux lxc lxc.bpf.c -- -I../include -Wall -Werror -mcpu=v3
//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -target bpfel -tags linux sock sock.bpf.c -- -I../include -Wall -Werror -mcpu=v3
//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -target bpfel -tags linux -no-global-types host6 host.bpf.c -- -I../include -Wall -Werror -mcpu=v3 -DIPV6
//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -target bpfel -tags linux -no-global-types lxc6 lxc.bpf.c -- -I../include -Wall -Werror -mcpu=v3 -DIPV6
//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -target bpfel -tags linux -no-global-types sock6 sock.bpf.c -- -I../include -Wall -Werror -mcpu=v3 -DIPV6
