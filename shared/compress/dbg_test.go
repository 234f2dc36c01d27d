package compress

import (
	"fmt"
	"os"
	"testing"
)

func TestDbg(t *testing.T) {
	b, _ := os.ReadFile(os.Getenv("F"))
	fmt.Println(Compress(string(b), Options{Path: os.Getenv("F"), Code: true, Query: os.Getenv("Q")}).Text)
}
