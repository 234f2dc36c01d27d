package openaiapi

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/llm/endpoint"
)

// Models lists what the server names under /v1/models. The window is max_model_len
// (vLLM; an adapter has that of its base) or context_length (OpenRouter), 0 elsewhere.
// vLLM holds what it lists; of others that is not known.
func (c *Client) Models(ctx context.Context) (_ []llm.Info, err error) {
	defer fault.Wrap(&err, "models(%s)", c.ep.Name())
	var raw []byte
	if err := c.probes.Get(ctx, "models", nil, &raw); err != nil {
		return nil, c.ep.Fault(ctx, err)
	}
	if err := c.inBand(raw, ""); err != nil {
		return nil, err
	}
	var got struct {
		Data []struct {
			ID      string `json:"id"`
			Parent  string `json:"parent"`
			Len     int    `json:"max_model_len"`
			Context int    `json:"context_length"`
		} `json:"data"`
	}
	if json.Unmarshal(raw, &got) != nil {
		return nil, c.ep.Unreadable("it is not the JSON of /v1/models")
	}
	windows := map[string]int{}
	for _, m := range got.Data {
		windows[m.ID] = max(m.Len, m.Context)
	}
	out := make([]llm.Info, len(got.Data))
	for i, m := range got.Data {
		out[i] = llm.Info{Model: m.ID, Window: windows[m.ID], Loaded: c.dialect == VLLM || c.dialect == VLLMGuided}
		if out[i].Window == 0 {
			out[i].Window = windows[m.Parent]
		}
	}
	return out, nil
}

// Vectors embeds texts by /v1/embeddings, as the model gives them. Whether a text
// over the window is an error or is cut in silence is the server's affair: vLLM
// and OpenAI refuse it, Ollama's /v1 cuts it. dims cuts the vectors at the server
// where it is not 0; a server that is not declared to can not be asked to.
func (c *Client) Vectors(ctx context.Context, model string, texts []string, dims int) (_ [][]float32, err error) {
	defer fault.Wrap(&err, "vectors(%s, %s, %d texts)", c.ep.Name(), model, len(texts))
	if len(texts) == 0 {
		return nil, nil
	}
	p := openai.EmbeddingNewParams{
		Model: model, Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: texts},
		EncodingFormat: openai.EmbeddingNewParamsEncodingFormatFloat, // a base64 reply would not decode
	}
	if dims > 0 {
		if !c.caps.Dimensions {
			return nil, fault.At(fault.Invalid, c.ep.Name(), "use the model's own dimensions", "the size of a vector cannot be chosen by request")
		}
		p.Dimensions = openai.Int(int64(dims))
	}
	var raw []byte
	if _, err := c.embed.New(ctx, p, option.WithResponseBodyInto(&raw)); err != nil {
		return nil, c.ep.Fault(ctx, err)
	}
	if endpoint.SaysNaN(raw) {
		return nil, c.ep.NotANumber()
	}
	if err := c.inBand(raw, model); err != nil {
		return nil, err
	}
	var got struct {
		Data []struct {
			Index     int             `json:"index"`
			Embedding json.RawMessage `json:"embedding"`
		} `json:"data"`
	}
	if json.Unmarshal(raw, &got) != nil {
		return nil, c.ep.Unreadable("it is not the JSON of /v1/embeddings")
	}
	ordered := make([]json.RawMessage, len(texts))
	for _, d := range got.Data {
		if d.Index < 0 || d.Index >= len(texts) || ordered[d.Index] != nil {
			return nil, c.ep.Unreadable(fmt.Sprintf("vector %d of %d texts, or a second one", d.Index, len(texts)))
		}
		ordered[d.Index] = d.Embedding
	}
	if len(got.Data) != len(texts) {
		return nil, c.ep.Unreadable(fmt.Sprintf("%d vectors for %d texts", len(got.Data), len(texts)))
	}
	return c.ep.ReadVectors(ordered, len(texts))
}

type rerankRequest struct {
	Model     string   `json:"model"`
	Query     string   `json:"query"`
	Documents []string `json:"documents"`
}

// Rerank is one call of /v1/rerank, as vLLM and Jina have it.
func (c *Client) Rerank(ctx context.Context, model, query string, documents []string) (_ []float64, err error) {
	defer fault.Wrap(&err, "rerank(%s, %s, %d documents)", c.ep.Name(), model, len(documents))
	if !c.caps.Rerank {
		return nil, fault.At(fault.Invalid, c.ep.Name(), "serve a cross-encoder with vLLM, or leave reranking off", "this endpoint does not rerank")
	}
	if len(documents) == 0 {
		return nil, nil
	}
	var raw []byte
	if err := c.embeds.Post(ctx, "rerank", rerankRequest{model, query, documents}, &raw); err != nil {
		return nil, c.ep.Fault(ctx, err)
	}
	if err := c.inBand(raw, model); err != nil {
		return nil, err
	}
	var got struct {
		Results []struct {
			Index *int     `json:"index"`
			Score *float64 `json:"relevance_score"`
		} `json:"results"`
	}
	if json.Unmarshal(raw, &got) != nil || len(got.Results) != len(documents) {
		return nil, c.ep.Unreadable(fmt.Sprintf("%d scores for %d documents", len(got.Results), len(documents)))
	}
	scores, seen := make([]float64, len(documents)), make([]bool, len(documents))
	for _, r := range got.Results {
		if r.Index == nil || r.Score == nil || *r.Index < 0 || *r.Index >= len(documents) || seen[*r.Index] {
			return nil, c.ep.Unreadable("a score without its document")
		}
		scores[*r.Index], seen[*r.Index] = *r.Score, true
	}
	return scores, nil
}
