package wire_test

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/cmd/internal/wire"
	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/index/indextest"
	"github.com/mneme-ai/mneme/shared/llm/endpoint"
	"github.com/mneme-ai/mneme/shared/llm/llmtest"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/models"
)

// This file is the whole way from a model server that misbehaves to the log: the
// fault server, the real adapters, the real gate. A fault may cost time; it costs
// no memory, no chunk, no second payment, and it decides nothing.

const (
	faultWindow   = 60_000 // holds every prompt whole by functest.Coarse
	faultTemplate = 9      // tokens that the server's template adds
	stallAfter    = 300 * time.Millisecond
)

// wireForm is one way to a model: a wire and a form of reply.
type wireForm struct {
	name string
	kind models.Kind
	json bool // it holds replies to a schema
	odds bool // it gives log-probabilities
}

var wireForms = []wireForm{
	{"ollama", models.Ollama, true, true},
	{"ollama-unheld", models.Ollama, false, true}, // takes a schema and ignores it
	{"openai-tags", models.Compatible, false, false},
	{"openai-json", models.VLLM, true, true},
}

// asked is a request for a decision as the server saw it.
type asked struct {
	body               string
	rewrite            bool
	answered           bool // whole, readable and without an error: it counts
	prompt, completion int
}

// brain answers the gate's prompts rightly, in the form that each asks for: the
// gate opens where the section holds a fact, which goes behind the memory. sick
// may spoil the answer to the n-th decision, counted from 1.
type brain struct {
	servers wire.ModelServers   // that ask it
	probe   func() llmtest.Play // may spoil a look at what it serves
	ignores bool                // schemas
	odds    bool                // it was asked for log-probabilities

	sick func(n int, right llmtest.Chat) (play llmtest.Play, answered *llmtest.Chat)

	// load may spoil the n-th load after the first decision.
	load func(n int) llmtest.Play

	mu    sync.Mutex
	log   []asked
	loads int
}

var (
	faultFact    = regexp.MustCompile(`limit of queue [a-z0-9-]+ at \d+ messages`)
	faultSection = regexp.MustCompile(`(?s)<section>\n(.*)\n</section>`)
	faultMemory  = regexp.MustCompile(`(?s)<memory>\n(.*?)\n</memory>`)
)

func (b *brain) answer(c llmtest.Call) llmtest.Play {
	if b.probe != nil && c.Method == http.MethodGet {
		if p := b.probe(); p != nil {
			return p
		}
	}
	switch c.Path {
	case "/api/ps":
		return llmtest.Body(http.StatusOK, fmt.Sprintf(`{"models":[{"name":"%s:latest","context_length":%d},{"name":"other:1b","context_length":%[2]d}]}`, llmtest.Model, faultWindow))
	case "/v1/models":
		return llmtest.Body(http.StatusOK, fmt.Sprintf(`{"data":[{"id":"%s","max_model_len":%d},{"id":"large","max_model_len":%[2]d}]}`, llmtest.Model, faultWindow))
	case "/api/chat", "/v1/chat/completions":
	default:
		return nil
	}
	list, _ := c.Field("messages").([]any)
	if len(list) == 0 { // a load
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.load == nil || len(b.log) == 0 {
			return nil
		}
		b.loads++
		return b.load(b.loads)
	}
	system, user, prompt := "", "", faultTemplate
	for _, m := range list {
		m, _ := m.(map[string]any)
		text, _ := m["content"].(string)
		prompt += functest.Coarse(text)
		if m["role"] == "system" {
			system = text
		} else {
			user = text
		}
	}
	had := faultMemory.FindStringSubmatch(user)
	schema := c.Field("format") != nil || c.Field("response_format") != nil
	if had == nil { // the preflight's
		if schema && !b.ignores {
			return llmtest.Chat{Content: `{"word": "violet"}`, Finish: "stop", Prompt: prompt, Completion: 5}.Play()
		}
		return llmtest.Chat{Content: "ok", Finish: "stop", Prompt: prompt, Completion: 1}.Play()
	}
	old := strings.TrimSpace(had[1])
	if old == "none" {
		old = ""
	}
	var v gru.Verdict
	if found := faultSection.FindStringSubmatch(user); found == nil { // a shorter memory
		v = gru.Verdict{Update: true, Memory: strings.ReplaceAll(old, longWinded, "")}
	} else if f := faultFact.FindString(found[1]); f != "" {
		v = gru.Verdict{Think: "a limit", Update: true, Memory: strings.TrimSpace(old + " We keep the " + f + ".")}
	}
	shape := gru.ShapeRewrite
	if strings.Contains(system, "check") {
		if shape = gru.ShapeGate; strings.Contains(system, "update") {
			shape = gru.ShapeFull
		}
	}
	text := v.Render(shape)
	if schema && !b.ignores {
		text = v.RenderJSON(shape)
	}
	right := llmtest.Chat{Content: text, Finish: "stop", Prompt: prompt, Completion: functest.Coarse(text), Tokens: weighed(text)}

	b.mu.Lock()
	defer b.mu.Unlock()
	play, counts := right.Play(), &right
	if b.sick != nil {
		if p, answered := b.sick(len(b.log)+1, right); p != nil {
			play, counts = p, answered
		}
	}
	if want := b.odds && shape != gru.ShapeRewrite; (c.Field("logprobs") == true) != want {
		play = llmtest.Status(http.StatusBadRequest, fmt.Sprintf("logprobs are %v, want %v", c.Field("logprobs"), want))
	}
	a := asked{body: c.Path + " " + string(c.Body), rewrite: shape == gru.ShapeRewrite}
	if counts != nil {
		a.answered, a.prompt, a.completion = true, counts.Prompt, counts.Completion
	}
	b.log = append(b.log, a)
	return play
}

