package originals

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/objstore"
)

// Config is what the store is given.
type Config struct {
	Bucket *objstore.Bucket // of the log
	Tenant string
	// Redactor gives the tenant's redaction rules as they stand, and their version.
	Redactor func(ctx context.Context) (func(string) string, string, error)

	Off        bool          // MEM_CCR_ENABLED=off: nothing is stored, and no mark names an original
	MaxEntries int           // MEM_CCR_MAX_ENTRIES, of a project; 1,000
	MaxTotal   int64         // packed bytes of a project; 256 MiB
	TTL        time.Duration // MEM_CCR_TTL_SECS, since the last touch; 1 h
	LocalBytes int           // of the LRU in front; 32 MiB
	Now        func() time.Time
}

// FromEnv reads the switches of brief U8 into c. All wrong ones are named at once.
func (c *Config) FromEnv(getenv func(string) string) error {
	var bad []string
	switch v := strings.ToLower(getenv("MEM_CCR_ENABLED")); v {
	case "", "on", "true", "1", "yes":
	case "off", "false", "0", "no":
		c.Off = true
	default:
		bad = append(bad, "MEM_CCR_ENABLED: on or off")
	}
	number := func(name string, most int) int {
		v := getenv(name)
		if v == "" {
			return 0
		}
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 || n > most {
			bad = append(bad, name+": a number from 1 to "+strconv.Itoa(most))
		}
		return n
	}
	c.MaxEntries = number("MEM_CCR_MAX_ENTRIES", 1_000_000)
	c.TTL = time.Duration(number("MEM_CCR_TTL_SECS", 366*24*3600)) * time.Second
	if len(bad) > 0 {
		return fault.New(fault.Invalid, "%s", strings.Join(bad, "; "))
	}
	return nil
}
