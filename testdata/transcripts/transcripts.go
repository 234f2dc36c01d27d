// Package transcripts holds the sample sessions that `mem up --sample` uploads:
// invented, realistic, with decisions, a root cause and noise.
package transcripts

import "embed"

// Files holds the sessions by name.
//
//go:embed *.jsonl
var Files embed.FS

// Sample is one session and the project it belongs to.
type Sample struct{ Project, Name string }

// Samples are uploaded in this order.
var Samples = []Sample{
	{"shop", "claude-code-shop-retries.jsonl"},
	{"shop", "pi-shop-money.jsonl"},
}

// Question is one that they answer.
const Question = "What did we decide about retries and why?"