var faultCheck = regexp.MustCompile(`(check>|"check":")(yes|no)`)

// weighed are the tokens of a reply whose check is as likely as the next but one.
func weighed(text string) []llmtest.Token {
	at := faultCheck.FindStringSubmatchIndex(text)
	if at == nil {
		return []llmtest.Token{{Text: text}}
	}
	word, other := text[at[4]:at[5]], "no"
	if word == "no" {
		other = "yes"
	}
	check := llmtest.Token{Text: word, Logprob: math.Log(0.6)}
	check.Top = []llmtest.Token{{Text: word, Logprob: check.Logprob}, {Text: other, Logprob: math.Log(0.2)}, {Text: "maybe", Logprob: math.Log(0.1)}}
	return []llmtest.Token{{Text: text[:at[4]]}, check, {Text: text[at[5]:]}}
}

// longWinded makes a memory of more than 1,024 tokens by functest.Coarse.
var longWinded = strings.Repeat(" and so it goes on", 20)

func (b *brain) asked() []asked {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.log)
}

// faultSession is six chunks, of which the second and the fifth hold no fact.
func faultSession() []byte {
	var says []functest.Say
	for i := range 6 {
		text := "Let me look at the module first."
		if i != 1 && i != 4 {
			text = fmt.Sprintf("We decided to keep the limit of queue q-%d at %d messages.", i, 100+i)
		}
		says = append(says, functest.User(text),
			functest.Assistant("Noted. "+strings.Repeat(fmt.Sprintf("Step %d goes through the module and its callers in turn. ", i), 21)))
	}
	return functest.Session("s1", time.Date(2026, 2, 1, 9, 0, 0, 0, time.UTC), says...)
}

// faultWorld is the functions with what wire makes of a server's configuration.
func faultWorld(t *testing.T, b *brain, form wireForm, split bool, tune func(*endpoint.Config)) *functest.World {
	t.Helper()
	return faultWorldOf(t, b, form, split, 0, tune)
}

// faultWorldOf is faultWorld with gates asked side by side.
func faultWorldOf(t *testing.T, b *brain, form wireForm, split bool, parallel int, tune func(*endpoint.Config)) *functest.World {
	t.Helper()
	b.ignores, b.odds = !form.json, form.odds
	s := llmtest.New(t)
	s.Answer(b.answer)
	cfg := models.Config{
		Endpoints: []models.Endpoint{{Name: "local", URL: s.URL, Kind: form.kind, Auth: models.None, InFlight: max(2, parallel)}}, Parallel: parallel,
		Gate: &models.Use{Endpoint: "local", Model: llmtest.Model, Window: faultWindow},
	}
	if split {
		cfg.Rewrite = &models.Use{Endpoint: "local", Model: "large", Window: faultWindow}
		if form.kind == models.Ollama {
			cfg.Rewrite.Model = "other:1b"
		}
	}
	ms, err := wire.OpenModels(cfg, functest.Coarse, func(c *endpoint.Config) {
		c.FirstPause, c.MaxPause, c.MaxRetries = time.Millisecond, 20*time.Millisecond, 2
		if tune != nil {
			tune(c)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ms.Close(); err != nil {
			t.Error(err)
		}
	})
	b.servers = ms
	late := &atomic.Int64{}
	w := functest.New(t, functest.Options{
		Count: functest.Coarse, Models: ms.Models, Picks: cfg, Picked: ms.Picked, Graph: indextest.NewGraph(), Lexical: indextest.NewLexical(),
		Now: func() time.Time { return time.Now().Add(time.Duration(late.Load())) },
	})
	clocks.Store(w, late)
	w.Ask("shop", "limits")
	return w
}

// clocks says how late it is in a world, in nanoseconds.
var clocks sync.Map

func wait(w *functest.World, d time.Duration) {
	late, _ := clocks.Load(w)
	late.(*atomic.Int64).Add(int64(d))
}

// suffer delivers events as a broker does, an error's event again where its
// status asks for that, and sweeps until nothing is behind. It gives the errors.
func suffer(t *testing.T, w *functest.World, es ...ce.Event) (errs []error) {
	t.Helper()
	type delivery struct {
		fn    string
		e     ce.Event
		tries int
	}
	var queue []delivery
	send := func(es []ce.Event) {
		for _, e := range es {
			for _, name := range event.Handlers(event.Type(e.Type())) {
				if w.Functions()[name] != nil {
					queue = append(queue, delivery{name, e, 0})
				}
			}
		}
	}
	send(es)
	for sweeps := 0; ; sweeps++ {
		for len(queue) > 0 {
			d := queue[0]
			queue = queue[1:]
			out, err := w.Functions()[d.fn].Handle(t.Context(), d.e)
			if err != nil {
				errs = append(errs, err)
				if status := fault.BrokerStatus(err); d.tries < 3 && (status == http.StatusTooManyRequests || status >= 500) {
					d.tries++
					queue = append(queue, d)
				}
			}
			send(out)
			send(w.Published())
		}
		n, err := w.Gate.Behind(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		paused := w.Gate.Paused()
		if n == 0 && len(paused) == 0 {
			return errs
		}
		if len(paused) > 0 { // after a cut prompt: it goes on by itself later
			wait(w, 11*time.Minute)
		}
		if sweeps == 20 {
			t.Fatalf("still behind after %d sweeps: %v", sweeps, errs)
		}
		send([]ce.Event{event.New(event.SweepRequested, "test", event.Sweep{Tenant: functest.Tenant, At: fmt.Sprintf("2026-03-01T12:%02d:00Z", sweeps)})})
	}
}

// outcome is what a fault does to the run.
type outcome uint8

const (
	passes  outcome = iota // the adapter sends it again, the run sees nothing
	ends                   // the slice ends with an error; nothing is decided by it
	differs                // answered, unreadable: asked once more, another way
	counts                 // answered, readable
	cuts                   // answered, but of half a prompt: on record, and the run stops
)

type misbehaviour struct {
	name string
	play func(right llmtest.Chat) llmtest.Play
	// said is what the server counts for it; nil: it gave no answer.
	said    func(right llmtest.Chat) llmtest.Chat
	once    outcome
	kind    fault.Kind // of an end
	after   time.Duration
	skip    func(wireForm) bool
	stalls  bool
	jsonRaw bool // tags may hold it: it counts there
	onCheck bool // it spoils the gate's part of a reply
}

// spoilt is a reply whose content or finish reason is not right.
func spoilt(name string, spoil func(*llmtest.Chat)) misbehaviour {
	said := func(c llmtest.Chat) llmtest.Chat {
		spoil(&c)
		c.Tokens = weighed(c.Content)
		return c
	}
	return misbehaviour{name: name, once: differs, said: said, play: func(c llmtest.Chat) llmtest.Play { return said(c).Play() }}
}

func always(p llmtest.Play) func(llmtest.Chat) llmtest.Play {
	return func(llmtest.Chat) llmtest.Play { return p }
}

const proxyPage = "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"

func html(status int) llmtest.Play {
	return func(w http.ResponseWriter, _ *http.Request, _ llmtest.Call) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, proxyPage) // the client may be gone
	}
}

