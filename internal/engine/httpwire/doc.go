// Package httpwire reads and writes the part of HTTP/1.1 (RFC 9112) that the load engine speaks: requests without a
// body, and responses whose length a Content-Length gives.
//
// It works on bytes in memory, without sockets. The readers are strict, because their input comes from a network under
// test: a head that breaks the grammar, or needs an unsupported part of HTTP, is a *Fault and never a guess. They parse
// complete heads; for an incomplete head they ask for more bytes, up to MaxHead. They allocate nothing: results refer
// to the input, and every Fault is a variable of this package.
//
// Read ReadResponse and ReadRequest, then field.go, which has the grammar of a field line.
package httpwire
