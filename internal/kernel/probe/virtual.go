package probe

import "strings"

// Hints are the signs of a virtual machine. A text that cannot be read is "".
type Hints struct {
	// Hypervisor is the flag of /proc/cpuinfo. X86 means that the architecture has this flag.
	Hypervisor, X86 bool
	// Vendor and Product are /sys/class/dmi/id/sys_vendor and product_name.
	Vendor, Product string
	// Xen is the text of /sys/hypervisor/type, Clocksource the current clock source, Cmdline the text of
	// /proc/cmdline.
	Xen, Clocksource, Cmdline string
}

// vendors has parts of vendor names that only virtual machines have, with the name of the hypervisor.
var vendors = []struct{ part, name string }{
	{"qemu", "qemu"}, {"kvm", "kvm"}, {"vmware", "vmware"}, {"innotek", "virtualbox"}, {"xen", "xen"},
	{"parallels", "parallels"}, {"bhyve", "bhyve"},
}

// Virtualization returns the name of the hypervisor. It returns "none" on bare metal, and "unknown" for a hypervisor
// without a known name. It returns "" if it is unknown whether there is a hypervisor. The machine's product name, if
// any, follows in parentheses: "unknown (Amazon EC2 m6i.large)".
func Virtualization(h Hints) string {
	product := strings.TrimSpace(strings.TrimSpace(h.Vendor) + " " + strings.TrimSpace(h.Product))
	lower := strings.ToLower(product)
	name := ""
	for _, v := range vendors {
		if strings.Contains(lower, v.part) {
			name = v.name
			break
		}
	}
	switch {
	case name != "":
	case strings.Contains(lower, "microsoft") && strings.Contains(lower, "virtual"):
		name = "hyper-v"
	case strings.TrimSpace(h.Xen) != "":
		name = strings.TrimSpace(h.Xen)
	case strings.Contains(h.Cmdline, "firecracker"):
		name = "firecracker"
	case strings.HasPrefix(h.Clocksource, "kvm-clock"):
		name = "kvm"
	case strings.HasPrefix(h.Clocksource, "hyperv"):
		name = "hyper-v"
	case h.Hypervisor:
		name = "unknown"
	case h.X86:
		return "none"
	default:
		return ""
	}
	if product == "" || strings.EqualFold(product, name) {
		return name
	}
	return name + " (" + product + ")"
}

// Parameter returns the last value of a parameter in the kernel's command line. It returns false if the parameter is
// missing.
func Parameter(cmdline, name string) (string, bool) {
	value, found := "", false
	for _, word := range strings.Fields(cmdline) {
		// Words after -- are for the first process.
		if word == "--" {
			break
		}
		if v, ok := strings.CutPrefix(word, name+"="); ok {
			value, found = v, true
		}
	}
	return value, found
}