// nan puts a bare NaN into a whole answer, as Python's encoder writes it.
func nan(w http.ResponseWriter, _ *http.Request, c llmtest.Call) {
	body := `{"model":"small","message":{"role":"assistant","content":"<check>yes</check>"},"done":true,"done_reason":"stop","eval_count":NaN}`
	if strings.HasPrefix(c.Path, "/v1/") {
		body = `{"id":"1","choices":[{"index":0,"message":{"content":"<check>yes</check>"},"finish_reason":"stop","logprobs":{"content":[{"token":"yes","logprob":NaN}]}}]}`
	}
	llmtest.Body(http.StatusOK, body)(w, nil, c)
}

func misbehaviours() []misbehaviour {
	native := func(f wireForm) bool { return f.kind != models.Ollama }
	return []misbehaviour{
		{name: "half the prompt", once: cuts, kind: fault.Invalid,
			said: func(c llmtest.Chat) llmtest.Chat { c.Prompt /= 2; return c },
			play: func(c llmtest.Chat) llmtest.Play { c.Prompt /= 2; return c.Play() }},
		spoilt("empty content", func(c *llmtest.Chat) { c.Content = "" }),
		spoilt("reasoning only", func(c *llmtest.Chat) { c.Reasoning, c.Content, c.Finish = c.Content, "", "length" }),
		spoilt("invalid JSON", func(c *llmtest.Chat) { c.Content = strings.TrimRight(c.Content[:len(c.Content)-3], " ") }),
		spoilt("prose around nothing", func(c *llmtest.Chat) { c.Content = "Yes, that seems useful to me." }),
		func() misbehaviour {
			m := spoilt("German quotes", func(c *llmtest.Chat) {
				c.Content = strings.NewReplacer(`"yes"`, `„yes“`, `"no"`, `„no“`, `>yes<`, `>„yes“<`, `>no<`, `>„no“<`).Replace(c.Content)
			})
			m.onCheck = true
			return m
		}(),
		func() misbehaviour {
			m := spoilt("raw newlines in JSON strings", func(c *llmtest.Chat) {
				c.Content = strings.NewReplacer(`"think":"`, "\"think\":\"one\n", "<think>", "<think>one\n").Replace(c.Content)
			})
			m.jsonRaw, m.onCheck = true, true
			return m
		}(),
		spoilt("finish reason length", func(c *llmtest.Chat) { c.Finish = "length" }),
		{name: "NaN in the body", play: always(nan), once: ends, kind: fault.Unavailable},
		{name: "cut JSON body", play: always(llmtest.InvalidJSON()), once: ends, kind: fault.Unavailable},
		{name: "an empty body", play: always(llmtest.Body(http.StatusOK, "")), once: ends, kind: fault.Unavailable},
		{name: "429 without Retry-After", play: always(llmtest.TooMany("")), once: passes, kind: fault.Exhausted},
		{name: "429 with a short Retry-After", play: always(llmtest.TooMany("0.005")), once: passes, kind: fault.Exhausted, after: 5 * time.Millisecond},
		{name: "429 with a long Retry-After", play: always(llmtest.TooMany("7")), once: ends, kind: fault.Exhausted, after: 7 * time.Second},
		{name: "503", play: always(llmtest.Status(http.StatusServiceUnavailable, "upstream connect error")), once: passes, kind: fault.Unavailable},
		{name: "a full queue", play: always(llmtest.QueueFull()), once: passes, kind: fault.Exhausted},
		{name: "connection reset", play: always(llmtest.Reset()), once: passes, kind: fault.Unavailable},
		{name: "broken inside the body", play: always(llmtest.BreaksOff()), once: ends, kind: fault.Unavailable},
		{name: "ends before its last line", play: always(llmtest.EndsEarly()), once: ends, kind: fault.Unavailable},
		{name: "error inside the stream", play: always(llmtest.MidStream("llama runner process has terminated")), once: ends, kind: fault.Unavailable, skip: native},
		{name: "stall", play: always(llmtest.Stall()), once: ends, kind: fault.Unavailable, stalls: true},
		{name: "model loading", play: always(llmtest.Status(http.StatusServiceUnavailable, "Loading model")), once: passes, kind: fault.Unavailable},
		{name: "load timed out", play: always(llmtest.Status(http.StatusInternalServerError, "timed out waiting for llama-server to start")), once: passes, kind: fault.Unavailable},
		{name: "error in a 200", play: always(llmtest.ErrorIn200("an error was encountered while running the model")), once: ends, kind: fault.Unavailable},
		{name: "HTML in a 200", play: always(html(http.StatusOK)), once: ends, kind: fault.Unavailable},
		{name: "HTML in a 502", play: always(html(http.StatusBadGateway)), once: passes, kind: fault.Unavailable},
		{name: "400", play: always(llmtest.Status(http.StatusBadRequest, "unsupported parameter")), once: ends, kind: fault.Invalid},
		{name: "401", play: always(llmtest.Status(http.StatusUnauthorized, "bad key")), once: ends, kind: fault.Denied},
		{name: "404 unknown model", play: always(llmtest.UnknownModel()), once: ends, kind: fault.NotFound},
	}
}

