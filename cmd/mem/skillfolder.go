package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/skill"
)

// skillFolder is vault/skills of this disk. Nothing of it follows a link out of the
// folder.
type skillFolder struct {
	dir  string
	root *os.Root
}

// vaultFolder is the folder of the vault on this disk.
func (a *app) vaultFolder(flag string) string {
	if flag != "" {
		return flag
	}
	if v := a.getenv("MNEME_VAULT"); v != "" {
		return v
	}
	return "vault"
}

// openSkills opens the folder, which is made where make says so; fault.NotFound where
// there is none.
func openSkills(vault string, make bool) (*skillFolder, error) {
	dir := filepath.Join(vault, "skills")
	if make {
		if err := os.MkdirAll(filepath.Join(dir, skill.DraftsDir), 0o755); err != nil {
			return nil, fault.As(fault.Invalid, err)
		}
	}
	root, err := os.OpenRoot(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault.At(fault.NotFound, dir, "name the vault with --vault, or draft one: mem skill draft --from PROJECT/QUESTION", "there is no folder of skills")
	case err != nil:
		return nil, fault.As(fault.Invalid, err)
	}
	return &skillFolder{dir, root}, nil
}

func (s *skillFolder) Close() { _ = s.root.Close() } // it was only read through, files are synced

// place is the path of a skill below the folder.
func (s *skillFolder) place(name string, draft bool) string {
	if draft {
		return filepath.Join(skill.DraftsDir, name, skill.FileName)
	}
	return filepath.Join(name, skill.FileName)
}

// path is how people see it.
func (s *skillFolder) path(name string, draft bool) string {
	return filepath.Join(s.dir, s.place(name, draft))
}

// read reads a skill; nil where there is none. One over the limit comes one byte too
// long, which skill.Parse and Lint speak of.
func (s *skillFolder) read(name string, draft bool) ([]byte, error) {
	f, err := s.root.Open(s.place(name, draft))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.As(fault.Invalid, err)
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, fault.At(fault.Invalid, s.path(name, draft), "make it a file", "is no regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, skill.MaxBytes+1))
	if data == nil {
		data = []byte{}
	}
	return data, fault.As(fault.Invalid, err)
}

// write puts a skill there whole or not at all: a loader never sees half of one.
func (s *skillFolder) write(name string, draft bool, text string) (err error) {
	at := s.place(name, draft)
	if err := s.root.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return fault.As(fault.Invalid, err)
	}
	tmp := at + ".new"
	f, err := s.root.Create(tmp)
	if err != nil {
		return fault.As(fault.Invalid, err)
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = s.root.Rename(tmp, at)
	}
	if err != nil {
		return fault.As(fault.Invalid, errors.Join(err, s.root.Remove(tmp)))
	}
	return nil
}

// move moves a skill out of the drafts, or back, with the files beside it. Where the
// other folder exists the SKILL.md alone goes there; stays are what stays behind.
func (s *skillFolder) move(name string, toDraft bool, text string) (stays []string, err error) {
	from, to := filepath.Dir(s.place(name, !toDraft)), filepath.Dir(s.place(name, toDraft))
	if _, err := s.root.Lstat(to); errors.Is(err, fs.ErrNotExist) {
		if err := s.root.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return nil, fault.As(fault.Invalid, err)
		}
		return nil, fault.As(fault.Invalid, s.root.Rename(from, to))
	}
	if err := s.write(name, toDraft, text); err != nil {
		return nil, err
	}
	if err := s.root.Remove(s.place(name, !toDraft)); err != nil {
		return nil, fault.As(fault.Invalid, err)
	}
	left, err := s.names(from)
	if err != nil || len(left) > 0 {
		return left, err
	}
	return nil, fault.As(fault.Invalid, s.root.Remove(from))
}

func (s *skillFolder) names(dir string) (out []string, err error) {
	f, err := s.root.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.As(fault.Invalid, err)
	}
	defer f.Close()
	out, err = f.Readdirnames(-1)
	slices.Sort(out)
	return out, fault.As(fault.Invalid, err)
}

// skills are the names of the folder's skills, drafts or others.
func (s *skillFolder) skills(draft bool) (out []string, err error) {
	dir := "."
	if draft {
		dir = skill.DraftsDir
	}
	names, err := s.names(dir)
	for _, n := range names {
		if n == skill.DraftsDir {
			continue
		}
		if _, err := s.root.Lstat(s.place(n, draft)); err == nil {
			out = append(out, n)
		}
	}
	return out, err
}
