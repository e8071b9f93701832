package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// PIDSpace returns the inode of this process's PID namespace, 0 if it cannot be read.
func PIDSpace() uint64 { return inodeOf("/proc/self/ns/pid") }

// inodeOf returns the inode of a namespace, which is in the target of its link: "pid:[4026531836]". It returns 0 if the
// link cannot be read.
func inodeOf(link string) uint64 {
	text, err := os.Readlink(link)
	if err != nil {
		return 0
	}
	_, number, _ := strings.Cut(strings.TrimSuffix(text, "]"), "[")
	n, _ := strconv.ParseUint(number, 10, 64) // 0 for text that is not a number
	return n
}

// BootID returns the id of the kernel's boot. It is the same in every container and namespace of a machine, and "" if a
// sandbox hides it.
func BootID() string { return Text("/proc/sys/kernel/random/boot_id") }

// Task is a thread in /proc: its id here and in its innermost PID namespace, and the inode of that namespace.
type Task struct {
	ID, Inner int
	Space     uint64
}

// Tasks returns the threads of all processes with this process's name. It leaves out processes that end meanwhile. It
// needs the right to trace processes of other containers (CAP_SYS_PTRACE); without it, their Space is 0.
func Tasks() ([]Task, error) {
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	own := Text("/proc/self/comm")
	var all []Task
	for _, dir := range processes {
		if own == "" || Text(dir+"/comm") != own {
			continue
		}
		space := inodeOf(dir + "/ns/pid")
		threads, err := os.ReadDir(dir + "/task")
		if err != nil {
			continue // it has ended
		}
		for _, t := range threads {
			id, bad := strconv.Atoi(t.Name())
			if inner, ok := innermostID(Text(fmt.Sprintf("%s/task/%s/status", dir, t.Name()))); bad == nil && ok {
				all = append(all, Task{id, inner, space})
			}
		}
	}
	return all, nil
}

// innermostID returns the last id in the NSpid line of status, a text of /proc/<pid>/status. It returns false if there
// is none.
func innermostID(status string) (int, bool) {
	for line := range strings.Lines(status) {
		if ids, ok := strings.CutPrefix(line, "NSpid:"); ok {
			words := strings.Fields(ids)
			if len(words) == 0 {
				return 0, false
			}
			id, err := strconv.Atoi(words[len(words)-1])
			return id, err == nil
		}
	}
	return 0, false
}

// NetSpaces returns the inodes of the network namespaces of all processes in /proc.
func NetSpaces() ([]uint64, error) {
	links, err := filepath.Glob("/proc/[0-9]*/ns/net")
	if err != nil {
		return nil, err
	}
	seen := map[uint64]bool{0: true}
	var all []uint64
	for _, link := range links {
		if n := inodeOf(link); !seen[n] {
			seen[n], all = true, append(all, n)
		}
	}
	return all, nil
}
