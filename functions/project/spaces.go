package project

import "context"

// spaces are the embedding spaces that are live, the one that serves first: a rebuild
// fills each of them.
func (f *Function) spaces(context.Context) ([]string, error) {
	return []string{f.cfg.Space}, nil
}
