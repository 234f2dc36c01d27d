package serve_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"testing"

	ce "github.com/cloudevents/sdk-go/v2/event"

	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/serve"
)

// childEnv makes this test binary the process of one function, on the address
// that it holds.
const childEnv = "MNEME_SERVE_TEST_CHILD"

func TestMain(m *testing.M) {
	if addr := os.Getenv(childEnv); addr != "" {
		if err := serve.New(&fn{}, serve.Config{}).ListenAndServe(context.Background(), addr); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// BenchmarkProcessStart is one function from the start of its process to
// readiness 200, SIGTERM and exit excluded; the issue asks for at most 30 ms.
func BenchmarkProcessStart(b *testing.B) {
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		b.StopTimer()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		addr := l.Addr().String()
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
		cmd := exec.CommandContext(b.Context(), exe)
		cmd.Env = append(os.Environ(), childEnv+"="+addr)
		b.StartTimer()
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		waitReady(b, addr)
		b.StopTimer()
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			b.Fatal(err)
		}
		http.DefaultClient.CloseIdleConnections()
		if err := cmd.Wait(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkStart is one function from New to readiness 200 and its end, in a
// process that runs.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		ctx, stop := context.WithCancel(b.Context())
		ended := make(chan error)
		go func() { ended <- serve.New(&fn{}, serve.Config{}).Serve(ctx, l) }()
		waitReady(b, l.Addr().String())
		stop()
		http.DefaultClient.CloseIdleConnections()
		if err := <-ended; err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBroker is 1,000 events through ingress, queue, two services and the
// event that each sends on: three handler calls for each.
func BenchmarkBroker(b *testing.B) {
	const n = 1000
	b.ReportAllocs()
	for b.Loop() {
		br := serve.NewBroker(serve.BrokerConfig{})
		send := func(name string, next func(e ce.Event) []ce.Event) {
			s := open(b, &fn{name: name, handle: func(_ context.Context, e ce.Event) ([]ce.Event, error) { return next(e), nil }}, to(br))
			br.Subscribe(name, s.Handler())
		}
		send("gate", func(e ce.Event) []ce.Event {
			if event.Type(e.Type()) != event.ChunksReady {
				return nil // run.ended comes back to gate too
			}
			d, err := event.Decode[event.Part](e)
			if err != nil {
				b.Error(err)
			}
			return []ce.Event{event.New(event.RunEnded, "gate", event.Stream{Tenant: d.Tenant, Project: d.Project, Stream: fmt.Sprint("q@", d.Seq), Seq: 1})}
		})
		send("embed", func(ce.Event) []ce.Event { return nil })
		ctx, stop := context.WithCancel(b.Context())
		ended := make(chan error)
		go func() { ended <- br.Run(ctx) }()
		for i := range n {
			if w := do(br, structured(b, part(int64(i+1)))); w.Code != http.StatusAccepted {
				b.Fatal(w.Code)
			}
		}
		if err := br.WaitIdle(ctx); err != nil {
			b.Fatal(err)
		}
		stop()
		if err := <-ended; err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "events/s")
}
