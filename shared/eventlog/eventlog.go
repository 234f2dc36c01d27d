// Package eventlog is the append-only JSONL log over an object store.
package eventlog
