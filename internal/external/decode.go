package external

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf16"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/external/outputs"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// Formats returns the names of the formats, with a short description of each.
func Formats() (names, about []string) {
	for f := range formats {
		names, about = append(names, f.Name), append(about, f.About)
	}
	return names, about
}

// Detect returns the name of the format of b. For a log, that is the format of the first output in it. It fails for
// results of cnibench, empty input and unsupported output.
func Detect(b []byte) (string, error) {
	b = plainText(b)
	if isOwnResult(b) {
		return "", errors.New("already a result of cnibench: use report, compare or check")
	}
	if err := unsupportedError(b, true); err != nil {
		return "", err
	}
	if f, ok := matchingFormat(b, ""); ok {
		return f.Name, nil
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return "", errors.New("it is empty")
	}
	if parts, _ := findLogParts(b, ""); len(parts) > 0 {
		return parts[0].format.Name, nil
	}
	if err := unsupportedError(b, false); err != nil {
		return "", err
	}
	names, _ := Formats()
	return "", advice.With(errors.New("not a result of cnibench, nor the output of a supported tool"), csvWay+"; supported are "+strings.Join(names, ", "))
}

// Decode decodes b, which is in the format called name; with "" Decode detects the format. From a log it decodes the outputs
// of tools. It fails if no format has that name, or if b is not valid in the format.
func Decode(name string, b []byte) (Batch, error) {
	b = plainText(b)
	if name == "" {
		if _, err := Detect(b); err != nil {
			return Batch{}, err
		}
		f, whole := matchingFormat(b, "")
		if !whole {
			return decodeParts(findLogParts(b, "")) // a log may have the output of several tools
		}
		return decodeAs(f, b, "")
	}
	for f := range formats {
		switch {
		case f.Name != name:
		case f.Decode == nil:
			return Batch{}, fmt.Errorf("as %s: it is a file; this format is a folder", f.Name)
		default:
			return decodeAs(f, b, f.Name)
		}
	}
	names, _ := Formats()
	return Batch{}, advice.With(fmt.Errorf("unknown format %s", adapter.Quoted(name)), "leave out --from, or choose one of: "+strings.Join(names, ", "))
}

// unpackGzip unpacks the first most bytes of a gzip file. If the file is cut off, it returns the bytes before the cut and
// an error. If b is not a gzip file, it returns only an error.
func unpackGzip(b []byte, most int64) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(z, most))
}

// plainText returns the text of an input. It unpacks gzip unless that holds a tar archive, converts UTF-16 (which PowerShell
// writes), removes a byte order mark, and replaces \r\n by \n.
func plainText(b []byte) []byte {
	const atTar = 257 // position of the magic of a tar archive
	text, err := unpackGzip(b, adapter.MaxInput+1)
	if err == nil && len(text) <= adapter.MaxInput && !bytes.HasPrefix(text[min(atTar, len(text)):], []byte("ustar")) {
		b = text
	}
	if archive := bytes.HasPrefix(b, []byte{0x1f, 0x8b}); archive {
		return b
	}
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(b, []byte{0xff, 0xfe}):
		order, b = binary.LittleEndian, b[2:]
	case bytes.HasPrefix(b, []byte{0xfe, 0xff}):
		order, b = binary.BigEndian, b[2:]
	case len(b) > 1 && b[0] != 0 && b[1] == 0: // without its mark
		order = binary.LittleEndian
	case len(b) > 1 && b[0] == 0 && b[1] != 0:
		order = binary.BigEndian
	default:
		return unixLines(bytes.TrimPrefix(b, []byte("\ufeff")))
	}
	var units []uint16
	for ; len(b) > 1; b = b[2:] {
		units = append(units, order.Uint16(b))
	}
	return unixLines([]byte(string(utf16.Decode(units))))
}

