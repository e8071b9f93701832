package testbed

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/kernel/handover"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// prefix is the prefix of every socket's name, before the name of the lab.
const prefix = "@cnibench-lab/"

// maxRequest bounds a request in bytes.
const maxRequest = 4 << 10

// ErrNameTaken means that another lab has the name.
var ErrNameTaken = errors.New("another lab has this name")

// ErrNoLab means that no lab with the requested name is up. ErrNoHost means that the lab has no host with the
// requested name.
var (
	ErrNoLab  = errors.New("no lab")
	ErrNoHost = errors.New("no host")
)

type request struct {
	// Host is the name of the host whose namespace is requested, "" for a list of all hosts.
	Host string `json:"host"`
	// Describe asks for the description that another process needs to measure in the lab.
	Describe bool `json:"describe,omitempty"`
}

// answer is the response of a lab to a request.
type answer struct {
	Error string `json:"error,omitempty"`
	// Hosts are all hosts, if no host was requested or the requested host does not exist.
	Hosts []string `json:"hosts,omitempty"`
	// Cgroup is the directory of the host's cgroup. eBPF profiles translate Services in the sockets of this cgroup.
	Cgroup string `json:"cgroup,omitempty"`
	// Instances describe the instances that are up, if requested.
	Instances []lab.Description `json:"instances,omitempty"`
}

// server gives other processes access to the hosts of a lab. It listens on an abstract Unix socket, which has no file
// and ends with the process. A client sends the name of a host and receives the descriptor of its network namespace.
type server struct{ listener *net.UnixListener }

// Listen opens the socket of the lab called name. It fails with ErrNameTaken if another lab has that name.
func Listen(name string) (*server, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: prefix + name, Net: "unix"})
	if names, _ := Names(); err != nil && slices.Contains(names, name) {
		return nil, advice.With(fmt.Errorf("lab %q: %w", name, ErrNameTaken), "choose another name: --name")
	}
	if err != nil {
		return nil, fmt.Errorf("open the socket of lab %q: %w", name, err)
	}
	return &server{l}, nil
}

// Close ends Serve.
func (s *server) Close() { _ = s.listener.Close() } // the socket ends with the process

// hosts has the instances whose hosts are served. With several instances, the name of each host begins with the
// instance's.
type hosts []*lab.Instance

// all yields every host with its name.
func (r hosts) all(yield func(string, *lab.Host) bool) {
	for _, inst := range r {
		for _, h := range inst.Hosts() {
			name := h.Name
			if len(r) > 1 {
				name = inst.Name.String() + "/" + name
			}
			if !yield(name, h) {
				return
			}
		}
	}
}

// Serve answers requests until the server is closed, with the instances at the time of each request.
func (s *server) Serve(instances func() []*lab.Instance) {
	for {
		c, err := s.listener.AcceptUnix()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			_ = answerRequest(c, instances()) // the client has disconnected
		}()
	}
}

// answerRequest answers one request. Only root and the user of the lab get an answer; other users get an error.
func answerRequest(c *net.UnixConn, r hosts) error {
	uid, err := handover.PeerUID(c)
	if err != nil {
		return err
	}
	var q request
	if err := json.NewDecoder(io.LimitReader(c, maxRequest)).Decode(&q); err != nil {
		return err
	}
	var a answer
	var fds []int
	host := maps.Collect(r.all)[q.Host]
	switch {
	case uid != 0 && uid != os.Geteuid():
		a.Error = "the lab belongs to another user"
	case q.Describe:
		for _, inst := range r {
			if inst.Err == nil {
				a.Instances = append(a.Instances, inst.Describe())
			}
		}
	case q.Host == "":
		for name, h := range r.all {
			a.Hosts = append(a.Hosts, fmt.Sprintf("%-14s %s", name, h.Addr))
		}
	case host == nil:
		for name := range r.all {
			a.Hosts = append(a.Hosts, name)
		}
	default:
		fds, a.Cgroup = []int{host.NS.FD()}, host.CgroupPath()
	}
	b, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return handover.Send(c, append(b, '\n'), fds...)
}

// Names returns the names of the labs in this network namespace.
func Names() ([]string, error) {
	b, err := os.ReadFile("/proc/thread-self/net/unix")
	if err != nil {
		return nil, fmt.Errorf("look for labs: %w", err)
	}
	var list []string
	for line := range strings.Lines(string(b)) {
		fields := strings.Fields(line)
		if name, ok := strings.CutPrefix(fields[len(fields)-1], prefix); ok && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list, nil
}

// Ask requests the namespace and cgroup of a host from the lab called name. If host is "", it requests the list of
// hosts. The caller closes the namespace. Ask fails with ErrNoLab or ErrNoHost if there is no such lab or host. It
// trusts only labs of root, of this process's user, and of the user with the id sudo ("" for none).
func Ask(name, host, sudo string) (answer, *netns.NS, error) {
	return askLab(name, request{Host: host}, sudo)
}

// Describe returns the description that a process needs to measure in the lab called name. It trusts the same labs as
// Ask.
func Describe(name, sudo string) ([]lab.Description, error) {
	a, ns, err := askLab(name, request{Describe: true}, sudo)
	return a.Instances, errors.Join(err, ns.Close())
}

func askLab(name string, q request, sudo string) (answer, *netns.NS, error) {
	var a answer
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: prefix + name, Net: "unix"})
	if err != nil {
		return a, nil, advice.With(fmt.Errorf("%w %q is up", ErrNoLab, name), "start it: cnibench lab up")
	}
	defer c.Close()
	// Any user may take the name, but must not choose the namespace.
	if uid, err := handover.PeerUID(c); err != nil || uid != 0 && uid != os.Geteuid() && sudo != fmt.Sprint(uid) {
		return a, nil, errors.Join(fmt.Errorf("lab %q belongs to another user", name), err)
	}
	if err := json.NewEncoder(c).Encode(q); err != nil {
		return a, nil, fmt.Errorf("ask lab %q: %w", name, err)
	}
	ns, err := readAnswer(c, &a)
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	if err == nil && q.Host != "" && ns == nil {
		err = fmt.Errorf("%w %q; the hosts are %s", ErrNoHost, q.Host, strings.Join(a.Hosts, ", "))
	}
	if err != nil {
		return a, nil, fmt.Errorf("lab %q: %w", name, err)
	}
	return a, ns, nil
}

// readAnswer reads an answer and its namespace, if any.
func readAnswer(c *net.UnixConn, a *answer) (*netns.NS, error) {
	line := make([]byte, 64<<10)
	n, file, err := handover.Receive(c, line, "netns")
	if err != nil {
		return nil, err
	}
	var ns *netns.NS
	if file != nil {
		ns = netns.FromFile(file)
	}
	rest := io.MultiReader(bytes.NewReader(line[:n]), c)
	return ns, json.NewDecoder(bufio.NewReader(rest)).Decode(a)
}
