package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"time"
)

// keyPair is a certificate and its key in PEM.
type keyPair struct{ Cert, Key []byte }

// authority signs certificates for one cluster. Its key is written only into the nodes' files.
type authority struct {
	keyPair
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// certLife is longer than a test cluster.
const certLife = 30 * 24 * time.Hour

func newAuthority(now time.Time) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template, err := certTemplate(pkix.Name{CommonName: "cnibench-e2e"}, now)
	if err != nil {
		return nil, err
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage |= x509.KeyUsageCertSign
	a := &authority{cert: template, key: key}
	a.keyPair, err = a.sign(template, key)
	if err != nil {
		return nil, err
	}
	a.cert, err = parseCert(a.Cert)
	return a, err
}

func parseCert(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	return x509.ParseCertificate(block.Bytes)
}

func certTemplate(subject pkix.Name, now time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100))
	if err != nil {
		return nil, err
	}
	return &x509.Certificate{
		SerialNumber: serial, Subject: subject,
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certLife),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}, nil
}

// issue makes a certificate for a user of a group ("" for none), valid as a server at the hosts.
func (a *authority) issue(user, group string, hosts ...string) (keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, err
	}
	subject := pkix.Name{CommonName: user}
	if group != "" {
		subject.Organization = []string{group}
	}
	template, err := certTemplate(subject, a.cert.NotBefore.Add(time.Hour))
	if err != nil {
		return keyPair{}, err
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	return a.sign(template, key)
}

func (a *authority) sign(template *x509.Certificate, key *ecdsa.PrivateKey) (keyPair, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return keyPair{}, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return keyPair{}, err
	}
	return keyPair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}, nil
}
