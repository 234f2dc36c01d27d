package project

import "context"

// spaces are the embedding spaces that are live: a rebuild fills each of them.
func (f *Function) spaces(context.Context) ([]string, error) {
	return []string{f.cfg.Space}, nil
}