// TestFaultServer plays each misbehaviour at each of several decisions, once and
// over and over, and then is well again.
func TestFaultServer(t *testing.T) {
	t.Parallel()
	for f, form := range wireForms {
		t.Run(form.name, func(t *testing.T) {
			t.Parallel()
			b := &brain{}
			calm := faultWorld(t, b, form, false, nil)
			if errs := suffer(t, calm, calm.Put("shop/a.jsonl", faultSession())); len(errs) > 0 {
				t.Fatal(errs)
			}
			want := calm.Hashes()
			steps := gatesOf(calm)
			version := gru.PromptVersion
			if form.json {
				version = gru.PromptVersionJSON
			}
			if len(steps) != 6 || steps[0].PromptVersion != version || len(b.asked()) != 6 || want.Log == "" || strings.Count(lastMemory(calm), "We keep") != 4 {
				t.Fatalf("%d steps, %d calls, memory %q", len(steps), len(b.asked()), lastMemory(calm))
			}
			for i, m := range misbehaviours() {
				if (i+f)%functest.Stride(4) != 0 { // under the race detector each by another form
					continue
				}
				if m.skip != nil && m.skip(form) {
					continue
				}
				if m.jsonRaw && !form.json {
					m.once = counts
				}
				// Once, over and over from the start, and from a chunk without a fact on.
				for _, p := range []struct{ times, at int }{{1, 3}, {7, 1}, {7, 5}} {
					if p.times > 1 && (m.stalls || testing.Short()) {
						continue // a stall takes its time
					}
					t.Run(fmt.Sprintf("%s/%d times from decision %d", m.name, p.times, p.at), func(t *testing.T) {
						t.Parallel()
						play(t, form, false, m, p.at, p.times, calm, want)
					})
				}
			}
		})
	}
}

// TestFaultServerSplit is TestFaultServer with a gate model and a rewrite model: the
// second call, a rewrite, is spoilt, or the fourth, a gate's.
func TestFaultServerSplit(t *testing.T) {
	t.Parallel()
	for f, form := range wireForms {
		t.Run(form.name, func(t *testing.T) {
			t.Parallel()
			b := &brain{}
			calm := faultWorld(t, b, form, true, nil)
			if errs := suffer(t, calm, calm.Put("shop/a.jsonl", faultSession())); len(errs) > 0 {
				t.Fatal(errs)
			}
			calls := b.asked()
			if len(calls) != 10 || calls[0].rewrite || !calls[1].rewrite || calls[3].rewrite || len(gatesOf(calm)) != 6 {
				t.Fatalf("%d calls for %d steps: %+v", len(calls), len(gatesOf(calm)), calls)
			}
			want := calm.Hashes()
			for i, m := range misbehaviours() {
				if (i+f)%functest.Stride(4) != 0 { // under the race detector each by another form
					continue
				}
				if m.skip != nil && m.skip(form) {
					continue
				}
				if m.jsonRaw && !form.json {
					m.once = counts
				}
				for at, times := range map[int]int{2: 1, 4: 7} {
					if m.stalls && times > 1 || testing.Short() && times > 1 {
						continue
					}
					if at == 2 && m.onCheck {
						continue // a rewrite says neither yes nor no
					}
					t.Run(fmt.Sprintf("%s/%d times from call %d", m.name, times, at), func(t *testing.T) {
						t.Parallel()
						play(t, form, true, m, at, times, calm, want)
					})
				}
			}
		})
	}
}

