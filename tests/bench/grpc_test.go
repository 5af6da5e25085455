package bench

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// A rateClient asks a rate limit service of Envoy over one connection: gRPC, which is a POST of HTTP/2 whose body is a message behind five
// bytes. https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
type rateClient struct {
	http *http.Client
	url  string
}

func newRateClient(addr string) *rateClient {
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	return &rateClient{
		http: &http.Client{Transport: &http.Transport{Protocols: &protocols}},
		url:  "http://" + addr + "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
	}
}

// ask asks whether one more of a key and value may pass, and returns an error if that was not decided.
func (c *rateClient) ask(ctx context.Context, domain, key, value string) error {
	message := rateRequest(domain, key, value)
	framed := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))) // not compressed
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(append(framed, message...)))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/grpc")
	request.Header.Set("Te", "trailers")
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if status := response.Trailer.Get("Grpc-Status"); status != "0" || len(body) < 5+2 || body[5] != 1<<3 || body[6] != 1 && body[6] != 2 {
		return fmt.Errorf("status %s, %s: %x", status, response.Trailer.Get("Grpc-Message"), body)
	}
	return nil
}

// rateRequest is envoy.service.ratelimit.v3.RateLimitRequest with one descriptor of one entry.
func rateRequest(domain, key, value string) []byte {
	entry := append(protoBytes(1, key), protoBytes(2, value)...)
	descriptor := protoBytes(1, string(entry))
	return append(protoBytes(1, domain), protoBytes(2, string(descriptor))...)
}

// protoBytes is a field of Protocol Buffers that holds bytes.
func protoBytes(field byte, value string) []byte {
	return append(binary.AppendUvarint([]byte{field<<3 | 2}, uint64(len(value))), value...)
}

func TestRateRequest(t *testing.T) {
	require.Equal(t, "\x0a\x05bench\x12\x0d\x0a\x0b\x0a\x04user\x12\x0342\x21", string(rateRequest("bench", "user", "42!")))
}
