// Package wire puts Mneme together: it picks the adapters, reads the
// environment, and builds both shapes, `mem up` (six functions in one process)
// and `fn NAME` (one function).
//
// Invariant: it is the only place that reads the environment and the only one
// that knows which adapter stands behind a port. It decides nothing else.
package wire

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	ce "github.com/cloudevents/sdk-go/v2/event"

	"github.com/mneme-ai/mneme/functions/embed"
	"github.com/mneme-ai/mneme/functions/gate"
	"github.com/mneme-ai/mneme/functions/learn"
	"github.com/mneme-ai/mneme/functions/project"
	"github.com/mneme-ai/mneme/functions/query"
	"github.com/mneme-ai/mneme/functions/sig"
	"github.com/mneme-ai/mneme/shared/catalog"
	"github.com/mneme-ai/mneme/shared/compress"
	"github.com/mneme-ai/mneme/shared/cost"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/forget"
	"github.com/mneme-ai/mneme/shared/gru/extractive"
	"github.com/mneme-ai/mneme/shared/gru/extractpolicy"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/index/bleveindex"
	"github.com/mneme-ai/mneme/shared/index/osindex"
	"github.com/mneme-ai/mneme/shared/index/pgindex"
	"github.com/mneme-ai/mneme/shared/index/sqliteindex"
	"github.com/mneme-ai/mneme/shared/llm/embedding"
	"github.com/mneme-ai/mneme/shared/llm/static"
	"github.com/mneme-ai/mneme/shared/lookup"
	"github.com/mneme-ai/mneme/shared/lookup/pglookup"
	"github.com/mneme-ai/mneme/shared/lookup/sqlitelookup"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/models"
	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/originals"
	"github.com/mneme-ai/mneme/shared/rank"
	"github.com/mneme-ai/mneme/shared/redact"
	"github.com/mneme-ai/mneme/shared/serve"
	"github.com/mneme-ai/mneme/shared/token"
	"github.com/mneme-ai/mneme/shared/transcript"
)

// Bucket names (fixed: scripts rely on them).
const (
	InboxBucket = "transcripts"
	LogBucket   = "mneme"
)

// Stores are the two buckets of a tenant and its log.
type Stores struct {
	Inbox *objstore.Bucket
	Log   *objstore.Bucket
}

// parts is everything the functions share in one process.
type parts struct {
	tenant  string
	key     []byte
	stores  Stores
	log     *eventlog.Log
	catalog *catalog.Catalog
	count   func(string) int
	spaces  *spaces       // where vectors stand, and what fills them
	models  *modelServers // nil: no model server is configured
	live    liveModels    // the gate's, which follow the models file
	picks   models.Config // what a request may pick from
	graph   index.Graph
	lexical index.Lexical
	lessons lookup.Index // nil: this process looks no lesson up
	temp    string       // where exports grow; "" is the system's
	logger  *slog.Logger
	publish func(ctx context.Context, es ...ce.Event) error
	calls   func() (policy, model int64)
	caller  func(*http.Request) string                         // query.Config.Caller
	held    func(project, stream string) (reason, hint string) // learn.Config.Held
	cleaned forget.Projections                                 // learn.Config.Projections
	stop    context.CancelCauseFunc                            // ends the process with an error
	getenv  func(string) string                                // of the store of originals; nil: its defaults
}

// counter loads the tokenizer; a changed vocabulary stops the program here.
func counter() (func(string) int, error) {
	t, err := token.Default()
	if err != nil {
		return nil, err
	}
	return t.Count, nil
}

// functions are the built ones, by name.
type functions struct {
	learn   *learn.Function
	gate    *gate.Function
	embed   *embed.Function
	project *project.Function
	query   *query.Function
	sig     *sig.Function
}

func (p *parts) newLearn() (*learn.Function, error) {
	return learn.New(learn.Config{Tenant: p.tenant, TenantKey: p.key, Inbox: p.stores.Inbox, Log: p.log, Catalog: p.catalog, Count: p.count, Models: p.picks, Logger: p.logger, Publish: p.publish, Held: p.held,
		Store: p.stores.Log, Projections: p.cleaned})
}