// TestFaultServerParallel is TestFaultServerSplit with gates asked three at a time: which
// chunk a fault strikes is anyone's guess, and nothing is lost all the same.
func TestFaultServerParallel(t *testing.T) {
	t.Parallel()
	for f, form := range wireForms {
		t.Run(form.name, func(t *testing.T) {
			t.Parallel()
			calm := faultWorldOf(t, &brain{}, form, true, 3, nil)
			if errs := suffer(t, calm, calm.Put("shop/a.jsonl", faultSession())); len(errs) > 0 {
				t.Fatal(errs)
			}
			want := calm.Hashes()
			for i, m := range misbehaviours() {
				if (i+f)%functest.Stride(2) != 0 { // under the race detector each by another form
					continue
				}
				if m.skip != nil && m.skip(form) || m.stalls {
					continue
				}
				if m.jsonRaw && !form.json {
					m.once = counts
				}
				t.Run(m.name, func(t *testing.T) {
					t.Parallel()
					playOf(t, form, true, 3, m, 2, 1, calm, want)
				})
			}
		})
	}
}

func play(t *testing.T, form wireForm, split bool, m misbehaviour, at, times int, calm *functest.World, want functest.Hashes) {
	playOf(t, form, split, 0, m, at, times, calm, want)
}

func playOf(t *testing.T, form wireForm, split bool, parallel int, m misbehaviour, at, times int, calm *functest.World, want functest.Hashes) {
	b := &brain{}
	b.sick = func(n int, right llmtest.Chat) (llmtest.Play, *llmtest.Chat) {
		if n < at || n >= at+times {
			return nil, nil
		}
		if m.said == nil {
			return m.play(right), nil
		}
		said := m.said(right)
		return m.play(right), &said
	}
	w := faultWorldOf(t, b, form, split, parallel, func(c *endpoint.Config) {
		if m.stalls {
			c.Stall = stallAfter
		}
	})
	errs := suffer(t, w, w.Put("shop/a.jsonl", faultSession()))
	judge(t, w, calm, b, m.once == cuts || m.once == differs && times > 1)
	if m.said == nil {
		failed := 0
		for _, a := range b.asked() {
			if !a.answered {
				failed++
			}
		}
		if failed != times {
			t.Errorf("%d calls got no answer, %d faults", failed, times)
		}
	}

	transient := m.said == nil || m.once == counts || m.once == differs && times == 1
	if got := w.Hashes(); transient && (got.Log != want.Log || got.Index != want.Index) {
		t.Errorf("hashes %v, of a calm run %v", got, want)
	}
	// A fault that the adapter does not stand comes back as an error of its kind.
	stood := m.once == passes && times <= 2 || m.once == differs || m.once == counts
	if stood != (len(errs) == 0) {
		t.Errorf("errors %v", errs)
	}
	for _, err := range errs {
		if !fault.Is(err, m.kind) || fault.RetryAfterOf(err) != m.after {
			t.Errorf("%v: kind %v after %v, want %v after %v", err, fault.KindOf(err), fault.RetryAfterOf(err), m.kind, m.after)
		}
		if strings.Contains(err.Error()+fault.HintOf(err), "nginx") || strings.Contains(err.Error(), "queue q-") {
			t.Errorf("an error repeats what a server or a prompt says: %v", err)
		}
	}
}

// TestContextLength: a section that the server takes for longer than its window, as a
// gate's or a rewrite's, is asked about in pieces; all of it is, and nothing is lost.
func TestContextLength(t *testing.T) {
	t.Parallel()
	tooLong := llmtest.Status(http.StatusBadRequest, "This model's maximum context length is 4096 tokens. However, you requested 9000 tokens.")
	for _, form := range wireForms {
		for _, split := range []bool{false, true} {
			for _, at := range []int{1, 2, 3, 4} {
				t.Run(fmt.Sprintf("%s/two models %v/call %d", form.name, split, at), func(t *testing.T) {
					t.Parallel()
					b := &brain{}
					b.sick = func(n int, _ llmtest.Chat) (llmtest.Play, *llmtest.Chat) {
						if n == at {
							return tooLong, nil
						}
						return nil, nil
					}
					w := faultWorld(t, b, form, split, nil)
					if errs := suffer(t, w, w.Put("shop/a.jsonl", faultSession())); len(errs) > 0 {
						t.Fatal(errs)
					}
					gates := gatesOf(w)
					next, chunk := 0, 0
					for _, g := range gates {
						if g.I != chunk || g.Start != next || !g.FormatOK || g.Pending {
							t.Errorf("step %d reads [%d,%d) of chunk %d, want chunk %d from %d: %+v", g.T, g.Start, g.End, g.I, chunk, next, g)
						}
						if next = g.End; !g.More {
							next, chunk = 0, chunk+1
						}
					}
					if len(gates) < 7 || chunk != 6 || strings.Count(lastMemory(w), "We keep") != 4 {
						t.Errorf("%d steps over %d chunks, memory %q", len(gates), chunk, lastMemory(w))
					}
					w.Hashes()
				})
			}
		}
	}
}

