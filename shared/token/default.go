//go:build !(hf && cgo)

package token

func loadDefault() (*Tokenizer, error) { return loadPure() }
