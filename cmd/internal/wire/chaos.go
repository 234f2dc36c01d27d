package wire

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mneme-ai/mneme/shared/serve"
)

// ChaosFromEnv reads MNEME_TEST_CHAOS, which makes the broker as unkind as a
// real one may be: "duplicate=3,shuffle=50ms,drop=2,seed=1". Admission is
// spared, as the order of uploads is what decides it.
// MNEME_TEST_SWEEP is the pause between sweeps, such as 200ms.
func ChaosFromEnv(cfg *UpConfig, getenv func(string) string) error {
	if v := getenv("MNEME_TEST_SWEEP"); v != "" {
		d, err := time.ParseDuration(v)
		if err != nil || d <= 0 {
			return fmt.Errorf("MNEME_TEST_SWEEP=%q: not a duration", v)
		}
		cfg.Sweep = d
	}
	v := getenv("MNEME_TEST_CHAOS")
	if v == "" {
		return nil
	}
	c := &serve.Chaos{}
	for f := range strings.SplitSeq(v, ",") {
		name, value, _ := strings.Cut(f, "=")
		var err error
		switch name {
		case "duplicate":
			c.Duplicate, err = strconv.Atoi(value)
		case "drop":
			c.Drop, err = strconv.Atoi(value)
		case "seed":
			c.Seed, err = strconv.ParseUint(value, 10, 64)
		case "shuffle":
			c.Shuffle, err = time.ParseDuration(value)
		default:
			err = fmt.Errorf("unknown setting")
		}
		if err != nil {
			return fmt.Errorf("MNEME_TEST_CHAOS: %q: %w", f, err)
		}
	}
	cfg.Chaos = c
	return nil
}