// TestAnsweredOnce: a step of several calls is not paid for twice. What was
// answered before a later call of the step failed, or before the append was lost,
// is known when the event comes again.
func TestAnsweredOnce(t *testing.T) {
	t.Parallel()
	down := llmtest.Status(http.StatusServiceUnavailable, "upstream connect error")
	for _, form := range wireForms {
		calm := map[bool]*functest.World{}
		for _, split := range []bool{false, true} {
			calm[split] = faultWorld(t, &brain{}, form, split, nil)
			if errs := suffer(t, calm[split], calm[split].Put("shop/a.jsonl", faultSession())); len(errs) > 0 {
				t.Fatal(errs)
			}
		}
		for name, tc := range map[string]struct {
			split bool
			spoil func(*llmtest.Chat) // the third decision
			lost  string              // the first write of a key that holds this is lost
			from  int                 // the first decision without an answer
			fails int                 // how many there are
		}{
			"unreadable, then down":         {spoil: func(c *llmtest.Chat) { c.Content = "Yes." }, from: 4, fails: 7},
			"open, then no rewrite":         {split: true, from: 5, fails: 7},
			"too long, then no shorter one": {spoil: func(c *llmtest.Chat) { c.Content = strings.Replace(c.Content, "messages.", "messages."+longWinded, 1) }, from: 4, fails: 7},
			"the append is lost":            {lost: "/limits@"},
			"a reply's blob is lost":        {lost: "blob/"},
		} {
			t.Run(form.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				b := &brain{}
				b.sick = func(n int, right llmtest.Chat) (llmtest.Play, *llmtest.Chat) {
					switch {
					case tc.spoil != nil && n == 3:
						tc.spoil(&right)
						right.Tokens = weighed(right.Content)
						return right.Play(), &right
					case n >= tc.from && n < tc.from+tc.fails:
						return down, nil
					}
					return nil, nil
				}
				w := faultWorld(t, b, form, tc.split, nil)
				lost := false
				es := []ce.Event{w.Put("shop/a.jsonl", faultSession())}
				if tc.lost != "" {
					// The part is admitted before the store fails.
					out, err := w.Learn.Handle(t.Context(), es[0])
					if err != nil {
						t.Fatal(err)
					}
					es = out
					var mu sync.Mutex
					w.Stores.Fail(func(c functest.Call) error {
						mu.Lock()
						defer mu.Unlock()
						if !lost && c.Write() && strings.Contains(c.Key, tc.lost) && !strings.Contains(c.Key, "lease") {
							lost = true
							return fault.New(fault.Unavailable, "the store is down")
						}
						return nil
					}, nil)
				}
				errs := suffer(t, w, es...)
				if len(errs) == 0 || lost != (tc.lost != "") {
					t.Fatalf("nothing failed: %v, append lost: %v", errs, lost)
				}
				judge(t, w, calm[tc.split], b, false)
				if got, want := w.Hashes(), calm[tc.split].Hashes(); got.Log != want.Log {
					t.Errorf("log hash %s, of a calm run %s", got.Log, want.Log)
				}
			})
		}
	}
}

// TestFirstLook: a server that is down when it is first looked at is asked again by
// the broker, once the look does not count any more; what only a person can cure
// goes to the dead letters. Nothing is decided meanwhile.
func TestFirstLook(t *testing.T) {
	t.Parallel()
	for _, form := range wireForms {
		calm := faultWorld(t, &brain{}, form, false, nil)
		if errs := suffer(t, calm, calm.Put("shop/a.jsonl", faultSession())); len(errs) > 0 {
			t.Fatal(errs)
		}
		for name, tc := range map[string]struct {
			play  llmtest.Play
			kind  fault.Kind
			after time.Duration
		}{
			"503":              {llmtest.Status(http.StatusServiceUnavailable, "upstream connect error"), fault.Unavailable, wire.LookAgain},
			"429 for long":     {llmtest.TooMany("100"), fault.Exhausted, 100 * time.Second},
			"connection reset": {llmtest.Reset(), fault.Unavailable, wire.LookAgain},
			"HTML in a 200":    {html(http.StatusOK), fault.Unavailable, wire.LookAgain},
			"401":              {llmtest.Status(http.StatusUnauthorized, "bad key"), fault.Invalid, 0},
			"no such model":    {llmtest.Body(http.StatusOK, `{"models":[],"data":[]}`), fault.Invalid, 0},
		} {
			t.Run(form.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				var well atomic.Bool
				b := &brain{probe: func() llmtest.Play {
					if well.Load() {
						return nil
					}
					return tc.play
				}}
				w := faultWorld(t, b, form, false, nil)
				es, err := w.Learn.Handle(t.Context(), w.Put("shop/a.jsonl", faultSession()))
				if err != nil {
					t.Fatal(err)
				}
				if es, err = w.Gate.Handle(t.Context(), es[0]); err != nil || len(es) != 1 {
					t.Fatalf("%v %v", es, err)
				}
				for range 2 { // the second sees what the first found
					if _, err := w.Gate.Handle(t.Context(), es[0]); !fault.Is(err, tc.kind) || fault.RetryAfterOf(err) != tc.after {
						t.Errorf("%v: kind %s after %s", err, fault.KindOf(err), fault.RetryAfterOf(err))
					}
				}
				if n := len(w.Streams("shop")); n != 0 || len(b.asked()) != 0 {
					t.Errorf("%d streams, %d calls", n, len(b.asked()))
				}
				well.Store(true)
				b.servers.Age(wire.LookAgain)
				if errs := suffer(t, w, es...); len(errs) > 0 {
					t.Error(errs)
				}
				judge(t, w, calm, b, false)
			})
		}
	}
}

