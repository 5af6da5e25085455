package front

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"hash"
)

// Private keys that a password protects. crypto/x509 knows only those of OpenSSL's own, older form; the other one is PKCS #8 with PBES2
// (RFC 8018), of which this reads what OpenSSL writes: PBKDF2 and AES in CBC mode.

var (
	errKeyPassword   = errors.New("the key is encrypted, and tls-key-file-pass is not its password")
	errNoKeyPassword = errors.New("the key is encrypted: set tls-key-file-pass to its password")
	errKeyForm       = errors.New("the key is encrypted in a way that is not known here; convert it with openssl pkcs8 -topk8 -v2 aes256")
)

const maxKeyIterations = 10_000_000 // of PBKDF2: some seconds

// decryptKey returns the PEM file without a password on its private key.
func decryptKey(data, password []byte) ([]byte, error) {
	for rest := data; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return data, nil // not encrypted, or no key at all, as will be seen
		}
		var plain []byte
		var err error
		kind := block.Type
		switch {
		case block.Type == "ENCRYPTED PRIVATE KEY":
			kind = "PRIVATE KEY"
			plain, err = decryptPKCS8(block.Bytes, password)
		case isEncryptedPEM(block):
			//lint:ignore SA1019 such keys exist, and whoever has one has its file as well
			if plain, err = x509.DecryptPEMBlock(block, password); err != nil {
				err = errKeyPassword
			}
		default:
			continue
		}
		if errors.Is(err, errKeyPassword) && len(password) == 0 {
			err = errNoKeyPassword
		}
		if err != nil {
			return nil, err
		}
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: plain}), nil
	}
}

// isEncryptedPEM reports whether a key is encrypted in OpenSSL's older form.
func isEncryptedPEM(block *pem.Block) bool {
	_, found := block.Headers["DEK-Info"]
	return found
}

// The parts of an encrypted key.
type (
	encryptedKey struct {
		Algorithm pkix.AlgorithmIdentifier
		Data      []byte
	}
	pbes2Params struct {
		Derivation, Encryption pkix.AlgorithmIdentifier
	}
	pbkdf2Params struct {
		Salt       []byte
		Iterations int
		KeyLength  int                      `asn1:"optional"`
		PRF        pkix.AlgorithmIdentifier `asn1:"optional"`
	}
)

var (
	oidPBES2  = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 13}
	oidPBKDF2 = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 12}
)

// derivationHashes are the hash functions of PBKDF2's HMAC, by their identifiers. None stands for SHA-1.
var derivationHashes = map[string]func() hash.Hash{
	"": sha1.New, "1.2.840.113549.2.7": sha1.New, "1.2.840.113549.2.9": sha256.New, "1.2.840.113549.2.11": sha512.New,
}

// cipherKeys are the lengths of the keys of AES in CBC mode, by the identifiers.
var cipherKeys = map[string]int{"2.16.840.1.101.3.4.1.2": 16, "2.16.840.1.101.3.4.1.22": 24, "2.16.840.1.101.3.4.1.42": 32}

// decryptPKCS8 decrypts a key in the form of PKCS #8.
func decryptPKCS8(der, password []byte) ([]byte, error) {
	var key encryptedKey
	var scheme pbes2Params
	var derivation pbkdf2Params
	var iv []byte
	_, err := asn1.Unmarshal(der, &key)
	if err != nil || !key.Algorithm.Algorithm.Equal(oidPBES2) {
		return nil, errKeyForm
	}
	if _, err = asn1.Unmarshal(key.Algorithm.Parameters.FullBytes, &scheme); err != nil || !scheme.Derivation.Algorithm.Equal(oidPBKDF2) {
		return nil, errKeyForm
	}
	_, err1 := asn1.Unmarshal(scheme.Derivation.Parameters.FullBytes, &derivation)
	_, err2 := asn1.Unmarshal(scheme.Encryption.Parameters.FullBytes, &iv)
	newHash := derivationHashes[derivation.PRF.Algorithm.String()]
	length := cipherKeys[scheme.Encryption.Algorithm.String()]
	if errors.Join(err1, err2) != nil || newHash == nil || length == 0 || len(iv) != aes.BlockSize || derivation.Iterations < 1 || derivation.Iterations > maxKeyIterations {
		return nil, errKeyForm
	}
	secret, err := pbkdf2.Key(newHash, string(password), derivation.Salt, derivation.Iterations, length)
	if err != nil {
		return nil, fmt.Errorf("the key's password cannot be used: %w", err)
	}
	return decryptCBC(secret, iv, key.Data)
}

// decryptCBC decrypts what was padded to whole blocks, and takes the padding off.
func decryptCBC(secret, iv, data []byte) ([]byte, error) {
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	if len(data) == 0 || len(data)%aes.BlockSize != 0 {
		return nil, errKeyForm
	}
	plain := make([]byte, len(data))
	cipher.NewCBCDecrypter(block, iv).CryptBlocks(plain, data)
	padding := int(plain[len(plain)-1])
	if padding == 0 || padding > aes.BlockSize || !bytes.Equal(plain[len(plain)-padding:], bytes.Repeat([]byte{byte(padding)}, padding)) {
		return nil, errKeyPassword
	}
	return plain[:len(plain)-padding], nil
}
