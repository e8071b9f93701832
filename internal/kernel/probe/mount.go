package probe

import (
	"bytes"
	"strings"
)

// escapes are how /proc/self/mountinfo writes characters that would end a field.
var escapes = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// CgroupMount returns where cgroup v2 is mounted according to /proc/self/mountinfo; "" if it is not.
func CgroupMount(mountinfo []byte) string {
	for line := range bytes.Lines(mountinfo) {
		mount, kind, ok := bytes.Cut(line, []byte(" - "))
		f, k := bytes.Fields(mount), bytes.Fields(kind)
		if ok && len(f) >= 5 && len(k) >= 1 && string(k[0]) == "cgroup2" {
			return escapes.Replace(string(f[4]))
		}
	}
	return ""
}