// TestDoubt: after a call that was refused for good, or a prompt that was cut, the
// server is looked at again before the next one, and what is found stops the run.
func TestDoubt(t *testing.T) {
	t.Parallel()
	for _, form := range wireForms {
		calm := faultWorld(t, &brain{}, form, false, nil)
		if errs := suffer(t, calm, calm.Put("shop/a.jsonl", faultSession())); len(errs) > 0 {
			t.Fatal(errs)
		}
		for name, tc := range map[string]struct {
			play func(llmtest.Chat) llmtest.Play
			cut  bool
		}{
			"the model is removed": {always(llmtest.UnknownModel()), false},
			"the key is revoked":   {always(llmtest.Status(http.StatusUnauthorized, "bad key")), false},
			"the prompt is cut":    {func(c llmtest.Chat) llmtest.Play { c.Prompt /= 2; return c.Play() }, true},
		} {
			t.Run(form.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				var gone atomic.Bool
				b := &brain{probe: func() llmtest.Play {
					if gone.Load() {
						return llmtest.Body(http.StatusOK, `{"models":[],"data":[]}`)
					}
					return nil
				}}
				b.sick = func(n int, right llmtest.Chat) (llmtest.Play, *llmtest.Chat) {
					if n != 3 {
						return nil, nil
					}
					gone.Store(true)
					if said := right; tc.cut {
						said.Prompt /= 2
						return tc.play(right), &said
					}
					return tc.play(right), nil
				}
				w := faultWorld(t, b, form, false, nil)
				es, err := w.Learn.Handle(t.Context(), w.Put("shop/a.jsonl", faultSession()))
				if err != nil {
					t.Fatal(err)
				}
				if es, err = w.Gate.Handle(t.Context(), es[0]); err != nil || len(es) != 1 {
					t.Fatalf("%v %v", es, err)
				}
				if _, err = w.Gate.Handle(t.Context(), es[0]); err == nil {
					t.Fatal("a refused call goes unseen")
				}
				if tc.cut {
					wait(w, 11*time.Minute) // the project pauses
				}
				b.servers.Age(wire.LookAgain) // far from the time that a good look counts
				_, err = w.Gate.Handle(t.Context(), es[0])
				if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "not there") || len(b.asked()) != 3 {
					t.Errorf("%d calls, %v", len(b.asked()), err)
				}
				gone.Store(false)
				b.servers.Age(wire.LookAgain)
				if errs := suffer(t, w, es...); len(errs) > 0 {
					t.Error(errs)
				}
				judge(t, w, calm, b, tc.cut)
			})
		}
	}
}

// TestLoadFaults: a native server that was started anew in the middle of a run, and
// cannot load the model at first.
func TestLoadFaults(t *testing.T) {
	t.Parallel()
	form := wireForms[0]
	calm := faultWorld(t, &brain{}, form, false, nil)
	if errs := suffer(t, calm, calm.Put("shop/a.jsonl", faultSession())); len(errs) > 0 {
		t.Fatal(errs)
	}
	for name, tc := range map[string]struct {
		play llmtest.Play
		kind fault.Kind
	}{
		"503":                  {llmtest.Status(http.StatusServiceUnavailable, "Loading model"), fault.Unavailable},
		"load timed out":       {llmtest.Status(http.StatusInternalServerError, "timed out waiting for llama-server to start"), fault.Unavailable},
		"too little memory":    {llmtest.Status(http.StatusInternalServerError, "model requires more system memory (9.1 GiB) than is available"), fault.Unavailable},
		"a full queue":         {llmtest.QueueFull(), fault.Exhausted},
		"error in a 200":       {llmtest.ErrorIn200("llama runner process has terminated"), fault.Unavailable},
		"HTML in a 200":        {html(http.StatusOK), fault.Unavailable},
		"connection reset":     {llmtest.Reset(), fault.Unavailable},
		"broken inside":        {llmtest.BreaksOff(), fault.Unavailable},
		"the model is removed": {llmtest.UnknownModel(), fault.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const down, broken = 3, 7 // calls that end the slice; loads that fail
			b := &brain{}
			b.sick = func(n int, _ llmtest.Chat) (llmtest.Play, *llmtest.Chat) {
				if n >= 3 && n < 3+down {
					return llmtest.Status(http.StatusServiceUnavailable, "upstream connect error"), nil
				}
				return nil, nil
			}
			b.load = func(n int) llmtest.Play {
				if n > broken {
					return nil
				}
				return tc.play
			}
			w := faultWorld(t, b, form, false, nil)
			errs := suffer(t, w, w.Put("shop/a.jsonl", faultSession()))
			if len(errs) < 2 || !fault.Is(errs[0], fault.Unavailable) {
				t.Fatalf("errors %v", errs)
			}
			for _, err := range errs[1:] {
				if !fault.Is(err, tc.kind) {
					t.Errorf("%v: kind %s, want %s", err, fault.KindOf(err), tc.kind)
				}
			}
			judge(t, w, calm, b, false)
			if got, want := w.Hashes(), calm.Hashes(); got.Log != want.Log || got.Index != want.Index {
				t.Errorf("hashes %v, of a calm run %v", got, want)
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			if b.loads != broken+1 || len(b.log) != 6+down {
				t.Errorf("%d loads and %d calls", b.loads, len(b.log))
			}
		})
	}
}

