package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// images writes those that the cache lacks; with policies, also that of what enforces NetworkPolicies.
func (c cache) images(w io.Writer, policies bool) error {
	makers := []struct {
		name string
		make func() (imageSpec, error)
		want bool
	}{
		{"pause", c.pauseSpec, true}, {"busybox", c.busyboxSpec, true}, {"kube-proxy", c.kubeProxySpec, true},
		{"flannel", c.flannelSpec, true}, {"flannel-cni-plugin", c.pluginSpec, true}, {"kube-router", c.kubeRouterSpec, policies},
	}
	for _, m := range makers {
		if !m.want {
			continue
		}
		if _, err := os.Stat(c.image(m.name)); err == nil {
			continue
		}
		spec, err := m.make()
		if err != nil {
			return fmt.Errorf("make image %s: %w", m.name, err)
		}
		spec.arch = runtime.GOARCH
		if err := c.saveImage(m.name, spec); err != nil {
			return fmt.Errorf("write image %s: %w", m.name, err)
		}
		fmt.Fprintf(w, "made image %s\n", spec.names[0])
	}
	return nil
}

func (c cache) saveImage(name string, spec imageSpec) error {
	part := c.image(name) + ".part"
	f, err := os.Create(part)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := writeImage(f, spec); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(part, c.image(name))
}

func (c cache) pauseSpec() (imageSpec, error) {
	files := fileSet{}
	files.add("/pause", c.bin("pause"))
	return files.image([]string{"/pause"}, pauseImage)
}

// busyboxSpec has a shell, wget, httpd, nc and ping for pods of tests.
func (c cache) busyboxSpec() (imageSpec, error) {
	files := fileSet{}
	files.busybox(c, "sh", "cat", "cp", "echo", "env", "httpd", "id", "ip", "ls", "nc", "ping", "sleep", "tail", "timeout", "traceroute", "true", "wget")
	return files.image([]string{"/bin/sh"}, busyboxImage)
}

func (c cache) kubeProxySpec() (imageSpec, error) {
	files := fileSet{}
	files.add("/usr/local/bin/kube-proxy", c.bin("kube-proxy"))
	if err := files.netfilter(); err != nil {
		return imageSpec{}, err
	}
	return files.image([]string{"/usr/local/bin/kube-proxy"}, kubeProxyImage)
}

func (c cache) flannelSpec() (imageSpec, error) {
	files := fileSet{}
	files.add("/opt/bin/flanneld", c.bin("flanneld"))
	if err := files.netfilter(); err != nil {
		return imageSpec{}, err
	}
	files.busybox(c, "sh", "cp", "cat", "ls")
	return files.image([]string{"/opt/bin/flanneld"}, flannelImage)
}

func (c cache) pluginSpec() (imageSpec, error) {
	files := fileSet{}
	files.add("/flannel", c.bin("flannel"))
	files.busybox(c, "cp")
	return files.image(nil, pluginImage)
}

func (c cache) kubeRouterSpec() (imageSpec, error) {
	files := fileSet{}
	files.add("/usr/local/bin/kube-router", c.bin("kube-router"))
	if err := files.netfilter(); err != nil {
		return imageSpec{}, err
	}
	if err := files.machine("ipset"); err != nil {
		return imageSpec{}, err
	}
	return files.image([]string{"/usr/local/bin/kube-router"}, kubeRouterImage)
}

// fileSet says where an image's files come from, by their paths in it: a file of this machine, "needs FILE" for one that
// comes with the libraries that it loads, or "-> NAME" for a symbolic link.
type fileSet map[string]string

func (s fileSet) add(path, from string) { s[path] = from }

// busybox adds the program and links that call it.
func (s fileSet) busybox(c cache, applets ...string) {
	s.add("/bin/busybox", c.bin("busybox"))
	for _, a := range applets {
		s.add("/bin/"+a, "-> busybox")
	}
}

// machine adds a program as this machine has it, with the libraries that it needs.
func (s fileSet) machine(program string) error {
	found, err := exec.LookPath(program)
	if err != nil {
		return advice.With(err, "apt-get install iptables nftables ipset")
	}
	s.add("/usr/sbin/"+program, "needs "+found)
	return nil
}

// netfilter adds iptables (its nftables variant) and nft as this machine has them, with the libraries that they need.
func (s fileSet) netfilter() error {
	for _, p := range []string{"xtables-nft-multi", "nft"} {
		if err := s.machine(p); err != nil {
			return err
		}
	}
	for _, p := range []string{"iptables", "ip6tables"} {
		for _, suffix := range []string{"", "-save", "-restore"} {
			s.add("/usr/sbin/"+p+suffix, "-> xtables-nft-multi")
		}
	}
	extensions, err := filepath.Glob("/usr/lib/*/xtables/*.so")
	for _, e := range extensions {
		s.add(e, "needs "+e)
	}
	return err
}

// image reads the files.
func (s fileSet) image(entrypoint []string, names ...string) (imageSpec, error) {
	spec := imageSpec{names: names, files: map[string]imageFile{}, entrypoint: entrypoint}
	var dynamic []string
	for path, from := range s {
		if target, ok := strings.CutPrefix(from, "-> "); ok {
			spec.files[path] = imageFile{link: target}
			continue
		}
		if file, ok := strings.CutPrefix(from, "needs "); ok {
			dynamic, from = append(dynamic, file), file
		}
		if err := spec.read(path, from); err != nil {
			return spec, err
		}
	}
	return spec, spec.addLibraries(dynamic)
}

func (s *imageSpec) read(path, from string) error {
	data, err := os.ReadFile(from)
	s.files[path] = imageFile{data: data}
	return err
}

// addLibraries adds what the dynamic loader would load for programs and for libraries that are loaded by name.
func (s *imageSpec) addLibraries(dynamic []string) error {
	if len(dynamic) == 0 {
		return nil
	}
	out, err := output(exec.Command("ldd", dynamic...))
	if err != nil {
		return err
	}
	for _, lib := range libraries(out) {
		if err := s.read(lib, lib); err != nil {
			return err
		}
	}
	return nil
}
