package ollama

import (
	"context"
	"encoding/json"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/llm/endpoint"
)

type embedRequest struct {
	Model      string   `json:"model"`
	Input      []string `json:"input"`
	Truncate   bool     `json:"truncate"`
	KeepAlive  string   `json:"keep_alive"`
	Dimensions int      `json:"dimensions,omitempty"`
	Options    any      `json:"options,omitempty"`
}

// Vectors embeds texts by /api/embed, as the model gives them. A text over the
// window is fault.Invalid for the whole call, as is one whose vector is not a
// number. dims cuts the vectors at the server where it is not 0, which makes
// sense for models that were trained for it.
func (c *Client) Vectors(ctx context.Context, model string, texts []string, dims int) (_ [][]float32, err error) {
	defer fault.Wrap(&err, "vectors(%s, %s, %d texts)", c.ep.Name(), model, len(texts))
	if len(texts) == 0 {
		return nil, nil
	}
	key := loadKey{"api/embed", model, c.c.EmbedWindow}
	if err := c.ready(ctx, key); err != nil {
		return nil, err
	}
	req := embedRequest{Model: model, Input: texts, KeepAlive: c.keepAlive(), Dimensions: dims}
	if key.window > 0 {
		req.Options = windowOption{key.window}
	}
	body, err := c.ep.Post(ctx, endpoint.Embed, key.path, req)
	if err != nil {
		c.forget(key, err)
		return nil, err
	}
	var got struct {
		Embeddings []json.RawMessage `json:"embeddings"`
		Error      json.RawMessage   `json:"error"`
	}
	switch err := json.Unmarshal(body, &got); {
	case err != nil && endpoint.SaysNaN(body):
		return nil, c.ep.NotANumber()
	case err != nil:
		return nil, c.ep.Unreadable("it is not the JSON of /api/embed")
	case len(got.Error) > 0 && string(got.Error) != "null":
		return nil, c.ep.InBand(body, model)
	}
	c.used(key)
	return c.ep.ReadVectors(got.Embeddings, len(texts))
}
