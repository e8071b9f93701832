package netns

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Setting is one kernel parameter and its wanted value.
type Setting struct {
	Name, Value string
	// IfPresent skips a parameter that this kernel does not have, instead of failing.
	IfPresent bool
}

// SetSysctls applies the settings inside ns, in order, until one fails, and reads each back. It does not write a
// parameter that has the value already.
func SetSysctls(ns *NS, settings []Setting) error {
	return ns.Do(func() error {
		for _, s := range settings {
			if err := setSysctl(s); err != nil {
				return err
			}
		}
		return nil
	})
}

// GetSysctl returns the value of a kernel parameter inside ns. Several values are separated by single spaces.
func GetSysctl(ns *NS, name string) (string, error) {
	var value string
	err := ns.Do(func() (err error) {
		value, err = readSysctl(name)
		return err
	})
	return value, err
}

func setSysctl(s Setting) error {
	before, err := readSysctl(s.Name)
	if errors.Is(err, os.ErrNotExist) && s.IfPresent {
		return nil
	}
	if err != nil {
		return err
	}
	// The kernel puts tabs between several values.
	want := strings.Join(strings.Fields(s.Value), " ")
	if before == want {
		return nil
	}
	if err := os.WriteFile(sysctlPath(s.Name), []byte(s.Value), 0); err != nil {
		return fmt.Errorf("set sysctl %s=%s: %w", s.Name, s.Value, err)
	}
	after, err := readSysctl(s.Name)
	if err != nil {
		return err
	}
	if after != want {
		return fmt.Errorf("set sysctl %s=%s: the kernel took the write and says %q", s.Name, s.Value, after)
	}
	return nil
}

func readSysctl(name string) (string, error) {
	b, err := os.ReadFile(sysctlPath(name))
	if err != nil {
		return "", fmt.Errorf("read sysctl %s: %w", name, err)
	}
	return strings.Join(strings.Fields(string(b)), " "), nil
}

func sysctlPath(name string) string { return filepath.Join("/proc/sys", name) }
