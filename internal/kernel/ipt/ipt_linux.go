package ipt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/kernel/thread"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// Flavor is the variant of iptables, named after the kernel subsystem into which it loads rules.
type Flavor string

// The flavours. Auto is only for Find; a Tool has NFT or Legacy.
const (
	Auto   Flavor = "auto"
	NFT    Flavor = "nft"
	Legacy Flavor = "legacy"
)

// Family is a version of IP, named like its program.
type Family string

// The families.
const (
	IPv4 Family = "iptables"
	IPv6 Family = "ip6tables"
)

// ErrMissing is wrapped by the errors of programs that are not installed.
var ErrMissing = errors.New("not installed")

// Tool is one flavour of iptables on this machine, for one version of IP.
type Tool struct {
	// Family is IPv4 or IPv6.
	Family Family
	// Flavor is NFT or Legacy.
	Flavor Flavor
	// Version is the version in the program's format, for example "1.8.9".
	Version       string
	restore, save string
}

// Name returns the program, flavour and version in one text, for example "iptables-nft 1.8.9".
func (t *Tool) Name() string { return string(t.Family) + "-" + string(t.Flavor) + " " + t.Version }

// Find returns the tool of a flavour for IPv4 or IPv6. Auto chooses the first of the nft and the legacy flavour that
// can load a NAT rule in a new namespace. This needs the right to make namespaces. If the program is not installed,
// Find fails with ErrMissing.
func Find(ctx context.Context, flavor Flavor, ipv6 bool) (*Tool, error) {
	f := IPv4
	if ipv6 {
		f = IPv6
	}
	switch flavor {
	case NFT, Legacy:
		return findFlavor(ctx, flavor, f)
	case Auto, "":
		return findWorkingFlavor(ctx, f)
	}
	return nil, fmt.Errorf("iptables flavour %q is not auto, nft or legacy", flavor)
}

