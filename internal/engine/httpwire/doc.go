// Package httpwire reads and writes the part of HTTP/1.1 (RFC 9112) that the load engine speaks: requests without a
// body, and responses whose length a Content-Length gives.
//
// It works on bytes that are there and knows no sockets. The readers are strict, because what they are fed comes from a
// network under test: a head that breaks the grammar, or that needs an unsupported part of HTTP, is a *Fault and
// never a guess. They take the head whole; as long as it is not, they ask for more, up to MaxHead bytes. They allocate
// nothing: what they return refers to what they were given, and every Fault is a variable of this package.
//
// Read ReadResponse and ReadRequest, then field.go, which has the grammar of a field line.
package httpwire