func (p *parts) newGate() (*gate.Function, error) {
	c := gate.Config{Tenant: p.tenant, Log: p.log, Catalog: p.catalog, Policy: extractpolicy.New(extractive.Options{}), Count: p.count, Redact: p.redactor(), Logger: p.logger, Publish: p.publish}
	if p.live.cur != nil || p.live.read != nil {
		p.live.into(&c)
	}
	if p.models != nil {
		c.Sends = p.models.sends()
	}
	return gate.New(c)
}

// redactor is the present rule set as a function. Only whether it changes a
// text counts here, so that any key will do where the tenant's is not given.
func (p *parts) redactor() func(string) string {
	key := p.key
	if len(key) == 0 {
		key = []byte("marks of this check are never stored")
	}
	r := redact.New(key)
	return func(s string) string {
		out, _ := r.Redact(s)
		return out
	}
}

// newestRules are the built-in redaction rules and the tenant's own, as they stand. Without
// the tenant's key a mark's fingerprint is not that of the same secret's other marks.
func (p *parts) newestRules(ctx context.Context) (func(string) string, string, error) {
	own, err := p.catalog.Patterns(ctx)
	if err != nil {
		return nil, "", err
	}
	key := p.key
	if len(key) == 0 {
		key = []byte("marks without the key of the tenant")
	}
	r := redact.NewWith(key, redact.Options{Patterns: own})
	return func(s string) string {
		out, _ := r.Redact(s)
		return out
	}, r.Version(), nil
}

func (p *parts) newEmbed() (*embed.Function, error) {
	c := embed.Config{Tenant: p.tenant, Log: p.log, Spaces: p.spaces, Free: p.spaces.free, Price: p.spaces.price, Publish: p.publish, Logger: p.logger}
	c.Budget = func(project string) cost.Budget {
		if m := p.spaces.servers(); m != nil {
			return m.budget(project)
		}
		return cost.Budget{}
	}
	c.Tokens = func(text string) int { return int(math.Ceil(float64(p.count(text)) * embedding.MostFactor)) }
	return embed.New(c)
}

func (p *parts) newProject() (*project.Function, error) {
	return project.New(project.Config{
		Tenant: p.tenant, Log: p.log, Graph: p.graph, Lexical: p.lexical, Spaces: p.spaces, Calls: p.calls, Logger: p.logger,
		Catalog: p.catalog, Bucket: p.stores.Log, Redactor: p.newestRules, TempDir: p.temp, TenantKey: p.key,
		Lessons: p.lessons,
	})
}

func (p *parts) newQuery() (*query.Function, error) {
	c, err := p.reranked(query.Config{Tenant: p.tenant, Log: p.log, Catalog: p.catalog, Graph: p.graph, Lexical: p.lexical, Serving: p.spaces.Serving, FloorIDF: rank.Defaults().FloorIDF, Logger: p.logger, Inbox: InboxBucket, Caller: p.caller,
		Lessons: p.lessons, Redact: p.redactorNow})
	if err != nil {
		return nil, err
	}
	o := originals.Config{Bucket: p.stores.Log, Tenant: p.tenant, Redactor: p.newestRules}
	if p.getenv != nil {
		if err := o.FromEnv(p.getenv); err != nil {
			return nil, err
		}
		if c.Optimizer, err = compress.FromEnv(p.getenv); err != nil {
			return nil, err
		}
	}
	if c.Originals, err = originals.New(o); err != nil {
		return nil, err
	}
	return query.New(c)
}

// redactorNow is the built-in rules and the tenant's own, as they stand.
func (p *parts) redactorNow(ctx context.Context) (*redact.Redactor, error) {
	own, err := p.catalog.Patterns(ctx)
	if err != nil {
		return nil, fault.As(fault.Unavailable, err)
	}
	key := p.key
	if len(key) == 0 {
		key = []byte("marks without the key of the tenant")
	}
	return redact.NewWith(key, redact.Options{Patterns: own}), nil
}

