package vault_test

import (
	"fmt"
	"testing"

	"github.com/mneme-ai/mneme/shared/vault"
)

// large is a project of 64 questions, the most that a file holds, with n statements in
// all, each with its page; every tenth was replaced, every fourth stands in a memory.
func large(n int) *vault.Model {
	m := &vault.Model{Project: "shop", Evidence: true}
	for k := range 64 {
		id := fmt.Sprintf("question-%d", k)
		q := asked(id, fmt.Sprintf("What is known about part %d of the shop, and why was it decided?", k), k)
		for i := k; i < n; i += 64 {
			s := said(id, fmt.Sprintf("From now on part %d keeps rule number %d instead of the one before, because the consumer of queue orders fell behind.", k, i), i)
			switch {
			case i%10 == 0:
				s = replaced(s, said(id, "later", i+1))
			case i%4 == 0:
				s.In = true
				q.Memory.Text += "- " + s.Text + " [" + s.Node.Short() + "]\n"
				q.Memory.Parents = append(q.Memory.Parents, s.Node)
			}
			q.Statements = append(q.Statements, s)
		}
		m.Questions = append(m.Questions, q)
	}
	return m
}

func BenchmarkRender(b *testing.B) {
	for _, size := range []struct {
		name string
		n    int
	}{{"100-notes", 100}, {"10k-notes", 10_000}} {
		m := large(size.n)
		for _, evidence := range []bool{true, false} {
			name := size.name
			if !evidence {
				name += "/without-evidence-pages"
			}
			b.Run(name, func(b *testing.B) {
				m.Evidence = evidence
				b.ReportAllocs()
				bytes, pages := 0, 0
				for b.Loop() {
					v := vault.Render(m)
					bytes, pages = 0, len(v.Files)
					for _, f := range v.Files {
						bytes += len(f.Bytes)
					}
				}
				b.SetBytes(int64(bytes))
				b.ReportMetric(float64(pages), "pages")
			})
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	files := vault.Render(large(10_000)).Files
	b.Run("10k-notes", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if p := vault.Check(files); len(p) > 0 {
				b.Fatal(p[0])
			}
		}
	})
}

// BenchmarkFolder decides about a folder of that many pages of which one was edited.
func BenchmarkFolder(b *testing.B) {
	files := vault.Render(large(10_000)).Files
	f := vault.LocalFolder{State: vault.FolderState{Pages: map[string]vault.Written{}}, Files: map[string]vault.Mark{}}
	var ls []vault.Listed
	for _, p := range files {
		m := vault.MarkOf(p.Bytes)
		f.Files[p.Path] = m
		ls = append(ls, vault.Listed{Path: p.Path, SHA256: m.SHA256, Body: m.Body, Note: p.Note, Stream: p.Stream, Notes: m.Notes})
		f.State.Pages[p.Path] = vault.Written{SHA256: m.SHA256, Body: m.Body, Notes: m.Notes, Note: p.Note, Stream: p.Stream}
	}
	f.Files["index.md"] = vault.MarkOf([]byte("edited"))
	b.Run("10k-notes", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if f.Edits(ls); len(f.Steps(ls, nil, nil)) != 1 {
				b.Fatal("not one step")
			}
		}
	})
}
