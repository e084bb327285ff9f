package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// files are the keys and settings that the API server reads at its start.
type files struct {
	flags      []string
	ca         []byte
	adminToken string
}

// writeFiles makes the keys of a cluster, or finds those of its last start.
func writeFiles(folder string, reviews string) (files, error) {
	path := func(name string) string { return filepath.Join(folder, name) }
	if err := writeCertificate(path("tls.crt"), path("tls.key")); err != nil {
		return files{}, err
	}
	if err := writeAccountKey(path("service-accounts.key")); err != nil {
		return files{}, err
	}
	token, err := writeToken(path("tokens.csv"))
	if err != nil {
		return files{}, err
	}
	ca, err := lastCertificate(path("tls.crt"))
	if err != nil {
		return files{}, err
	}
	flags := []string{
		"--tls-cert-file=" + path("tls.crt"),
		"--tls-private-key-file=" + path("tls.key"),
		"--service-account-key-file=" + path("service-accounts.key"),
		"--service-account-signing-key-file=" + path("service-accounts.key"),
		"--token-auth-file=" + path("tokens.csv"),
	}
	if reviews != "" {
		if err := os.WriteFile(path("token-reviews.json"), webhook(reviews), 0o600); err != nil {
			return files{}, err
		}
		flags = append(flags,
			"--authentication-token-webhook-config-file="+path("token-reviews.json"),
			"--authentication-token-webhook-version=v1",
			"--authentication-token-webhook-cache-ttl=0s", // the API server itself keeps a result for 10 s
		)
	}
	return files{flags: flags, ca: ca, adminToken: token}, nil
}

// writeCertificate makes a certificate for 127.0.0.1, followed by that of the CA that has signed it.
func writeCertificate(certificate string, key string) error {
	if exists(certificate) {
		return nil
	}
	local := []net.IP{net.IPv4(127, 0, 0, 1)}
	certificates, private, err := cert.GenerateSelfSignedCertKey("127.0.0.1", local, []string{"localhost"})
	if err != nil {
		return err
	}
	if err := os.WriteFile(key, private, 0o600); err != nil {
		return err
	}
	return os.WriteFile(certificate, certificates, 0o600)
}

func lastCertificate(path string) ([]byte, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, rest := pem.Decode(content)
	for len(bytes.TrimSpace(rest)) != 0 {
		block, rest = pem.Decode(rest)
	}
	return pem.EncodeToMemory(block), nil
}

func writeAccountKey(path string) error {
	if exists(path) {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	content, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}

// writeToken makes the token of the administrator, or returns that of the last start.
func writeToken(path string) (string, error) {
	if exists(path) {
		content, err := os.ReadFile(path)
		token, _, _ := bytes.Cut(content, []byte(","))
		return string(token), err
	}
	token := rand.Text()
	return token, os.WriteFile(path, fmt.Appendf(nil, "%s,admin,admin,system:masters\n", token), 0o600)
}

// webhook is the kubeconfig, as JSON, of a TokenReview webhook. See
// https://kubernetes.io/docs/reference/access-authn-authz/authentication/#webhook-token-authentication
func webhook(url string) []byte {
	const format = `{"apiVersion": "v1", "kind": "Config", "current-context": "webhook", "users": [],
	"contexts": [{"name": "webhook", "context": {"cluster": "webhook"}}],
	"clusters": [{"name": "webhook", "cluster": {"server": %q}}]}`
	return fmt.Appendf(nil, format, url)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
