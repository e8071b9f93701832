package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// mounter builds a file system below root. After the first error it does nothing and keeps the error.
type mounter struct {
	root string
	err  error
}

func (m *mounter) do(what string, f func() error) {
	if m.err != nil {
		return
	}
	if err := f(); err != nil {
		m.err = fmt.Errorf("%s: %w", what, err)
	}
}

func (m *mounter) dir(path string) {
	m.do("make directory", func() error { return os.MkdirAll(path, 0o755) })
}

func (m *mounter) mount(source, target, kind string, flags uintptr, data string) {
	m.do("mount "+target, func() error { return syscall.Mount(source, target, kind, flags, data) })
}

// bind mounts a directory of the machine, with the mounts in it, at a path below the root.
func (m *mounter) bind(source, at string, readOnly bool) {
	target := filepath.Join(m.root, at)
	m.dir(target)
	m.mount(source, target, "", syscall.MS_BIND|syscall.MS_REC, "")
	if readOnly {
		m.mount("", target, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
	}
}

// usr mounts the machine's /usr, read-only. A machine whose kernel has no modules may lack the directory for them, but
// pods want to mount it.
func (m *mounter) usr() {
	if _, err := os.Stat("/usr/lib/modules"); err == nil {
		m.bind("/usr", "usr", true)
		return
	}
	missing, target := filepath.Join(m.root, "missing"), filepath.Join(m.root, "usr")
	m.dir(filepath.Join(missing, "lib/modules"))
	m.dir(target)
	m.mount("usr", target, "overlay", syscall.MS_RDONLY, "lowerdir="+missing+":/usr")
}

// likeHost makes /bin and similar directories as on the machine: links into /usr, or directories.
func (m *mounter) likeHost(name string) {
	info, err := os.Lstat("/" + name)
	if err != nil {
		return // not every machine has all of them
	}
	if info.Mode()&os.ModeSymlink == 0 {
		m.bind("/"+name, name, true)
		return
	}
	m.do("link /"+name, func() error {
		to, err := os.Readlink("/" + name)
		if err != nil {
			return err
		}
		return os.Symlink(to, filepath.Join(m.root, name))
	})
}

func (m *mounter) copy(from, at string) {
	m.do("copy "+from, func() error {
		info, err := os.Stat(from)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(m.root, at), data, info.Mode().Perm())
	})
}

func (m *mounter) write(at, text string) {
	m.do("write /"+at, func() error { return os.WriteFile(filepath.Join(m.root, at), []byte(text), 0o644) })
}

// etc copies the files that programs need to run, and writes the node's name and identity.
func (m *mounter) etc(hostname string) {
	for _, f := range []string{"passwd", "group", "nsswitch.conf", "protocols", "services", "ethertypes", "ld.so.cache", "ld.so.conf"} {
		if _, err := os.Stat("/etc/" + f); err == nil {
			m.copy("/etc/"+f, "etc/"+f)
		}
	}
	for _, d := range []string{"alternatives", "ld.so.conf.d"} {
		if _, err := os.Stat("/etc/" + d); err == nil {
			m.bind("/etc/"+d, "etc/"+d, true)
		}
	}
	m.write("etc/hosts", "127.0.0.1 localhost "+hostname+"\n::1 localhost\n")
	m.write("etc/hostname", hostname+"\n")
	m.write("etc/resolv.conf", "")
	m.write("etc/machine-id", fmt.Sprintf("%032x\n", []byte(hostname)))
}

// kernel mounts the kernel's file systems, as the node's namespaces see them.
func (m *mounter) kernel(all []hierarchy) {
	for _, d := range []string{"proc", "sys"} {
		m.dir(filepath.Join(m.root, d))
	}
	m.mount("proc", filepath.Join(m.root, "proc"), "proc", 0, "")
	m.mount("sysfs", filepath.Join(m.root, "sys"), "sysfs", 0, "")
	if len(all) > 1 {
		m.mount("cgroup", filepath.Join(m.root, "sys/fs/cgroup"), "tmpfs", 0, "mode=755")
	}
	for _, h := range all {
		target := filepath.Join(m.root, h.mount)
		if len(all) > 1 {
			m.dir(target)
		}
		switch {
		case h.v2():
			m.mount("cgroup2", target, "cgroup2", 0, "")
		case strings.HasPrefix(h.option, "name="):
			m.mount("cgroup", target, "cgroup", 0, "none,"+h.option)
		default:
			m.mount("cgroup", target, "cgroup", 0, h.option)
		}
		for _, c := range strings.Split(h.option, ",") {
			if link := filepath.Join(m.root, "sys/fs/cgroup", c); strings.Contains(h.option, ",") && link != target {
				m.do("link "+c, func() error { return os.Symlink(filepath.Base(target), link) })
			}
		}
	}
	m.mount("bpf", filepath.Join(m.root, "sys/fs/bpf"), "bpf", 0, "")
}

// sealSysctls mounts files over the parameters of the whole machine that a kubelet sets. They have the values that it
// wants, so it does not write them, and the machine keeps its own.
func (m *mounter) sealSysctls() {
	for name, value := range map[string]string{
		"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
		"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
	} {
		own := "run/sysctl-" + strings.ReplaceAll(name, "/", "-")
		m.write(own, value+"\n")
		m.mount(filepath.Join(m.root, own), filepath.Join(m.root, "proc/sys", name), "", syscall.MS_BIND, "")
	}
}