func findWorkingFlavor(ctx context.Context, f Family) (*Tool, error) {
	var errs []error
	for _, flavor := range []Flavor{NFT, Legacy} {
		t, err := findFlavor(ctx, flavor, f)
		if err == nil {
			err = t.Works(ctx)
		}
		if err == nil {
			return t, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("no flavour of %s works: %w", f, errors.Join(errs...))
}

// Works tests whether the tool can load a NAT rule in a new namespace. It fails if the tool cannot.
func (t *Tool) Works(ctx context.Context) error {
	ns, err := netns.New()
	if err != nil {
		return err
	}
	// The namespace is empty; a failed close loses nothing.
	defer func() { _ = ns.Close() }()
	return t.Restore(ctx, ns, "*nat\n-A POSTROUTING -j MASQUERADE\nCOMMIT\n")
}

const installIPTables = "install it: apt-get install iptables (Debian, Ubuntu), dnf install iptables-nft or iptables-legacy (Fedora)"

// findFlavor returns the tool of a flavour: the program with the flavour in its name, or else a plain iptables-restore that
// reports the flavour. It fails with ErrMissing if there is none.
func findFlavor(ctx context.Context, flavor Flavor, f Family) (*Tool, error) {
	for _, name := range []string{string(f) + "-" + string(flavor) + "-restore", string(f) + "-restore"} {
		path, err := lookPath(name)
		if err != nil {
			continue
		}
		version, is, err := versionOf(ctx, path)
		if err != nil || is != flavor {
			continue
		}
		save := strings.TrimSuffix(path, "restore") + "save"
		return &Tool{Family: f, Flavor: flavor, Version: version, restore: path, save: save}, nil
	}
	err := fmt.Errorf("%s of the %s flavour (%s-%s-restore): %w", f, flavor, f, flavor, ErrMissing)
	return nil, advice.With(err, installIPTables)
}

// sbin has the directories that are searched in addition to PATH, which often lacks them for an ordinary user.
var sbin = []string{"/usr/sbin", "/sbin", "/usr/local/sbin"}

func lookPath(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	for _, dir := range sbin {
		if p, sbinErr := exec.LookPath(filepath.Join(dir, name)); sbinErr == nil {
			return p, nil
		}
	}
	return "", err
}

var versionText = regexp.MustCompile(`v(\d[\w.]*)(?: \((nf_tables|legacy)\))?`)

func versionOf(ctx context.Context, path string) (version string, flavor Flavor, err error) {
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return "", "", fmt.Errorf("%s --version: %w", path, err)
	}
	m := versionText.FindStringSubmatch(string(out))
	if m == nil {
		return "", "", fmt.Errorf("%s --version says %q, which has no version in it", path, out)
	}
	flavor = Legacy // versions before 1.8 only have this flavour and do not report it
	if m[2] == "nf_tables" {
		flavor = NFT
	}
	return m[1], flavor, nil
}

// Restore replaces the tables that rules names, inside ns, with one run of iptables-restore. rules has the format of
// iptables-save. The error names the refused line; tables before the refused one are already replaced.
func (t *Tool) Restore(ctx context.Context, ns *netns.NS, rules string) error {
	return runCommand(ctx, ns, t.newCommand(ctx, t.restore, rules))
}

// Change applies rules inside ns with one run of iptables-restore --noflush: chains that rules does not declare stay.
// The program runs on the given CPUs; without CPUs, on any. The error names the refused line; its table is unchanged.
func (t *Tool) Change(ctx context.Context, ns *netns.NS, rules string, cpus ...int) error {
	c := t.newCommand(ctx, t.restore, rules, "--noflush")
	c.cpus = cpus
	return runCommand(ctx, ns, c)
}

// Feed runs another program of netfilter or traffic control inside ns, with text as its input. The error has the
// program's stderr.
func Feed(ctx context.Context, ns *netns.NS, program, text string, args ...string) error {
	path, err := lookPath(program)
	if err != nil {
		return fmt.Errorf("%s: %w", program, ErrMissing)
	}
	return runCommand(ctx, ns, command{cmd: exec.CommandContext(ctx, path, args...), input: text})
}

// Save returns the output of iptables-save -c for one table of ns: the rules with their counters. table "" means all
// tables.
func (t *Tool) Save(ctx context.Context, ns *netns.NS, table string) (string, error) {
	args := []string{"-c"}
	if table != "" {
		args = append(args, "-t", table)
	}
	c := t.newCommand(ctx, t.save, "", args...)
	var out bytes.Buffer
	c.cmd.Stdout = &out
	if err := runCommand(ctx, ns, c); err != nil {
		return "", err
	}
	return out.String(), nil
}

// command is a program to run. input is its standard input.
type command struct {
	cmd   *exec.Cmd
	input string
	// ownLock gives the program a lock file of its own.
	ownLock bool
	// cpus are the CPUs for the program; empty means all.
	cpus []int
}

func (t *Tool) newCommand(ctx context.Context, path, input string, args ...string) command {
	if t.Flavor == Legacy && path == t.restore {
		// Before 1.8.8 the lock file is fixed; then waiting for the host's is better than failing.
		args = append(args, "--wait")
	}
	return command{cmd: exec.CommandContext(ctx, path, args...), input: input, ownLock: t.Flavor == Legacy}
}

// runCommand runs c inside ns and waits for it. The thread that starts the program lives until the program ends, so the
// parent-death signal kills the program only if this process dies.
func runCommand(ctx context.Context, ns *netns.NS, c command) error {
	if c.ownLock {
		lock, err := newLockFile()
		if err != nil {
			return err
		}
		// It is memory of this process only.
		defer func() { _ = lock.Close() }()
		c.cmd.ExtraFiles = []*os.File{lock}
		c.cmd.Env = append(c.cmd.Environ(), "XTABLES_LOCKFILE=/proc/self/fd/3")
	}
	var stderr bytes.Buffer
	c.cmd.Stdin, c.cmd.Stderr = strings.NewReader(c.input), &stderr
	c.cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	err := ns.Do(func() error {
		if len(c.cpus) > 0 { // the thread is only for this program, which inherits its CPUs
			if err := thread.SetCPUs(c.cpus); err != nil {
				return err
			}
		}
		return c.cmd.Run()
	})
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", c.cmd.Path, context.Cause(ctx))
	}
	if err != nil {
		return programError(c.cmd.Path, c.input, stderr.String(), err)
	}
	return nil
}

// newLockFile returns an anonymous file in memory for the program to lock.
func newLockFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("xtables.lock", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), "xtables.lock"), nil
}

// IPSet is the ipset program of this machine.
type IPSet struct {
	// Version is as the program prints it, for example "7.17".
	Version string
	path    string
}

// FindIPSet returns the ipset program of this machine. It fails with ErrMissing if the program is not installed.
func FindIPSet(ctx context.Context) (*IPSet, error) {
	path, err := lookPath("ipset")
	if err != nil {
		return nil, advice.With(fmt.Errorf("ipset: %w", ErrMissing), "install it: apt-get install ipset, or dnf install ipset")
	}
	version, _, err := versionOf(ctx, path)
	if err != nil {
		return nil, err
	}
	return &IPSet{Version: version, path: path}, nil
}

// Restore creates the sets and members in sets, which has the format of ipset save, inside ns. Existing sets and
// members stay. The error names the refused line.
func (s *IPSet) Restore(ctx context.Context, ns *netns.NS, sets string) error {
	return runCommand(ctx, ns, command{cmd: exec.CommandContext(ctx, s.path, "restore", "-exist"), input: sets})
}
