// Package ollama speaks Ollama's own form: llm.Chatter, llm.Prober and vectors.
//
// Invariant: no prompt is cut in silence. Every chat says truncate:false and
// shift:false, so a prompt over the window is an error (fault.Invalid) and a
// reply that reaches the window's end has finish reason "length". The form under
// /v1 knows neither: there the oldest half of a prompt is dropped under a 200.
//
// A chat as it leaves:
//
//	POST /api/chat
//	{"model":"qwen2.5:3b-instruct","messages":[{"role":"system","content":"…"},{"role":"user","content":"…"}],
//	 "stream":true,"options":{"num_ctx":12288,"temperature":0,"top_p":1,"seed":1,"num_predict":2048},
//	 "truncate":false,"shift":false,"think":false,"keep_alive":"30m0s"}
//
// and its answer, a line for each token:
//
//	{"model":"…","message":{"role":"assistant","content":"<check>"},"done":false}
//	{"model":"…","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":731,"eval_count":9,…}
//
// It is streamed so that a server that dies inside a reply is noticed by its
// silence. ChatReply.Raw holds the lines joined into the one object that the
// server gives unstreamed: a reply of 2,000 tokens is 250 KB in lines.
//
// A model is loaded before it is asked: Ollama drops a load when its client
// leaves, so a load under the deadline of a call that is shorter never ends. Warm
// sends a request without messages, which nobody's cancellation stops, and Chat
// waits for one where the model was not used for a while or with another window.
//
// A choice is sent as the schema {"type":"string","enum":[…]} and its reply,
// a JSON string, is given without the quotes.
//
// Seen with Ollama 0.17.4: truncate:false answers 400 "the input length exceeds
// the context length" before any token is computed; without shift:false a window
// of 64 gave a reply of 80 tokens, its beginning dropped unseen, and with it one of 44
// and "length"; an empty text to embed is a 500.
//
// The package does not rerank (Ollama has no such call), does not choose an
// adapter by request (ollama create with ADAPTER makes a model of its own), and
// does not judge a reply.
package ollama
