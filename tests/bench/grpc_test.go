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

// A grpcClient calls methods of gRPC over one connection: each is a POST of HTTP/2 whose body is a message behind five bytes.
// https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
type grpcClient struct {
	http *http.Client
	url  string // of the server, with the slash
}

func newGRPCClient(addr string) *grpcClient {
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	return &grpcClient{
		http: &http.Client{Transport: &http.Transport{Protocols: &protocols}},
		url:  "http://" + addr + "/",
	}
}

// call sends a message to a method and returns the message that it answers.
func (c *grpcClient) call(ctx context.Context, method string, message []byte) ([]byte, error) {
	framed := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))) // not compressed
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+method, bytes.NewReader(append(framed, message...)))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/grpc")
	request.Header.Set("Te", "trailers")
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	const prefix = 5
	if status := response.Trailer.Get("Grpc-Status"); status != "0" || len(body) < prefix {
		return nil, fmt.Errorf("status %s, %s: %x", status, response.Trailer.Get("Grpc-Message"), body)
	}
	return body[prefix:], nil
}

// askRate asks a rate limit service of Envoy whether one more of a key and value may pass, and returns an error if that was not decided.
func (c *grpcClient) askRate(ctx context.Context, domain, key, value string) error {
	reply, err := c.call(ctx, "envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", rateRequest(domain, key, value))
	if err != nil {
		return err
	}
	if len(reply) < 2 || reply[0] != 1<<3 || reply[1] != 1 && reply[1] != 2 {
		return fmt.Errorf("neither OK nor OVER_LIMIT: %x", reply)
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
