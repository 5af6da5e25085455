package front

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"os"
	osexec "os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDecryptKey reads what openssl makes of a key, in each of the ways it encrypts.
func TestDecryptKey(t *testing.T) {
	if _, err := osexec.LookPath("openssl"); err != nil {
		t.Skip("openssl is not installed; make deps does that")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	plain := filepath.Join(t.TempDir(), "plain.pem")
	require.NoError(t, os.WriteFile(plain, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600))
	for _, tt := range []struct {
		args  []string
		fails error
	}{
		{[]string{"ec", "-aes256"}, nil},
		{[]string{"ec", "-des3"}, nil},
		{[]string{"pkcs8", "-topk8"}, nil},
		{[]string{"pkcs8", "-topk8", "-v2", "aes-256-cbc"}, nil},
		{[]string{"pkcs8", "-topk8", "-v2", "aes-128-cbc", "-v2prf", "hmacWithSHA512"}, nil},
		{[]string{"pkcs8", "-topk8", "-v2", "aes-192-cbc", "-v2prf", "hmacWithSHA1"}, nil},
		{[]string{"pkcs8", "-topk8", "-v1", "PBE-SHA1-3DES"}, errKeyForm},
		{[]string{"pkcs8", "-topk8", "-scrypt"}, errKeyForm},
	} {
		encrypted, err := osexec.Command("openssl", append(tt.args, "-in", plain, "-passout", "pass:open sesame")...).Output()
		require.NoError(t, err, "openssl %q", tt.args)
		data, err := decryptKey(encrypted, []byte("open sesame"))
		if tt.fails != nil {
			require.ErrorIs(t, err, tt.fails)
			continue
		}
		require.NoError(t, err, "openssl %q", tt.args)
		block, _ := pem.Decode(data)
		if same, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
			require.True(t, key.Equal(same))
		} else {
			same, err := x509.ParsePKCS8PrivateKey(block.Bytes)
			require.NoError(t, err, "openssl %q", tt.args)
			require.True(t, key.Equal(same))
		}
		for password, refusal := range map[string]error{"wrong": errKeyPassword, "": errNoKeyPassword} {
			if _, err = decryptKey(encrypted, []byte(password)); err != nil { // one wrong password in 256 leaves what looks like padding
				require.ErrorIs(t, err, refusal)
			}
		}
	}
	data, err := os.ReadFile(plain)
	require.NoError(t, err)
	same, err := decryptKey(data, nil)
	require.NoError(t, err)
	require.Equal(t, data, same)
}

// FuzzDecryptKey: no file makes it panic.
func FuzzDecryptKey(f *testing.F) {
	f.Add([]byte("-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAjdQKApnf8m+AICCAAw\n-----END ENCRYPTED PRIVATE KEY-----\n"))
	f.Add([]byte("-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,1227F1F7114274203E7B0B202AAEC61D\n\nBcuQ4L+J4Zm3bWbU1jHYtA==\n-----END EC PRIVATE KEY-----\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 1<<12 {
			_, _ = decryptKey(data, []byte("abc"))
		}
	})
}