func (p *parts) newSig() (*sig.Function, error) {
	return sig.New(sig.Config{Tenant: p.tenant, TenantKey: p.key, Log: p.log, Catalog: p.catalog, Lessons: p.lessons, Logger: p.logger, Publish: p.publish})
}

// all builds the six functions of one process.
func (p *parts) all() (fs functions, err error) {
	if fs.gate, err = p.newGate(); err != nil {
		return fs, err
	}
	p.held = fs.gate.Held // an embedder that waits holds no job: its part is decided without vectors
	cleaned := &project.Projections{Publish: p.publish}
	p.cleaned = cleaned
	if fs.learn, err = p.newLearn(); err != nil {
		return fs, err
	}
	if fs.embed, err = p.newEmbed(); err != nil {
		return fs, err
	}
	p.calls = func() (policy, model int64) { return fs.gate.PolicyCalls(), fs.embed.Calls() }
	if fs.project, err = p.newProject(); err != nil {
		return fs, err
	}
	cleaned.Function = fs.project
	if fs.query, err = p.newQuery(); err != nil {
		return fs, err
	}
	fs.sig, err = p.newSig()
	return fs, err
}

// list gives the functions in the order of the flow.
func (fs *functions) list() []serve.Function {
	return []serve.Function{fs.learn, fs.gate, fs.sig, fs.embed, fs.project, fs.query}
}

// servers are where indexes stand that are not embedded.
type servers struct {
	pg Secret // MNEME_PG, a database URL: the graph
	os Secret // MNEME_OS, URLs of an OpenSearch cluster with commas: the lexical index
}

// openIndexes opens the indexes, embedded under dir where no server is named. An
// embedded one that another version
// wrote, or that a crash left unreadable, is dropped: it is a projection, and
// the sweep fills it again from the log. rebuilt says so.
func openIndexes(ctx context.Context, dir string, at servers, logger *slog.Logger) (g index.Graph, l index.Lexical, err error) {
	defer fault.Wrap(&err, "open indexes")
	if at.pg == "" || at.os == "" {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, nil, fault.As(fault.Unavailable, err)
		}
	}
	if at.pg.Reveal() != "" {
		g, err = pgindex.Open(ctx, pgindex.Config{URL: at.pg.Reveal()})
	} else {
		g, err = openSQLite(ctx, filepath.Join(dir, "graph.sqlite"), logger)
	}
	if err != nil {
		return nil, nil, err
	}
	if at.os.Reveal() != "" {
		l, err = osindex.Open(ctx, osindex.Config{URLs: strings.Split(at.os.Reveal(), ",")})
	} else {
		l, err = openBleve(ctx, filepath.Join(dir, "lexical.bleve"), logger)
	}
	if err != nil {
		return nil, nil, errors.Join(err, g.Close())
	}
	return g, l, nil
}

func openBleve(ctx context.Context, path string, logger *slog.Logger) (index.Lexical, error) {
	l, err := reopened(ctx, "lexical index", bleveindex.Open, logger, path)
	if err != nil {
		return nil, err // a nil *Index is no nil index.Lexical
	}
	return l, nil
}

func openSQLite(ctx context.Context, path string, logger *slog.Logger) (index.Graph, error) {
	g, err := reopened(ctx, "graph index", sqliteindex.Open, logger, path, path+"-wal", path+"-shm")
	if err != nil {
		return nil, err
	}
	return g, nil
}

// reopened opens the first of paths. What cannot be used is dropped, all of paths, and
// opened anew.
func reopened[T any](ctx context.Context, what string, open func(context.Context, string) (T, error), logger *slog.Logger, paths ...string) (T, error) {
	ix, err := open(ctx, paths[0])
	if !stale(err) {
		return ix, err
	}
	logger.Warn(what+" dropped; it is filled again from the log", slog.Any("err", err))
	if err := removeAll(paths...); err != nil {
		return ix, err
	}
	return open(ctx, paths[0])
}

