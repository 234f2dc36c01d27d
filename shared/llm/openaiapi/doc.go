// Package openaiapi speaks OpenAI's form to vLLM, OpenAI, OpenRouter, gateways
// and Ollama's /v1: llm.Chatter, llm.Prober, llm.Reranker and vectors, by
// openai-go.
//
// Invariant: what an endpoint can do is declared, never tried. vLLM from 0.12 on
// answers a constraint in the old form with 200 and an unconstrained reply, and
// Ollama's /v1 drops every field that it does not know, so the answer to a
// request proves nothing. A Dialect declares; Config.Capabilities overrides it.
// shared/preflight proves a declared constraint by a reply that breaks it or not.
//
// A chat to vLLM as it leaves:
//
//	POST /v1/chat/completions
//	{"model":"mneme-gate-3f2a","messages":[{"role":"system","content":"…"},{"role":"user","content":"…"}],
//	 "max_tokens":2048,"temperature":0,"top_p":1,"seed":1,"structured_outputs":{"choice":["yes","no"]}}
//
// by dialect:
//
//	             choice                          schema                        rerank  adapters  dimensions
//	vllm         structured_outputs.choice       response_format json_schema   yes     as model  no
//	vllm-guided  guided_choice (before 0.12)     response_format json_schema   yes     as model  no
//	openai       no                              response_format json_schema   no      no        yes
//	openrouter   no                              the same, and providers that  no      no        no
//	                                             cannot are passed over
//	ollama-v1    no                              response_format json_schema   no      no        no
//	generic      no                              no                            no      no        no
//
// max_tokens is sent, not max_completion_tokens, which Ollama does not read:
// generation would have no bound. Temperature, top_p and seed go with every
// request, as servers have defaults of their own. Ollama's /v1 is also told
// reasoning_effort "none": a model that can think does so by default there, and
// its thought eats the reply's tokens.
//
// A thought is taken from message.reasoning or, from servers before 2026,
// message.reasoning_content.
//
// The package does not stream, does not set a window (this form cannot), does not
// read the environment (openai-go's NewClient would), and leaves retries, keys
// and errors to shared/llm/endpoint.
package openaiapi
