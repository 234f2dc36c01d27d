package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// meter shows how far a command is: a bar on a terminal, nothing in a pipe,
// where the command's own lines are enough.
type meter struct{ bar *progressbar.ProgressBar }

func (a *app) meter(what string, total int64, bytes bool) *meter {
	if a.json || !isTerminal(a.err) {
		return &meter{}
	}
	return &meter{progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(a.err), progressbar.OptionSetDescription(what), progressbar.OptionShowBytes(bytes),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionSetWidth(24),
	)}
}

func (m *meter) add(n int64) {
	if m.bar != nil {
		_ = m.bar.Add64(n)
	}
}

func (m *meter) set(n, of int64) {
	if m.bar != nil {
		m.bar.ChangeMax64(of)
		_ = m.bar.Set64(n)
	}
}

// rebuild shows a line of a rebuild's progress; false where p is none. The bar itself says
// how fast it goes and how long it will take.
func (m *meter) rebuild(p json.RawMessage) bool {
	var s struct {
		Phase string
		Done  int64
		Of    int64
	}
	if json.Unmarshal(p, &s) != nil || s.Phase == "" {
		return false
	}
	if m.bar != nil {
		if m.bar.Describe("rebuild: " + s.Phase); s.Of > 0 {
			m.set(s.Done, s.Of)
		}
	}
	return true
}

func (m *meter) reader(r io.Reader) io.Reader {
	if m.bar == nil {
		return r
	}
	pr := progressbar.NewReader(r, m.bar)
	return &pr
}

// spin shows that something is under way whose end nobody can tell, until stop.
func (m *meter) spin() (stop func()) {
	if m.bar == nil {
		return func() {}
	}
	end := make(chan struct{})
	var turning sync.WaitGroup
	turning.Go(func() {
		t := time.NewTicker(200 * time.Millisecond)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				m.add(1)
			case <-end:
				m.done()
				return
			}
		}
	})
	return func() { close(end); turning.Wait() }
}

func (m *meter) done() {
	if m.bar != nil {
		_ = m.bar.Finish()
	}
}

// sizeText is a number of bytes as people read it.
func sizeText(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f kB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}
