package functest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Say is one utterance of a session.
type Say struct {
	Role string // user | assistant
	Text string
	At   time.Time // the session's clock when zero
	Cwd  string    // the session's when empty
}

// User and Assistant are utterances at the session's own time.
func User(text string) Say      { return Say{Role: "user", Text: text} }
func Assistant(text string) Say { return Say{Role: "assistant", Text: text} }

// Session is a Claude Code session: a minute an utterance. The same arguments
// give the same bytes, and more says only add lines.
func Session(id string, start time.Time, says ...Say) []byte {
	var b bytes.Buffer
	for i, s := range says {
		uuid := fmt.Sprintf("%s-%06d", id, i)
		at := s.At
		if at.IsZero() {
			at = start.Add(time.Duration(i) * time.Minute)
		}
		cwd := s.Cwd
		if cwd == "" {
			cwd = "/home/ada/shop"
		}
		msg := map[string]any{"role": s.Role, "content": s.Text}
		if s.Role == "assistant" {
			msg = map[string]any{"id": "msg_" + uuid, "role": s.Role, "type": "message", "model": "m", "content": []any{map[string]any{"type": "text", "text": s.Text}}}
		}
		line, err := json.Marshal(map[string]any{
			"type": s.Role, "uuid": uuid, "parentUuid": nil, "sessionId": id, "timestamp": at.UTC().Format("2006-01-02T15:04:05.000Z"),
			"cwd": cwd, "version": "2.1.42", "gitBranch": "main", "isSidechain": false, "userType": "external", "message": msg,
		})
		if err != nil {
			panic(err) // strings and numbers only
		}
		b.Write(append(line, '\n'))
	}
	return b.Bytes()
}

// Decision is a short session that holds one decision to keep and some talk
// that is none.
func Decision(id string, start time.Time, decision string) []byte {
	return Session(id, start,
		User("Let me look at the file first."), Assistant("Reading the module and its callers."),
		User(decision), Assistant("Understood, noted."),
		User("Thanks, looks good."), Assistant("Running the tests now."),
	)
}

// Long is a session of n chunks or a few more, each with a decision of its own.
func Long(id string, start time.Time, n int) []byte { return chunks(id, start, n, 340) }

// Coarse counts twenty tokens a word: with it a chunk is 250 words, and a test
// that needs many chunks many times stays quick.
func Coarse(text string) int { return 20 * len(strings.Fields(text)) }

// Brief is Long where tokens are counted by Coarse.
func Brief(id string, start time.Time, n int) []byte { return chunks(id, start, n, 21) }

// chunks fills each chunk with a sentence of eleven words, repeated.
func chunks(id string, start time.Time, n, repeat int) []byte {
	var says []Say
	for i := range n {
		says = append(says,
			User(fmt.Sprintf("We decided to keep the limit of queue %s-%d at %d messages, because the consumer falls behind after that.", id, i, 100+i)),
			Assistant("Noted. "+strings.Repeat(fmt.Sprintf("Step %d goes through the module and its callers in turn. ", i), repeat)),
		)
	}
	return Session(id, start, says...)
}
