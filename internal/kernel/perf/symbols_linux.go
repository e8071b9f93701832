package perf

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
)

// Unknown is the name for an address at which no function is known.
const Unknown = "[unknown]"

// ErrHidden means that the kernel hides the addresses of its symbols.
var ErrHidden = errors.New("/proc/kallsyms has no addresses: kernel.kptr_restrict or the rights of this process hide them")

// longest is the assumed maximum size of a function in bytes. An address further from its symbol is in code without
// symbols.
const longest = 64 << 10

// Symbols are the names of functions by their addresses.
type Symbols struct{ list []symbol }

type symbol struct {
	address uint64
	name    string
}

// ReadKernel reads the current symbols of the kernel, its modules and BPF programs. It returns ErrHidden if the
// kernel hides the addresses.
func ReadKernel() (Symbols, error) {
	f, err := os.Open("/proc/kallsyms")
	if err != nil {
		return Symbols{}, fmt.Errorf("read kernel symbols: %w", err)
	}
	defer f.Close() // it was only read
	return parseSymbols(f)
}

// parseSymbols reads lines of address, type and name. It fails if all addresses are hidden.
func parseSymbols(r io.Reader) (Symbols, error) {
	var s Symbols
	lines := bufio.NewScanner(r)
	seen := false
	for lines.Scan() {
		words := bytes.Fields(lines.Bytes())
		if len(words) < 3 || !bytes.ContainsAny(words[1], "tTwW") {
			continue
		}
		address, err := strconv.ParseUint(string(words[0]), 16, 64)
		if err != nil {
			return s, fmt.Errorf("kernel symbol %q: %w", lines.Text(), err)
		}
		seen = seen || address != 0
		s.list = append(s.list, symbol{address, string(words[2])})
	}
	if err := lines.Err(); err != nil {
		return s, fmt.Errorf("read kernel symbols: %w", err)
	}
	if !seen {
		return Symbols{}, ErrHidden
	}
	slices.SortStableFunc(s.list, func(x, y symbol) int { return cmp.Compare(x.address, y.address) })
	return s, nil
}

// Name returns the function at an address, or Unknown.
func (s Symbols) Name(address uint64) string {
	i, found := slices.BinarySearchFunc(s.list, address, func(x symbol, a uint64) int { return cmp.Compare(x.address, a) })
	if !found {
		i--
	}
	if i < 0 || address-s.list[i].address > longest {
		return Unknown
	}
	for i > 0 && s.list[i-1].address == s.list[i].address {
		i-- // the first of several names
	}
	return s.list[i].name
}