func unixLines(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")) }

// decodeAs decodes b in the format f. If b does not match f, or f fails, it also searches b as a log. inLog is the wanted
// format of the output in the log, "" for any.
func decodeAs(f adapter.Format, b []byte, inLog string) (Batch, error) {
	looks := f.Match == nil || f.Match(b)
	if looks {
		if parts := splitText(f, b, inLog); len(parts) > 1 {
			return decodeParts(parts, nil)
		}
	}
	batch, err := f.Decode(b)
	batch, err = checkBatch(f, batch, err)
	if looks && (err == nil || errors.As(err, &adapter.Definite{})) {
		return batch, err
	}
	if parts, without := findLogParts(b, inLog); len(parts) > 0 {
		if log, logErr := decodeParts(parts, without); logErr == nil {
			return log, nil
		}
	}
	if err != nil && !looks {
		if known := unsupportedError(b, false); known != nil {
			return Batch{}, known
		}
		return Batch{}, advice.With(err, "leave out --from to detect the format; or "+csvWay)
	}
	return batch, err
}

// checkBatch takes the results of f.Decode. It returns the batch if it is valid and err is nil. Otherwise it returns an error
// that names f, with advice.
func checkBatch(f adapter.Format, batch Batch, err error) (Batch, error) {
	if err == nil {
		err = batch.Check()
	}
	if err != nil {
		way := cmp.Or(advice.Of(err), csvWay)
		if strings.Contains(err.Error(), adapter.OtherLocale) {
			way = "measure again with LC_ALL=C, or " + csvWay
		}
		if f.Name == outputs.Numbers.Formats[0].Name {
			way = advice.Of(err)
		}
		return Batch{}, advice.With(fmt.Errorf("as %s: %w", f.Name, err), way)
	}
	return batch, nil
}

// Open decodes the file or folder called name. from is the name of its format; "" detects the format. Errors begin with
// name.
func Open(name, from string) (Batch, error) {
	f, err := os.Open(name)
	if err != nil {
		return Batch{}, prefixError(name, adapter.Cause(err))
	}
	defer f.Close() // it was only read
	if st, err := f.Stat(); err == nil && st.IsDir() {
		batch, err := readFolder(name, from)
		return batch, prefixError(name, err)
	}
	return Read(f, name, from)
}

// readFolder decodes a folder in the format called from; "" uses the first format that is a folder. It fails if the
// format from is a file.
func readFolder(name, from string) (Batch, error) {
	for f := range formats {
		if f.Folder != nil && (from == "" || from == f.Name) {
			batch, err := f.Folder(name)
			return checkBatch(f, batch, err)
		}
	}
	return Batch{}, fmt.Errorf("it is a folder; format %s is a file", from)
}

// Read decodes the content of r. from is the name of its format; with "" Read detects the format. Errors begin with name,
// the input's name. Read fails if r has more than adapter.MaxInput bytes.
func Read(r io.Reader, name, from string) (Batch, error) {
	var batch Batch
	b, err := io.ReadAll(io.LimitReader(r, adapter.MaxInput+1))
	switch {
	case err != nil:
		err = adapter.Cause(err)
	case len(b) > adapter.MaxInput:
		err = fmt.Errorf("it is larger than %d MiB", adapter.MaxInput>>20)
	default:
		batch, err = Decode(from, b)
	}
	return batch, prefixError(name, err)
}

// prefixError puts the name of the file before each line of err and keeps its advice.
func prefixError(name string, err error) error {
	if err == nil {
		return nil
	}
	lines := strings.Split(err.Error(), "\n")
	for i := range lines {
		lines[i] = name + ": " + lines[i]
	}
	return advice.With(&named{strings.Join(lines, "\n"), err}, advice.Of(err))
}

// named is an error that wraps err but shows another text.
type named struct {
	text string
	err  error
}

func (n *named) Error() string { return n.text }
func (n *named) Unwrap() error { return n.err }

// isOwnResult reports whether a file that begins with b is a result of cnibench, of any version.
func isOwnResult(b []byte) bool {
	line, _, _ := bytes.Cut(b, []byte("\n"))
	return bytes.HasPrefix(line, []byte("{")) && bytes.Contains(line[:min(len(line), 4096)], []byte(`"cnibench.result/`))
}
