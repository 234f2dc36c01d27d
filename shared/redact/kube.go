package redact

import (
	"encoding/base64"
	"strings"
)

// kubeLook is how far around `data:` the line `kind: Secret` is looked for, in
// bytes: kubectl prints keys in order, so that data stands before kind.
const kubeLook = 2048

// kubeSecret says that `data` or `stringData` at i belongs to a Secret.
func kubeSecret(text string, i int) bool {
	around := text[max(0, i-kubeLook):min(len(text), i+kubeLook)]
	for from := 0; ; {
		k := strings.Index(around[from:], "kind")
		if k < 0 {
			return false
		}
		from += k + len("kind")
		rest := strings.TrimLeft(around[from:min(len(around), from+16)], `"\': `)
		if strings.HasPrefix(rest, "Secret") && !strings.HasPrefix(rest, "SecretS") && !strings.HasPrefix(rest, "SecretP") && !strings.HasPrefix(rest, "SecretL") {
			return true
		}
	}
}

// kubeData reads the values of a Secret's data, whose name ends at the colon i.
func kubeData(text string, i int) []found {
	var out []found
	k := i + 1
	for n := 0; n < maxKubeKeys; n++ {
		// the next name
		for k < len(text) && strings.IndexByte(" \t\r\n\"',{\\+", text[k]) >= 0 {
			if text[k] == '\\' && k+1 < len(text) && text[k+1] == 'n' {
				k++
			}
			k++
		}
		s := k
		for k < len(text) && k-s < maxName && isName(text[k]) {
			k++
		}
		e := k
		for k < len(text) && (text[k] == '"' || text[k] == '\'' || text[k] == '\\') {
			k++
		}
		if e == s || k >= len(text) || text[k] != ':' {
			return out
		}
		switch text[s:e] {
		case "kind", "metadata", "type", "apiVersion", "immutable", "data", "stringData":
			return out
		}
		v := readValue(text, k+1)
		if !v.ok || v.end <= k {
			return out
		}
		if len(v.clean) >= 4 && !isReference(v.clean) && !strings.ContainsAny(v.clean, " \n") && !containsMark(text[v.start:v.end]) {
			out = append(out, found{start: v.start, end: v.end, kind: "kubernetes_secret", secret: v.secretOf()})
		}
		k = v.end
	}
	return out
}

// maxKubeKeys bounds the values of one Secret.
const maxKubeKeys = 64

func decode64(v string) (string, error) {
	enc := base64.RawStdEncoding
	if strings.ContainsAny(v, "-_") {
		enc = base64.RawURLEncoding
	}
	b, err := enc.DecodeString(strings.TrimRight(v, "="))
	return string(b), err
}
