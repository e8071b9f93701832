package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// image is one that the tool makes.
type image struct {
	// name is the name of its archive, ref the reference of the image.
	name, ref  string
	entrypoint []string
	// add adds the files of the image.
	add func(files *fileSet)
	// only is the part that makes a cluster need the image; "" is every cluster.
	only string
}

// allImages returns the images in the order in which they are made.
func (c cache) allImages() []image {
	alone := func(*fileSet) {}
	program := func(path string, more func(files *fileSet)) func(*fileSet) {
		return func(files *fileSet) {
			files.add(path, c.bin(filepath.Base(path)))
			more(files)
		}
	}
	links := func(applets ...string) func(*fileSet) { return func(files *fileSet) { files.busybox(c, applets...) } }
	return []image{
		{name: "pause", ref: pauseImage, entrypoint: []string{"/pause"}, add: program("/pause", alone)},
		{name: resolver, ref: resolverImage, only: resolver, entrypoint: []string{"/resolver"}, add: program("/resolver", alone)},
		// For pods of tests.
		{name: "busybox", ref: busyboxImage, entrypoint: []string{"/bin/sh"}, add: links("sh", "cat", "cp", "echo", "env", "httpd", "id", "ip", "ls",
			"nc", "ping", "sleep", "tail", "timeout", "traceroute", "true", "wget")},
		{name: "kube-proxy", ref: kubeProxyImage, only: kubeProxy, entrypoint: []string{"/usr/local/bin/kube-proxy"}, add: program("/usr/local/bin/kube-proxy", (*fileSet).netfilter)},
		{name: "flannel", ref: flannelImage, only: flannel, entrypoint: []string{"/opt/bin/flanneld"}, add: program("/opt/bin/flanneld", func(files *fileSet) {
			files.netfilter()
			files.busybox(c, "sh", "cp", "cat", "ls")
		})},
		{name: "flannel-cni-plugin", ref: pluginImage, only: flannel, add: program("/flannel", links("cp"))},
		{name: "kube-router", ref: kubeRouterImage, entrypoint: []string{"/usr/local/bin/kube-router"}, only: kubeRouter,
			add: program("/usr/local/bin/kube-router", func(files *fileSet) {
				files.netfilter()
				files.machine("ipset")
				files.machine("ip")
				for _, dir := range []string{"/etc/iproute2", "/usr/share/iproute2"} { // it adds the name of its routing table to rt_tables
					files.tree(dir, dir)
				}
			})},
		{name: "cilium", ref: ciliumImage, entrypoint: []string{"/usr/bin/cilium-dbg"}, only: cilium, add: c.ciliumFiles},
		{name: "cilium-operator", ref: operatorImage, entrypoint: []string{"/usr/bin/cilium-operator-generic"}, only: cilium,
			add: program("/usr/bin/cilium-operator-generic", alone)},
	}
}

// ciliumFiles adds the agent's files: its programs and scripts, the programs they call, and the BPF sources, which the
// agent compiles at its start.
func (c cache) ciliumFiles(files *fileSet) {
	for _, p := range []string{"cilium-agent", "cilium-dbg", "cilium-health-responder", "cilium-mount", "cilium-sysctlfix"} {
		files.add("/usr/bin/"+p, c.bin(p))
	}
	files.add("/opt/cni/bin/cilium-cni", c.bin("cilium-cni"))
	files.add("/cni/loopback", c.bin("loopback"))
	for _, script := range []string{"init-container.sh", "install-plugin.sh", "cni-uninstall.sh"} {
		files.add("/"+script, c.kept("cilium", script))
	}
	files.tree("/var/lib/cilium/bpf", c.kept("cilium", "bpf"), "tests", "complexity-tests")
	files.needs("/usr/local/bin/clang", clang)
	files.needs("/bin/bash", "bash")
	files.busybox(c, "basename", "cat", "cp", "grep", "ls", "mkdir", "mount", "mv", "rm", "sh")
	for _, p := range []string{"find", "ip", "ipset", "nsenter"} {
		files.machine(p)
	}
	files.netfilter()
}

