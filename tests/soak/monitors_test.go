package soak

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

const (
	monitorEvery  = time.Second      // each port beside that of Redis is asked, over a connection of its own,
	monitorWithin = 5 * time.Second  // and answers by then; that for TLS,
	tlsWithin     = 15 * time.Second // by then, since the kernel tries again after 1, 3 and 7 s where a crowd fills the queue of those who connect
)

// monitor asks one port again and again whether somebody is there, as those do who look after servers. Whatever it is answered will do.
type monitor struct {
	port              string // its directive
	addr              string
	within            time.Duration
	ask               func(ctx context.Context, addr string) error
	asked, unanswered atomic.Int64
	first             atomic.Value // the first error
}

// monitorsOf returns one for each port that a server's flags name.
func monitorsOf(flags []string) (all []*monitor) {
	for _, m := range []*monitor{
		{port: "metrics-port", within: monitorWithin, ask: askHealth},
		{port: "http-port", within: monitorWithin, ask: askCheck},
		{port: "rls-port", within: monitorWithin, ask: askService},
		{port: "tls-port", within: tlsWithin, ask: askTLS},
	} {
		if i := slices.Index(flags, "--"+m.port); i >= 0 {
			m.addr = net.JoinHostPort("127.0.0.1", flags[i+1])
			all = append(all, m)
		}
	}
	return all
}

// run asks until the context ends.
func (m *monitor) run(ctx context.Context) {
	for ctx.Err() == nil {
		m.asked.Add(1)
		within, cancel := context.WithTimeout(context.Background(), m.within)
		if err := m.ask(within, m.addr); err != nil {
			m.unanswered.Add(1)
			m.first.CompareAndSwap(nil, err.Error())
		}
		cancel()
		time.Sleep(monitorEvery)
	}
}

// String says how many were answered.
func (m *monitor) String() string {
	text := fmt.Sprintf("%d of %d at %s not answered", m.unanswered.Load(), m.asked.Load(), m.port)
	if first := m.first.Load(); first != nil {
		text += fmt.Sprintf(" (%v)", first)
	}
	return text
}

// askHealth asks for /healthz, which is to be well.
func askHealth(ctx context.Context, addr string) error {
	status, err := get(ctx, "http://"+addr+"/healthz")
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("HTTP status %d", status)
	}
	return err
}

// askCheck asks whether a request may pass.
func askCheck(ctx context.Context, addr string) error {
	_, err := get(ctx, "http://"+addr+"/check?policy=p&key=k")
	return err
}

func get(ctx context.Context, url string) (status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// askService asks the rate limit service how it is.
func askService(ctx context.Context, addr string) error {
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	_, err = healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
	return errors.Join(err, conn.Close())
}

// askTLS sends PING over TLS.
func askTLS(ctx context.Context, addr string) error {
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} // whose certificate it is does not matter
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	end, _ := ctx.Deadline()
	if err := conn.SetDeadline(end); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}

// unanswered lists the monitors that were not always answered.
func unanswered(all []*monitor) (texts string) {
	for _, m := range all {
		if m.unanswered.Load() > 0 {
			texts = strings.TrimPrefix(texts+"; "+m.String(), "; ")
		}
	}
	return texts
}
