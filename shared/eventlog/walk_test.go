package eventlog_test

import "io/fs"

// walkFiles reads every object of the frozen store; the list of hashes beside
// them is none.
func walkFiles(root fs.FS, each func(name string, data []byte)) error {
	return fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || name == "hashes.json" {
			return err
		}
		data, err := fs.ReadFile(root, name)
		if err == nil {
			each(name, data)
		}
		return err
	})
}