// judge holds a log against the server's own record of what it was asked.
func judge(t *testing.T, w, calm *functest.World, b *brain, mayPend bool) {
	t.Helper()
	recs := w.Records("shop", memory.StreamName("limits", functest.Wording("limits")))
	gates := functest.Of[*memory.Gate](recs)

	// Every chunk has one first decision, and it is the model's or none.
	want := gatesOf(calm)
	if len(gates) != len(want) {
		t.Fatalf("%d decisions for %d chunks", len(gates), len(want))
	}
	evidence := map[int]int{}
	for _, e := range functest.Of[*memory.Evidence](recs) {
		evidence[e.T]++
	}
	facts := 0
	for i, g := range gates {
		c := want[i]
		if g.I != c.I || g.Chunk != c.Chunk || g.Start != c.Start || g.End != c.End || g.RegateOf != 0 {
			t.Errorf("step %d is about chunk %d [%d,%d)", g.T, g.I, g.Start, g.End)
		}
		if !g.FormatOK || g.Pending {
			if !mayPend || g.Score != nil || g.FormatOK || !g.Pending || g.Update || g.Exit || g.MemorySHA != g.MemoryBeforeSHA || evidence[g.T] != 0 {
				t.Errorf("a fault decided: %+v, %d pieces of evidence", g, evidence[g.T])
			}
			continue
		}
		// What the model gave its word, 0.6 against 0.2; nothing of a server that does
		// not say.
		if want := map[bool]float64{true: 0.75, false: 0.25}[g.Update]; (g.Score != nil) != b.odds || b.odds && math.Abs(*g.Score-want) > 1e-9 {
			t.Errorf("step %d has the score %v", g.T, g.Score)
		}
		if g.Update != c.Update || g.ReasonCode != c.ReasonCode || g.Exit != c.Exit || g.Update != (evidence[g.T] > 0) {
			t.Errorf("step %d decides otherwise than a calm run: %+v", g.T, g)
		}
		if g.Update {
			facts++
		}
	}

	// No memory is lost: each holds every fact of the one before.
	var before []string
	for _, m := range functest.Of[*memory.Memory](recs) {
		now := faultFact.FindAllString(m.Text, -1)
		for _, f := range before {
			if !slices.Contains(now, f) {
				t.Errorf("the memory of step %d lost %q", m.T, f)
			}
		}
		before = now
	}
	if len(before) != facts {
		t.Errorf("%d facts in the memory %q, %d were kept", len(before), lastMemory(w), facts)
	}

	// What was answered is never asked again as it was; what was not may be, and is.
	calls := b.asked()
	paid := map[string]bool{}
	var prompt, completion, answered int
	for i, c := range calls {
		if paid[c.body] {
			t.Errorf("call %d was answered before: %.200s", i+1, c.body)
		}
		if c.answered {
			paid[c.body] = true
			answered++
			prompt += c.prompt
			completion += c.completion
		} else if i+1 == len(calls) || calls[i+1].body != c.body && (gates[0].Parallel == 0 || !slices.ContainsFunc(calls[i+1:], func(later asked) bool { return later.body == c.body })) {
			t.Errorf("call %d got no answer and was not sent again as it was", i+1)
		}
	}

	// The log's ledger is the server's.
	for _, g := range gates {
		prompt -= g.PromptTokens
		completion -= g.CompletionTokens
	}
	if prompt != 0 || completion != 0 {
		t.Errorf("of %d answered calls the log lacks %d prompt and %d completion tokens", answered, prompt, completion)
	}
}

func gatesOf(w *functest.World) []*memory.Gate {
	return functest.Of[*memory.Gate](w.Records("shop", memory.StreamName("limits", functest.Wording("limits"))))
}

func lastMemory(w *functest.World) string {
	ms := functest.Of[*memory.Memory](w.Records("shop", memory.StreamName("limits", functest.Wording("limits"))))
	if len(ms) == 0 {
		return ""
	}
	return ms[len(ms)-1].Text
}
