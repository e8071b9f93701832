package probe

import (
	"bufio"
	"bytes"
	"cmp"
	"slices"
	"strings"
)

// Families of Linux distributions, by the program that installs packages.
const (
	debian = "apt-get install"
	fedora = "dnf install"
	suse   = "zypper install"
	arch   = "pacman -S"
	alpine = "apk add"
)

// Family returns the command that installs packages on the distribution in osRelease (/etc/os-release); "" if unknown.
func Family(osRelease []byte) string {
	var ids []string
	lines := bufio.NewScanner(bytes.NewReader(osRelease))
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), "=")
		if ok && (name == "ID" || name == "ID_LIKE") {
			ids = append(ids, strings.Fields(strings.Trim(value, `"'`))...)
		}
	}
	for _, f := range []struct {
		ids     []string
		install string
	}{
		{[]string{"debian", "ubuntu"}, debian},
		{[]string{"fedora", "rhel", "centos"}, fedora},
		{[]string{"suse", "opensuse", "sles"}, suse},
		{[]string{"arch"}, arch},
		{[]string{"alpine"}, alpine},
	} {
		if slices.ContainsFunc(ids, func(id string) bool { return slices.Contains(f.ids, id) }) {
			return f.install
		}
	}
	return ""
}

// packages maps a program and a family to the package, if the package is not named like the program. The family "" is
// for all others.
var packages = map[string]map[string]string{
	"conntrack":        {"": "conntrack-tools", debian: "conntrack"},
	"nft":              {"": "nftables"},
	"ip":               {"": "iproute2", fedora: "iproute"},
	"iptables-restore": {"": "iptables", fedora: "iptables-nft"},
}

// Install describes how to install program on a distribution. family is the result of Family.
func Install(program, family string) string {
	if where := unpackaged[program]; where != "" {
		return where
	}
	name := cmp.Or(packages[program][family], packages[program][""], program)
	if family == "" {
		return "install the package that has " + program + ", probably " + name
	}
	return family + " " + name
}

// unpackaged describes how to get the programs that have no package.
var unpackaged = map[string]string{"tcp_rr": "build neper, of which it is a part, from github.com/google/neper"}

// modulesAdvice describes how to install the less common modules of a distribution's kernel. It returns "" if they have
// no package of their own.
func modulesAdvice(family, release string) string {
	switch family {
	case debian:
		return "on Ubuntu: apt-get install linux-modules-extra-" + release
	case fedora:
		return "dnf install kernel-modules-extra"
	}
	return ""
}