// openLessons opens the index of lessons: in the database where one is named, else under
// dir. An embedded one that can not be used is dropped: the sweep fills it again from the log.
func openLessons(ctx context.Context, dir string, pg Secret, logger *slog.Logger) (lookup.Index, error) {
	if pg.Reveal() != "" {
		l, err := pglookup.Open(ctx, pglookup.Config{URL: pg.Reveal()})
		if err != nil {
			return nil, err // a nil *Index is no nil lookup.Index
		}
		return l, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fault.As(fault.Unavailable, err)
	}
	path := filepath.Join(dir, "lessons.sqlite")
	l, err := reopened(ctx, "index of lessons", sqlitelookup.Open, logger, path, path+"-wal", path+"-shm")
	if err != nil {
		return nil, err
	}
	return l, nil
}

// stale reports whether an index cannot be used but may be built anew.
func stale(err error) bool {
	if fault.Is(err, fault.Corrupt) || fault.Is(err, fault.Invalid) {
		return true
	}
	e, ok := errors.AsType[sqliteError](err)
	return ok && (e.Code()&0xff == sqliteCorrupt || e.Code()&0xff == sqliteNotADB)
}

// sqliteError is what the SQLite driver answers; the low byte is the primary
// result code (sqlite.org/rescode.html).
type sqliteError interface {
	error
	Code() int
}

const (
	sqliteCorrupt = 11 // "database disk image is malformed"
	sqliteNotADB  = 26 // "file is not a database"
)

func removeAll(paths ...string) error {
	for _, p := range paths {
		if err := os.RemoveAll(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fault.As(fault.Unavailable, err)
		}
	}
	return nil
}

// deadLetter keeps what the broker gave up on as an object of the log.
func deadLetter(log *eventlog.Log) func(ctx context.Context, d serve.Dead) error {
	return func(ctx context.Context, d serve.Dead) error {
		p := d.Problem()
		out := eventlog.Dead{
			Function: d.Subscriber, EventType: d.Event.Type(), EventID: d.Event.ID(), Subject: d.Event.Subject(),
			Kind: p.Code, Error: p.Message, Hint: p.Hint, Attempts: d.Attempts, At: d.Time,
		}
		b, err := json.Marshal(d.Event)
		if err != nil {
			out.Body = d.Event.Data()
		} else {
			out.Event = b
		}
		if out.Kind == "" {
			out.Kind = fault.Internal.String()
		}
		return log.PutDead(ctx, out)
	}
}

// DefaultDir is where `mem up` keeps its data: $MNEME_DIR, else
// $XDG_DATA_HOME/mneme, else ~/.local/share/mneme.
func DefaultDir(getenv func(string) string) string {
	if d := getenv("MNEME_DIR"); d != "" {
		return d
	}
	base := getenv("XDG_DATA_HOME")
	if base == "" || !filepath.IsAbs(base) { // the XDG base directory rule: relative paths are ignored
		home, err := os.UserHomeDir()
		if err != nil {
			return ".mneme"
		}
		base = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(base, "mneme")
}

// hostOf cuts a scheme off an address people may give as a URL.
func hostOf(addr string) string {
	return strings.TrimSuffix(strings.TrimPrefix(addr, "http://"), "/")
}

// Counter is the token counter for commands that need no server.
func Counter() (func(string) int, error) { return counter() }

// EmbeddingSpace is the space of the table that ships with the program.
func EmbeddingSpace() (memory.Space, error) {
	e, err := static.New()
	if err != nil {
		return memory.Space{}, err
	}
	return e.Space(), nil
}

// Versions names every format and policy version that this program writes.
func Versions() map[string]string {
	return map[string]string{
		"record": strconv.Itoa(memory.Version), "chunk_policy": memory.ChunkPolicy, "reader": transcript.ReaderVersion,
		"redact_rules": redact.RulesVersion, "gate_policy": extractpolicy.New(extractive.Options{}).Name(),
	}
}
