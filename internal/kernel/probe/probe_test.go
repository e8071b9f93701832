package probe

import (
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/measure/facts"
)

func TestVerdict(t *testing.T) {
	const ms = 1_000_000
	for name, c := range map[string]struct {
		i    interval
		want string
	}{
		"in task":             {interval{wall: 200 * ms, task: 199 * ms, interrupts: 90 * ms}, facts.IRQInTask},
		"apart":               {interval{wall: 200 * ms, task: 112 * ms, interrupts: 90 * ms}, facts.IRQApart},
		"in task, waited":     {interval{wall: 200 * ms, task: 100 * ms, wait: 99 * ms, interrupts: 40 * ms}, facts.IRQInTask},
		"apart, waited":       {interval{wall: 200 * ms, task: 60 * ms, wait: 90 * ms, interrupts: 50 * ms}, facts.IRQApart},
		"apart, neighbour":    {interval{wall: 200 * ms, task: 32 * ms, wait: 150 * ms, interrupts: 108 * ms}, ""},
		"no interrupts":       {interval{wall: 200 * ms, task: 199 * ms, interrupts: 10 * ms}, ""},
		"half of it missing":  {interval{wall: 200 * ms, task: 155 * ms, interrupts: 100 * ms}, ""},
		"taken by hypervisor": {interval{wall: 200 * ms, task: 110 * ms, interrupts: 90 * ms, steal: 40 * ms}, ""},
		"a little stolen":     {interval{wall: 200 * ms, task: 182 * ms, interrupts: 90 * ms, steal: 17 * ms}, facts.IRQInTask},
		"nothing":             {interval{}, ""},
	} {
		if got := c.i.irqAccounting(); got != c.want {
			t.Errorf("%s: %q, want %q (%+v)", name, got, c.want, c.i)
		}
	}
}

func TestInstall(t *testing.T) {
	for name, c := range map[string]struct{ osRelease, program, want string }{
		"debian":  {"PRETTY_NAME=\"Debian GNU/Linux 12\"\nID=debian\n", "conntrack", "apt-get install conntrack"},
		"ubuntu":  {"ID=ubuntu\nID_LIKE=debian\n", "nft", "apt-get install nftables"},
		"rocky":   {"ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", "conntrack", "dnf install conntrack-tools"},
		"fedora":  {"ID=fedora\n", "iptables-restore", "dnf install iptables-nft"},
		"leap":    {"ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\n", "tcpdump", "zypper install tcpdump"},
		"alpine":  {"ID=alpine\n", "iptables-restore", "apk add iptables"},
		"unknown": {"NAME=Own\n", "ipset", "install the package that has ipset, probably ipset"},
	} {
		if got := Install(c.program, Family([]byte(c.osRelease))); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestVirtualization(t *testing.T) {
	for name, c := range map[string]struct {
		h    Hints
		want string
	}{
		"bare":        {Hints{X86: true, Vendor: "Dell Inc.\n", Product: "PowerEdge R650"}, "none"},
		"no idea":     {Hints{Vendor: "Raspberry Pi"}, ""},
		"qemu":        {Hints{X86: true, Hypervisor: true, Vendor: "QEMU", Product: "Standard PC (Q35 + ICH9, 2009)"}, "qemu (QEMU Standard PC (Q35 + ICH9, 2009))"},
		"ec2":         {Hints{X86: true, Hypervisor: true, Vendor: "Amazon EC2", Product: "m6i.large", Clocksource: "kvm-clock"}, "kvm (Amazon EC2 m6i.large)"},
		"azure":       {Hints{X86: true, Hypervisor: true, Vendor: "Microsoft Corporation", Product: "Virtual Machine"}, "hyper-v (Microsoft Corporation Virtual Machine)"},
		"surface":     {Hints{X86: true, Vendor: "Microsoft Corporation", Product: "Surface Laptop"}, "none"},
		"firecracker": {Hints{X86: true, Hypervisor: true, Clocksource: "tsc", Cmdline: "quiet -- --firecracker-init"}, "firecracker"},
		"nameless":    {Hints{X86: true, Hypervisor: true, Clocksource: "tsc"}, "unknown"},
		"xen guest":   {Hints{X86: true, Hypervisor: true, Xen: "xen\n"}, "xen"},
	} {
		if got := Virtualization(c.h); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestParameter(t *testing.T) {
	const line = "quiet mitigations=auto,nosmt root=/dev/vda mitigations=off -- mitigations=x"
	if got, ok := Parameter(line, "mitigations"); got != "off" || !ok {
		t.Errorf("got %q, %v; the last one before -- counts", got, ok)
	}
	if got, ok := Parameter(line, "mitigation"); ok {
		t.Errorf("a prefix of a name is taken for it: %q", got)
	}
}

func FuzzTexts(f *testing.F) {
	f.Add("ID=debian\nID_LIKE=\"a b\"", "a=b -- c=d")
	f.Add("ID=", "=")
	f.Fuzz(func(t *testing.T, osRelease, cmdline string) {
		if s := Install("nft", Family([]byte(osRelease))); !strings.Contains(s, "nftables") {
			t.Errorf("no package in %q", s)
		}
		if v, ok := Parameter(cmdline, "a"); ok && !strings.Contains(cmdline, "a="+v) {
			t.Errorf("%q is not in the line", v)
		}
	})
}
