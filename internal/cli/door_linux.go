package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/kernel/cgroup"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// A lab that stands has a door: an abstract Unix socket, which has a name and no file and is gone with the process.
// Whoever knocks says a place and is handed the descriptor of its namespace.

// doorPrefix begins the name of every door; the name of the lab follows.
const doorPrefix = "@cnibench-lab/"

// maxKnock bounds a question in bytes.
const maxKnock = 4 << 10

type question struct {
	// Place is the name of a host, "" to ask for all of them.
	Place string `json:"place"`
}

type answer struct {
	Error  string   `json:"error,omitempty"`
	Places []string `json:"places,omitempty"`
	// Cgroup is the directory of the place's cgroup, by which the eBPF profiles know whose sockets they translate in.
	Cgroup string `json:"cgroup,omitempty"`
}

// door is the listening end.
type door struct{ *net.UnixListener }

func openDoor(name string) (*door, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: doorPrefix + name, Net: "unix"})
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, usage(advice.With(fmt.Errorf("a lab called %q stands already", name), "give this one another name by --name"))
	}
	if err != nil {
		return nil, fmt.Errorf("open the door of lab %q: %w", name, err)
	}
	return &door{l}, nil
}

func (d *door) close() { _ = d.Close() } // nothing can be done about it, and the process ends

// rooms are what a door leads to. With several instances the name of a place begins with that of its instance.
type rooms []*lab.Instance

// host returns the host of a name, or nil.
func (r rooms) host(name string) *lab.Host {
	for _, inst := range r {
		if inst.Err != nil {
			continue
		}
		own := name
		if len(r) > 1 {
			var ok bool
			if own, ok = strings.CutPrefix(name, string(inst.Name)+"/"); !ok {
				continue
			}
		}
		if h := inst.Host(own); h != nil {
			return h
		}
	}
	return nil
}

// each calls do with the name of every host.
func (r rooms) each(do func(name string, h *lab.Host)) {
	for _, inst := range r {
		if inst.Err != nil {
			continue
		}
		for _, h := range inst.Hosts() {
			name := h.Name
			if len(r) > 1 {
				name = string(inst.Name) + "/" + name
			}
			do(name, h)
		}
	}
}

// serve answers until the door is closed.
func (d *door) serve(r rooms) {
	for {
		c, err := d.AcceptUnix()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			_ = reply(c, r) // who knocked has gone away
		}()
	}
}

// reply answers one question. Only root and the user who raised the lab may have its namespaces.
func reply(c *net.UnixConn, r rooms) error {
	uid, err := peer(c)
	if err != nil {
		return err
	}
	var a answer
	var rights []byte
	var q question
	switch err := json.NewDecoder(io.LimitReader(c, maxKnock)).Decode(&q); {
	case err != nil:
		return err
	case uid != 0 && uid != os.Geteuid():
		a.Error = "the lab belongs to another user"
	case q.Place == "":
		a.Places = places(r)
	default:
		host := r.host(q.Place)
		if host == nil {
			a.Error = fmt.Sprintf("there is no %q here; there are %s", q.Place, strings.Join(names(r), ", "))
			break
		}
		rights, a.Cgroup = syscall.UnixRights(host.NS.FD()), host.CgroupPath()
	}
	b, err := json.Marshal(a)
	if err != nil {
		return err
	}
	_, _, err = c.WriteMsgUnix(append(b, '\n'), rights, nil)
	return err
}

// peer returns the user at the other end.
func peer(c *net.UnixConn) (int, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *syscall.Ucred
	var got error
	if err := raw.Control(func(fd uintptr) {
		cred, got = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if got != nil {
		return 0, os.NewSyscallError("getsockopt SO_PEERCRED", got)
	}
	return int(cred.Uid), nil
}

func names(r rooms) []string {
	var list []string
	r.each(func(name string, _ *lab.Host) { list = append(list, name) })
	return list
}

// places are the names with their addresses.
func places(r rooms) []string {
	var list []string
	r.each(func(name string, h *lab.Host) { list = append(list, fmt.Sprintf("%-14s %s", name, h.Addr)) })
	return list
}

// standing returns the names of the labs that stand in this network namespace.
func standing() ([]string, error) {
	b, err := os.ReadFile("/proc/thread-self/net/unix")
	if err != nil {
		return nil, fmt.Errorf("look for labs: %w", err)
	}
	var list []string
	for line := range strings.Lines(string(b)) {
		fields := strings.Fields(line)
		if name, ok := strings.CutPrefix(fields[len(fields)-1], doorPrefix); ok && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list, nil
}

// knock asks the lab called name for a place. The namespace is the caller's to close; nil if place is "".
func knock(name, place string) (answer, *netns.NS, error) {
	var a answer
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: doorPrefix + name, Net: "unix"})
	if err != nil {
		return a, nil, advice.With(fmt.Errorf("no lab called %q stands", name), "raise it: cnibench lab up")
	}
	defer c.Close()
	// The name is free for everybody to take: what another user hands out is not to be entered.
	if uid, err := peer(c); err != nil || uid != 0 && uid != os.Geteuid() && os.Getenv("SUDO_UID") != fmt.Sprint(uid) {
		return a, nil, errors.Join(fmt.Errorf("the lab called %q belongs to another user", name), err)
	}
	if err := json.NewEncoder(c).Encode(question{place}); err != nil {
		return a, nil, fmt.Errorf("ask lab %q: %w", name, err)
	}
	ns, err := receive(c, &a)
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	if err == nil && place != "" && ns == nil {
		err = errors.New("it handed nothing out")
	}
	if err != nil {
		return a, nil, fmt.Errorf("lab %q: %w", name, err)
	}
	return a, ns, nil
}

// receive reads an answer and the namespace that comes with it, if one does.
func receive(c *net.UnixConn, a *answer) (*netns.NS, error) {
	line, rights := make([]byte, 64<<10), make([]byte, syscall.CmsgSpace(4))
	n, oobn, _, _, err := c.ReadMsgUnix(line, rights)
	if err != nil {
		return nil, err
	}
	var ns *netns.NS
	if messages, err := syscall.ParseSocketControlMessage(rights[:oobn]); err == nil {
		for _, m := range messages {
			if fds, err := syscall.ParseUnixRights(&m); err == nil && len(fds) == 1 {
				ns = netns.FromFile(os.NewFile(uintptr(fds[0]), "netns"))
			}
		}
	}
	rest := io.MultiReader(bytes.NewReader(line[:n]), c)
	return ns, json.NewDecoder(bufio.NewReader(rest)).Decode(a)
}

// become turns this process into the command, inside ns and the cgroup of a directory, if there is one: signals, terminal and exit code are its own. It returns only
// if that fails.
func become(ns *netns.NS, group string, argv []string) error {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return advice.With(fmt.Errorf("run %s: %w", argv[0], err), "the lab has the programs of this machine; install it, or give its whole path")
	}
	if group != "" {
		if err := cgroup.Join(group); err != nil {
			return advice.With(fmt.Errorf("run %s in the lab: %w", argv[0], err), "joining a cgroup needs the rights of who raised the lab: run it as root")
		}
	}
	err = ns.Do(func() error { return os.NewSyscallError("execve", syscall.Exec(path, argv, os.Environ())) })
	return advice.With(fmt.Errorf("run %s in the lab: %w", argv[0], err), "entering a namespace needs the rights of who raised the lab: run it as root")
}
