package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScript runs testdata/script/*.txtar: the command line as people meet it.
// MNEME_DIR is a folder of the script's own, MEM the program's path. Beside the commands of testscript:
//
//	exit CODE mem ARG…        run, and compare the exit code
//	ready                     wait until a `mem up` started with & serves MNEME_DIR
//	fields PATH NAME…         stdout is JSON (the first line of it) that has these fields at PATH
//	jsonlines NAME…           each line of stdout is a JSON object that has these fields
//	bytes FILE QUOTED         write a Go string literal into FILE
//	holds FOLDER TEXT         a file below FOLDER holds TEXT
func TestScript(t *testing.T) {
	t.Parallel()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", filepath.Dir(path)+string(os.PathListSeparator)+env.Getenv("PATH"))
			env.Setenv("MEM", path)
			env.Setenv("MNEME_DIR", filepath.Join(env.WorkDir, "data"))
			env.Setenv("MNEME_TENANT_KEY", tenantKey)
			env.Setenv("MNEME_HTTP", "127.0.0.1:0")
			env.Setenv("MNEME_S3", "127.0.0.1:0")
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exit": scriptExit, "ready": scriptReady, "fields": scriptFields, "jsonlines": scriptLines,
			"bytes": scriptBytes, "holds": scriptHolds,
		},
	})
}

func scriptExit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exit CODE COMMAND ARG…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		ee, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = ee.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func scriptReady(ts *testscript.TestScript, neg bool, _ []string) {
	file := filepath.Join(ts.Getenv("MNEME_DIR"), "ready.json")
	for end := time.Now().Add(30 * time.Second); ; {
		_, err := os.Stat(file)
		if (err == nil) != neg {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("ready is not %t after 30 s: %v", !neg, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func has(ts *testscript.TestScript, v any, names []string) {
	m, ok := v.(map[string]any)
	if !ok {
		ts.Fatalf("not an object: %v", v)
	}
	for _, n := range names {
		if _, ok := m[n]; !ok {
			ts.Fatalf("no field %q in %v", n, m)
		}
	}
}

func scriptFields(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: fields PATH NAME…")
	}
	var v any
	ts.Check(json.NewDecoder(strings.NewReader(ts.ReadFile("stdout"))).Decode(&v))
	for part := range strings.SplitSeq(args[0], ".") {
		switch at := v.(type) {
		case map[string]any:
			if part != "" {
				v = at[part]
			}
		case []any:
			i, err := strconv.Atoi(part)
			ts.Check(err)
			if i >= len(at) {
				ts.Fatalf("%s: only %d", args[0], len(at))
			}
			v = at[i]
		}
	}
	has(ts, v, args[1:])
}

func scriptLines(ts *testscript.TestScript, neg bool, args []string) {
	n := 0
	for line := range strings.Lines(ts.ReadFile("stdout")) {
		var v any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			ts.Fatalf("%v: %s", err, line)
		}
		has(ts, v, args)
		n++
	}
	if (n == 0) != neg {
		ts.Fatalf("%d lines", n)
	}
}

func scriptBytes(ts *testscript.TestScript, _ bool, args []string) {
	s, err := strconv.Unquote(`"` + args[1] + `"`)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(s), 0o600))
}

func scriptHolds(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: holds FOLDER TEXT")
	}
	var found []string
	ts.Check(filepath.WalkDir(ts.MkAbs(args[0]), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a merge of the index has removed it
		}
		if bytes.Contains(b, []byte(args[1])) {
			found = append(found, path)
		}
		return err
	}))
	if (len(found) > 0) == neg {
		ts.Fatalf("%d files hold %q: %s", len(found), args[1], strings.Join(found, " "))
	}
}
