package ollama

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/llm/endpoint"
)

// Models lists the models on the server's disk, a tag of ":latest" left out as
// Ollama does. The window of a loaded one is what it holds now; of another its
// own num_ctx or, without one, the window that it was trained with: as much as
// a request may ask for. (A request that asks for nothing gets OLLAMA_CONTEXT_LENGTH,
// which the server does not tell.)
func (c *Client) Models(ctx context.Context) (_ []llm.Info, err error) {
	defer fault.Wrap(&err, "models(%s)", c.ep.Name())
	var tags, loaded struct {
		Models []struct {
			Name   string `json:"name"`
			Window int    `json:"context_length"`
		} `json:"models"`
	}
	for path, into := range map[string]any{"api/tags": &tags, "api/ps": &loaded} {
		body, err := c.ep.Get(ctx, endpoint.Probe, path)
		if err != nil {
			return nil, err
		}
		if json.Unmarshal(body, into) != nil {
			return nil, c.ep.Unreadable("it is not the JSON of /" + path)
		}
	}
	now := map[string]int{}
	for _, m := range loaded.Models {
		now[m.Name] = m.Window
	}
	out := make([]llm.Info, len(tags.Models))
	shows, ctx := errgroup.WithContext(ctx)
	shows.SetLimit(4) // a reply of /api/show is some 100 KB
	for i, m := range tags.Models {
		window, ok := now[m.Name]
		out[i] = llm.Info{Model: strings.TrimSuffix(m.Name, ":latest"), Window: window, Loaded: ok}
		if window > 0 {
			continue
		}
		shows.Go(func() error {
			window, err := c.shown(ctx, m.Name)
			if fault.Is(err, fault.NotFound) { // removed since
				return nil
			}
			out[i].Window = window
			return err
		})
	}
	return out, shows.Wait()
}

// shown is the window that a model would be loaded with, 0 when unsaid.
func (c *Client) shown(ctx context.Context, model string) (int, error) {
	body, err := c.ep.Post(ctx, endpoint.Probe, "api/show", map[string]string{"model": model})
	if err != nil {
		return 0, err
	}
	var got struct {
		Parameters string                     `json:"parameters"` // lines of a name, spaces, a value
		Info       map[string]json.RawMessage `json:"model_info"`
	}
	if json.Unmarshal(body, &got) != nil {
		return 0, c.ep.Unreadable("it is not the JSON of /api/show")
	}
	trained := 0
	for name, v := range got.Info {
		if strings.HasSuffix(name, ".context_length") { // llama.context_length, qwen2.context_length
			_ = json.Unmarshal(v, &trained) // 0 when it is no number
		}
	}
	for line := range strings.Lines(got.Parameters) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "num_ctx" {
			if n, err := strconv.Atoi(f[1]); err == nil && n > 0 {
				if trained > 0 {
					n = min(n, trained) // the server clips it
				}
				return n, nil
			}
		}
	}
	return trained, nil
}