// wanted returns the images of a cluster. has reports whether the cluster has a part.
func (c cache) wanted(has func(string) bool) []image {
	return slices.DeleteFunc(c.allImages(), func(m image) bool { return !has(m.only) })
}

// missing returns those of them that the cache lacks.
func (c cache) missing(has func(string) bool) []image {
	return slices.DeleteFunc(c.wanted(has), func(m image) bool {
		_, err := os.Stat(c.image(m.name))
		return err == nil
	})
}

// ready fails with the names of the programs that the missing images need and that this machine lacks. It is called
// before anything is built.
func (c cache) ready(has func(string) bool) error {
	for _, m := range c.missing(has) {
		files := &fileSet{paths: map[string]string{}}
		if m.add(files); files.err != nil {
			return fmt.Errorf("image %s: %w", m.name, files.err)
		}
	}
	return nil
}

// images writes the images that are missing.
func (c cache) images(w io.Writer, has func(string) bool) error {
	for _, m := range c.missing(has) {
		files := &fileSet{paths: map[string]string{}}
		m.add(files)
		spec, err := files.image()
		if err != nil {
			return fmt.Errorf("make image %s: %w", m.name, err)
		}
		spec.names, spec.entrypoint, spec.arch = []string{m.ref}, m.entrypoint, runtime.GOARCH
		if err := c.saveImage(m.name, spec); err != nil {
			return fmt.Errorf("write image %s: %w", m.name, err)
		}
		fmt.Fprintf(w, "made image %s\n", m.ref)
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

// fileSet collects an image's files. It keeps the first error and ignores what follows.
type fileSet struct {
	// paths has the source of each file by its path in the image: a file of this machine, "needs FILE" for a file that
	// comes with the libraries it loads, or "-> NAME" for a symbolic link.
	paths map[string]string
	err   error
}

func (s *fileSet) add(path, from string) { s.paths[path] = from }

// busybox adds the program and links that call it.
func (s *fileSet) busybox(c cache, applets ...string) {
	s.add("/bin/busybox", c.bin("busybox"))
	for _, a := range applets {
		s.add("/bin/"+a, "-> busybox")
	}
}

// debianPackage is the package of a program that images copy from this machine, where the names differ.
var debianPackage = map[string]string{"xtables-nft-multi": "iptables", "nft": "nftables", "find": "findutils", "ip": "iproute2", "nsenter": "util-linux"}

// machine adds a program of this machine with its libraries.
func (s *fileSet) machine(program string) { s.needs("/usr/sbin/"+program, program) }

// needs adds a program of this machine under another path, with its libraries.
func (s *fileSet) needs(path, program string) {
	found, err := exec.LookPath(program)
	if err != nil && s.err == nil {
		s.err = advice.With(err, "apt-get install "+cmp.Or(debianPackage[program], program))
	}
	s.add(path, "needs "+found)
}

// tree adds the files below a directory, except for the directories without. A missing directory adds nothing.
func (s *fileSet) tree(path, from string, without ...string) {
	err := filepath.WalkDir(from, func(file string, entry fs.DirEntry, err error) error {
		switch rel, _ := filepath.Rel(from, file); {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains(without, rel):
			return fs.SkipDir
		case entry.Type().IsRegular():
			s.add(filepath.Join(path, rel), file)
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) && s.err == nil {
		s.err = err
	}
}

// netfilter adds nft and the nftables variant of iptables of this machine, with their libraries.
func (s *fileSet) netfilter() {
	s.machine("xtables-nft-multi")
	s.machine("nft")
	for _, p := range []string{"iptables", "ip6tables"} {
		for _, suffix := range []string{"", "-save", "-restore"} {
			s.add("/usr/sbin/"+p+suffix, "-> xtables-nft-multi")
		}
	}
	extensions, _ := filepath.Glob("/usr/lib/*/xtables/*.so") // the pattern is well-formed
	for _, e := range extensions {
		s.add(e, "needs "+e)
	}
}

// image reads the files.
func (s *fileSet) image() (imageSpec, error) {
	spec := imageSpec{files: map[string]imageFile{}}
	if s.err != nil {
		return spec, s.err
	}
	var dynamic []string
	for path, from := range s.paths {
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

// addLibraries adds the libraries that the dynamic loader loads for the files.
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
