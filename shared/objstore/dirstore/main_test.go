package dirstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/objstore/dirstore"
)

// childEnv makes this binary a writer in a process of its own: "what folder".
const childEnv = "MNEME_DIRSTORE_CHILD"

func TestMain(m *testing.M) {
	if what, root, ok := strings.Cut(os.Getenv(childEnv), " "); ok {
		if err := child(what, root); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// raceKeys is how many keys the processes of a race fight for.
const raceKeys = 40

func child(what, root string) error {
	ctx := context.Background()
	if what == "lock" {
		release, err := dirstore.LockDir(root)
		if err != nil {
			return err
		}
		defer release()
		fmt.Println("locked")
		_, err = fmt.Scanln() // until the parent closes or kills
		return err
	}
	s, err := dirstore.Open(root)
	if err != nil {
		return err
	}
	switch what {
	case "race": // prints the keys that it won
		for i := range raceKeys {
			text := fmt.Sprintf("by %d", os.Getpid())
			key := fmt.Sprintf("race/%03d", i)
			_, err := s.Put(ctx, key, strings.NewReader(text), int64(len(text)), objstore.Condition{Create: true})
			switch {
			case err == nil:
				fmt.Println(key)
			case !errors.Is(err, objstore.ErrPrecondition):
				return err
			}
		}
	case "write": // prints each key once it is stored; never ends
		for i := 0; ; i++ {
			key, text := fmt.Sprintf("k/%06d.jsonl", i), crashText(i)
			if _, err := s.Put(ctx, key, strings.NewReader(text), int64(len(text)), objstore.Condition{Create: true}); err != nil {
				return err
			}
			text = crashText(i + 1)
			if _, err := s.Put(ctx, "k/over", strings.NewReader(text), int64(len(text)), objstore.Condition{}); err != nil {
				return err
			}
			fmt.Println(key)
		}
	}
	return nil
}

func crashText(i int) string { return strings.Repeat(fmt.Sprintf("line %d\n", i), 2000) }
