package gateeval

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gru/extractive"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Item is one labelled conversation or note.
type Item struct {
	ID       string
	Open     *bool // nil: two readings are possible, left out of the figures
	Messages []extractive.Message
}

// message is a turn as the files hold it.
type message struct {
	Role string `json:"role"`
	Text string `json:"text"`
	Ctx  bool   `json:"ctx"` // context, not evidence
}

// line is a line of any of the files but tasks.jsonl.
type line struct {
	ID       string    `json:"id"`
	Open     *bool     `json:"open"`
	Messages []message `json:"messages"`
	Turns    []message `json:"turns"`
	Text     *string   `json:"text"`
}

// task is a line of tasks.jsonl.
type task struct {
	Task     string   `json:"task"`
	Question string   `json:"question"`
	Answer   string   `json:"answer"` // id of the chat that answers
	Stale    []string `json:"stale"`  // ids of chats that it amends
}

// maxLine is the longest line read, in bytes: that of one 64 MiB transcript
// line.
const maxLine = 64 << 20

const (
	decisionsFile = "decisions.jsonl"
	decoysFile    = "decoys.jsonl"
	tasksFile     = "tasks.jsonl"
)

// dataset is what path held.
type dataset struct {
	items []Item
	tasks []task
}

func load(path string) (dataset, error) {
	info, err := os.Stat(path)
	if err != nil {
		return dataset{}, unreadable(path, err)
	}
	if !info.IsDir() {
		items, err := readItems(path, nil)
		return dataset{items: items}, err
	}
	if _, err := os.Stat(filepath.Join(path, decisionsFile)); err == nil {
		return loadBench(path)
	}
	names, err := filepath.Glob(filepath.Join(path, "*.jsonl"))
	if err != nil {
		return dataset{}, unreadable(path, err)
	}
	if len(names) == 0 {
		return dataset{}, fault.At(fault.Invalid, path, "name a folder with "+decisionsFile+" and "+decoysFile+", or JSON Lines of {id, open, messages}", "no .jsonl file")
	}
	sort.Strings(names)
	var d dataset
	for _, name := range names {
		items, err := readItems(name, nil)
		if err != nil {
			return dataset{}, err
		}
		d.items = append(d.items, items...)
	}
	return d, nil
}

// loadBench reads a folder of sde-bench's shape: which file a chat stands in
// is its label.
func loadBench(path string) (dataset, error) {
	var d dataset
	for _, f := range []struct {
		name string
		open bool
	}{{decisionsFile, true}, {decoysFile, false}} {
		items, err := readItems(filepath.Join(path, f.name), &f.open)
		if err != nil {
			return dataset{}, err
		}
		d.items = append(d.items, items...)
	}
	name := filepath.Join(path, tasksFile)
	err := readLines(name, func(where string, b []byte) error {
		var t task
		if err := json.Unmarshal(b, &t); err != nil {
			return badLine(where, err)
		}
		if t.Question == "" || t.Answer == "" {
			return fault.At(fault.Invalid, where, "a task has question, answer and stale", "question or answer is missing")
		}
		d.tasks = append(d.tasks, t)
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return d, err
}

// readItems reads the items of one file; label, when not nil, is the label of
// all of them.
func readItems(name string, label *bool) ([]Item, error) {
	var items []Item
	err := readLines(name, func(where string, b []byte) error {
		var l line
		if err := json.Unmarshal(b, &l); err != nil {
			return badLine(where, err)
		}
		it, err := l.item(where)
		if err != nil {
			return err
		}
		if label != nil {
			it.Open = label
		}
		items = append(items, it)
		return nil
	})
	return items, err
}

func (l *line) item(where string) (Item, error) {
	it := Item{ID: l.ID, Open: l.Open}
	turns := l.Messages
	if len(turns) == 0 {
		turns = l.Turns
	}
	if len(turns) == 0 {
		if l.Text == nil {
			return it, fault.At(fault.Invalid, where, "an item is {id, open, messages | turns | text}", "neither messages, turns nor text")
		}
		turns = []message{{Role: string(memory.RoleNote), Text: *l.Text}}
	}
	continues := false
	for _, t := range turns {
		if t.Role == "" {
			return it, fault.At(fault.Invalid, where, "each message has role and text", "a message without a role")
		}
		continues = continues || t.Ctx
		it.Messages = append(it.Messages, extractive.Message{Role: memory.Role(t.Role), Text: t.Text, Context: t.Ctx})
	}
	it.Messages[0].First = !continues && len(turns) > 1
	return it, nil
}

// readLines calls f with each line that is not blank and with its place,
// "file:line".
func readLines(name string, f func(where string, b []byte) error) error {
	file, err := os.Open(name)
	if err != nil {
		return unreadable(name, err)
	}
	defer file.Close() // read only: nothing is lost by a failed close
	in := bufio.NewReaderSize(file, 1<<16)
	for n := 1; ; n++ {
		b, err := readLine(in)
		if err != nil && err != io.EOF {
			return fault.At(fault.Invalid, fmt.Sprintf("%s:%d", name, n), "", "%v", err)
		}
		if b = bytes.TrimSpace(b); len(b) > 0 {
			if err := f(fmt.Sprintf("%s:%d", name, n), b); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
	}
}

var errLong = errors.New("the line is longer than 64 MiB")

func readLine(in *bufio.Reader) ([]byte, error) {
	var out []byte
	for {
		part, err := in.ReadSlice('\n')
		out = append(out, part...)
		if len(out) > maxLine {
			return nil, errLong
		}
		if err != bufio.ErrBufferFull {
			return out, err
		}
	}
}

func unreadable(path string, err error) error {
	return fault.As(fault.Invalid, fmt.Errorf("%s: %w", path, err))
}

// badLine names the place of a line that is no JSON of the shape; the decoder
// quotes at most one character of it.
func badLine(where string, err error) error {
	msg := err.Error()
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		msg = fmt.Sprintf("field %s is a JSON %s", strings.TrimPrefix(t.Field, "."), t.Value)
	}
	return fault.At(fault.Invalid, where, "one JSON object a line", "%s", msg)
}
