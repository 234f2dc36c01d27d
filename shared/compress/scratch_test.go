package compress

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

var aside = map[string]bool{"kubernetes": true, "terraform": true, "npm": true, "jest": true, "gradle": true, "docker": true, "yarn": true, "java": true, "vitest": true}

func TestScratch(t *testing.T) {
	var rows []struct {
		File, Tool string
		Root       string `json:"root_text"`
		Detail     *string
	}
	b, _ := os.ReadFile("/work/shared/logs/manifest.json")
	json.Unmarshal(b, &rows)
	want := os.Getenv("ASIDE") != ""
	n, lost, in, out, texts := 0, 0, 0, 0, 0
	for _, r := range rows {
		if aside[r.Tool] != want {
			continue
		}
		b, _ := os.ReadFile("/work/shared/logs/" + r.File)
		name := r.File
		if os.Getenv("NONAME") != "" {
			name = ""
		}
		res := Compress(string(b), Options{Path: name})
		n++
		if res.Kind != Log {
			texts++
			if os.Getenv("V") != "" {
				fmt.Println("KIND", res.Kind, r.File, len(b))
			}
		}
		if res.Reason == ReasonUnstable {
			fmt.Println("UNSTABLE", r.File)
		}
		if len(b) >= 2000 && len(b) <= 8192 {
			in += len(b)
			out += len(res.Text)
			if os.Getenv("V") != "" {
				fmt.Println(r.File, len(b), len(res.Text), res.Reason)
			}
		}
		if !strings.Contains(res.Text, r.Root) && strings.Contains(string(b), r.Root) {
			lost++
			if !want {
				fmt.Println("LOST", r.File, r.Root)
			}
		}
	}
	fmt.Printf("logs %d lost %d notlog %d 2-8KB %d -> %d %.2f\n", n, lost, texts, in, out, float64(out)/float64(in))
	var ins []struct {
		File, Kind string
		Must       []string `json:"must_keep"`
		Max        *float64 `json:"max_out_ratio"`
	}
	b, _ = os.ReadFile("/work/shared/optimizer/inputs.json")
	json.Unmarshal(b, &ins)
	for _, r := range ins {
		b, _ := os.ReadFile("/work/shared/optimizer/" + r.File)
		s := time.Now()
		res := Compress(string(b), Options{Path: r.File, Code: r.Kind == "code"})
		d := time.Since(s)
		bad := ""
		for _, m := range r.Must {
			if !strings.Contains(res.Text, m) && len(b) > 0 {
				bad += " LOST:" + m
			}
		}
		ratio := float64(len(res.Text)) / float64(max(1, len(b)))
		if r.Max != nil && ratio > *r.Max {
			bad += fmt.Sprintf(" OVER %.2f", *r.Max)
		}
		fmt.Printf("%-36s %-6s %-6v %8d %7d %.3f %s%s %.0fMB/s\n", r.File, r.Kind, res.Kind, len(b), len(res.Text), ratio, res.Reason, bad, float64(len(b))/1e6/d.Seconds())
	}
}
