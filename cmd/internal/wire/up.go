package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"
	"golang.org/x/sync/errgroup"

	"github.com/mneme-ai/mneme/shared/catalog"
	"github.com/mneme-ai/mneme/shared/cost"
	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/models"
	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/objstore/dirstore"
	"github.com/mneme-ai/mneme/shared/objstore/s3serve"
	"github.com/mneme-ai/mneme/shared/serve"
)

// Default addresses of `mem up`. A taken one gives way to the next free port.
const (
	DefaultHTTP = "127.0.0.1:8080"
	DefaultS3   = "127.0.0.1:9000"
)

// UpConfig is what `mem up` is started with.
type UpConfig struct {
	Dir       string // data folder, made 0700
	HTTP      string // address of the API; DefaultHTTP
	S3        string // address of the S3 endpoint; DefaultS3
	TenantKey string // MNEME_TENANT_KEY; else made at the first start
	PG        Secret // MNEME_PG, a database URL: the graph stands there and not in Dir
	OS        Secret // MNEME_OS, URLs of an OpenSearch cluster with commas: so does the lexical index
	OSAuth    string // MNEME_OS_AUTH: service, or caller: each caller's own JWT decides what a query sees there
	Logger    *slog.Logger
	// Models says what is done by model calls; the zero value that the built-in
	// policy decides and the table embeds. Getenv gives the keys that it names.
	Models models.Config
	Getenv func(string) string
	// Sweep is the pause between sweeps; serve.DefaultSweepInterval when 0.
	Sweep time.Duration
	// Chaos, in tests, loses, repeats and reorders events.
	Chaos *serve.Chaos
}

// Ready is what stands in <dir>/ready.json while `mem up` serves.
type Ready struct {
	HTTP string `json:"http"`
	S3   string `json:"s3"`
	PID  int    `json:"pid"`
}

const readyFile = "ready.json"

// ReadReady reads the addresses of the `mem up` on a folder.
func ReadReady(dir string) (Ready, error) {
	var r Ready
	b, err := os.ReadFile(filepath.Join(dir, readyFile))
	if err != nil {
		return r, fault.At(fault.Unavailable, dir, "start it with: mem up --dir "+dir, "no mem up serves this folder")
	}
	return r, json.Unmarshal(b, &r)
}

// Up is a running Mneme: the functions, the broker, the S3 endpoint and the
// HTTP front of one data folder.
type Up struct {
	cfg      UpConfig
	creds    Credentials
	parts    parts
	fns      functions
	broker   *serve.Broker
	services []*serve.Service
	sweeper  *serve.Sweeper
	s3       *s3serve.Server
	listener net.Listener
	closing  sync.Mutex // guards unlock and closers
	unlock   func()
	closers  []func() error
}

// Start opens the folder and both addresses; nothing is served until Run.
func Start(ctx context.Context, cfg UpConfig) (_ *Up, err error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.HTTP == "" {
		cfg.HTTP = DefaultHTTP
	}
	if cfg.S3 == "" {
		cfg.S3 = DefaultS3
	}
	cfg.HTTP, cfg.S3 = hostOf(cfg.HTTP), hostOf(cfg.S3)
	for _, a := range []string{cfg.HTTP, cfg.S3} {
		if err := serve.CheckBind(a); err != nil {
			return nil, err
		}
	}
	if cfg.Dir, err = filepath.Abs(cfg.Dir); err != nil {
		return nil, err
	}
	u := &Up{cfg: cfg}
	defer func() {
		if err != nil {
			err = errors.Join(err, u.close())
		}
	}()
	if u.unlock, err = dirstore.LockDir(cfg.Dir); err != nil {
		return nil, err
	}
	if u.creds, err = ensureCredentials(cfg.Dir, cfg.TenantKey); err != nil {
		return nil, err
	}
	if err = u.open(ctx); err != nil {
		return nil, err
	}
	if err = u.build(); err != nil {
		return nil, err
	}
	if u.listener, err = serve.Listen(cfg.HTTP); err != nil {
		return nil, err
	}
	u.closers = append(u.closers, ignoreClosed(u.listener.Close))
	u.s3, err = s3serve.Start(ctx, s3serve.Config{
		Addr: cfg.S3, DataDir: u.buckets(), MnemeDir: filepath.Join(u.buckets(), LogBucket),
		AccessKey: u.creds.S3AccessKey.Reveal(), SecretKey: u.creds.S3SecretKey.Reveal(),
		OnEvent: u.uploaded,
	})
	if err != nil {
		return nil, err
	}
	u.closers = append(u.closers, u.s3.Close)
	return u, nil
}

func ignoreClosed(f func() error) func() error {
	return func() error {
		if err := f(); err != nil && !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	}
}

// buckets is the folder of both buckets.
func (u *Up) buckets() string { return filepath.Join(u.cfg.Dir, bucketsDir) }

const bucketsDir = "buckets"

// open opens the stores, the log and the indexes.
func (u *Up) open(ctx context.Context) error {
	inbox, err := s3serve.OpenTranscripts(u.buckets())
	if err != nil {
		return err
	}
	u.closers = append(u.closers, func() error { inbox.Close(); return nil })
	store, err := dirstore.Open(filepath.Join(u.buckets(), LogBucket))
	if err != nil {
		return err
	}
	u.closers = append(u.closers, func() error { store.Close(); return nil })
	p := &u.parts
	p.tenant, p.key, p.logger = memory.LocalTenant, []byte(u.creds.TenantKey.Reveal()), u.cfg.Logger
	p.getenv = u.cfg.Getenv
	p.stores = Stores{Inbox: objstore.NewBucket(InboxBucket, inbox), Log: objstore.NewBucket(LogBucket, store)}
	if err := p.stores.Log.Prove(ctx); err != nil {
		return err
	}
	p.log = eventlog.Open(p.stores.Log, p.tenant, writerID(), eventlog.WithFolder(u.cfg.Dir))
	p.catalog = catalog.New(p.stores.Log, p.log, p.tenant)
	if p.count, err = counter(); err != nil {
		return err
	}
	p.picks = u.cfg.Models
	if p.models, err = newModelServers(u.cfg.Models, p.count, u.cfg.Logger, u.cfg.Getenv); err != nil {
		return err
	}
	if p.models != nil {
		u.closers = append(u.closers, p.models.Close)
	}
	p.follow(u.cfg.Models, u.cfg.Getenv)
	u.closers = append(u.closers, p.live.close)
	p.spaces = p.newSpaces(u.cfg.Models, u.cfg.Getenv, true, func(c models.Config) models.Config { return c })
	u.closers = append(u.closers, p.spaces.close)
	p.temp = filepath.Join(u.cfg.Dir, "tmp") // what a killed process left there is nobody's
	if err := os.RemoveAll(p.temp); err != nil {
		return fault.As(fault.Unavailable, err)
	}
	if err := os.MkdirAll(p.temp, 0o700); err != nil {
		return fault.As(fault.Unavailable, err)
	}
	if p.caller, err = callerOf(u.cfg.OSAuth, false); err != nil {
		return err
	}
	if p.graph, p.lexical, err = openIndexes(ctx, filepath.Join(u.cfg.Dir, "index"), servers{u.cfg.PG, u.cfg.OS}, u.cfg.Logger); err != nil {
		return err
	}
	u.closers = append(u.closers, p.graph.Close, p.lexical.Close)
	if p.lessons, err = openLessons(ctx, filepath.Join(u.cfg.Dir, "index"), u.cfg.PG, u.cfg.Logger); err != nil {
		return err
	}
	u.closers = append(u.closers, p.lessons.Close)
	return nil
}

// writerID is unique to a process start.
func writerID() string {
	return fmt.Sprintf("up-%d-%s", os.Getpid(), randomHex(6).Reveal())
}

// exports is the queue of export.requested, which project handles: beside its other
// events, as a day's export takes longer than what somebody waits for.
const exports = "exports"

// fills is likewise that of model.changed, which embed handles: new text does not wait for a
// space that is being filled.
const fills = "fills"

// build makes the functions and subscribes them to the broker, over the very
// HTTP handlers that serve them on a cluster.
func (u *Up) build() (err error) {
	u.broker = serve.NewBroker(serve.BrokerConfig{
		// One admission and one projection at a time; question streams side by
		// side on both cores.
		Concurrency: map[string]int{"learn": 1, "project": 1, "embed": 1, "gate": 2, "sig": 1, exports: 1, fills: 1},
		Background:  map[string]bool{exports: true},
		DeadLetter:  deadLetter(u.parts.log), Chaos: u.cfg.Chaos, Logger: u.cfg.Logger,
	})
	u.parts.publish = func(ctx context.Context, es ...ce.Event) error {
		for _, e := range es {
			if err := u.broker.Publish(ctx, e); err != nil {
				return err
			}
		}
		return nil
	}
	if u.fns, err = u.parts.all(); err != nil {
		return err
	}
	u.closers = append(u.closers, u.fns.gate.Close)
	client := &http.Client{Transport: serve.Local(u.broker)}
	for _, f := range u.fns.list() {
		s := serve.New(f, serve.Config{Sink: "http://broker.mneme.local/", Client: client, Logger: u.cfg.Logger})
		u.services = append(u.services, s)
		switch f.Name() {
		case "query": // handles no event
		case "project":
			types := slices.DeleteFunc(event.Types(), func(t event.Type) bool {
				return t == event.ExportRequested || !slices.Contains(event.Handlers(t), "project")
			})
			u.broker.Subscribe("project", s.Handler(), types...)
			u.broker.Subscribe(exports, s.Handler(), event.ExportRequested)
		case "embed":
			types := slices.DeleteFunc(event.Types(), func(t event.Type) bool {
				return t == event.ModelChanged || !slices.Contains(event.Handlers(t), "embed")
			})
			u.broker.Subscribe("embed", s.Handler(), types...)
			u.broker.Subscribe(fills, s.Handler(), event.ModelChanged)
		default:
			u.broker.Subscribe(f.Name(), s.Handler())
		}
	}
	u.sweeper = serve.NewSweeper(serve.SweeperConfig{Tenant: u.parts.tenant, Interval: u.cfg.Sweep, Publish: u.broker.Publish, Logger: u.cfg.Logger})
	return nil
}

// uploaded is called after each upload through the S3 endpoint.
func (u *Up) uploaded(bucket, key, etag string, size int64) {
	e := serve.ObjectEvent(event.Object{Bucket: bucket, Key: key, ETag: etag, SizeBytes: size})
	if err := u.broker.Publish(context.Background(), e); err != nil {
		u.cfg.Logger.Warn("upload not announced; the sweep finds it", slog.String("key", key), slog.Any("err", err))
	}
}

// Ready gives the addresses.
func (u *Up) Ready() Ready {
	return Ready{HTTP: "http://" + u.listener.Addr().String(), S3: u.s3.URL(), PID: os.Getpid()}
}

// Credentials gives the folder's credentials.
func (u *Up) Credentials() Credentials { return u.creds }

// Run serves until ctx ends. onReady is called once everything answers.
func (u *Up) Run(ctx context.Context, onReady func(Ready)) (err error) {
	defer func() { err = errors.Join(err, u.close()) }()
	for _, s := range u.services {
		if err := s.Open(ctx); err != nil {
			return err
		}
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return u.broker.Run(gctx) })
	g.Go(func() error { u.sweeper.Run(gctx); return nil })
	g.Go(func() error { return serve.ServeHTTP(gctx, u.listener, u.front(), requestTimeout, drain) })
	r := u.Ready()
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := writeFileSync(filepath.Join(u.cfg.Dir, readyFile), append(b, '\n'), 0o600); err != nil {
		return err
	}
	if onReady != nil {
		onReady(r)
	}
	err = g.Wait()
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	for _, s := range u.services {
		err = errors.Join(err, s.Close(stop))
	}
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || fault.Is(err, fault.Unavailable)) {
		return nil // asked to stop: requests that were cut are asked again, and what they began is in the log
	}
	return err
}

const (
	// requestTimeout bounds one request: the upload of a large file and a wait
	// of an hour are the longest.
	requestTimeout = time.Hour + time.Minute
	// drain is how long requests in flight may take after Ctrl-C; what they
	// asked for is in the log or is asked for again.
	drain = 5 * time.Second
)

func (u *Up) close() (err error) {
	u.closing.Lock()
	defer u.closing.Unlock()
	for i := len(u.closers) - 1; i >= 0; i-- {
		err = errors.Join(err, u.closers[i]())
	}
	u.closers = nil
	if u.unlock != nil {
		_ = os.Remove(filepath.Join(u.cfg.Dir, readyFile))
		u.unlock()
		u.unlock = nil
	}
	return err
}

// front is the HTTP surface of `mem up`.
func (u *Up) front() http.Handler {
	mux := http.NewServeMux()
	for _, s := range u.services {
		s.Mount(mux)
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		serve.WriteJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	mux.HandleFunc("GET /memory/wait", u.wait)
	mux.HandleFunc("GET /memory/dead", u.dead)
	mux.HandleFunc("POST /memory/sweep", func(w http.ResponseWriter, r *http.Request) {
		if err := u.sweeper.Sweep(r.Context()); err != nil {
			serve.WriteError(w, err)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	})
	mux.HandleFunc("GET /memory/status", u.status)
	mux.Handle("POST "+serve.EventsPath, u.broker)
	mux.Handle(serve.HookPath, serve.Hooks(serve.HooksConfig{
		Token: u.creds.HookToken.Reveal(), Publish: u.broker.Publish, Dead: deadLetter(u.parts.log), Logger: u.cfg.Logger,
	}))
	return serve.Secure(serve.SecureConfig{
		Token: u.creds.Token.Reveal(), Hosts: serve.LocalHosts(u.listener.Addr()), Logger: u.cfg.Logger,
		Rules: []serve.Rule{{Prefix: "/memory/files/", Types: []string{"application/octet-stream"}, MaxBodyBytes: maxUpload}},
	}, mux)
}

// maxUpload is S3's own bound of one PUT.
const maxUpload = 5 << 30

// Pending says what a sweep would find.
type Pending struct {
	Forgets int  `json:"forgets,omitempty"` // projects in which something is being forgotten
	Objects int  `json:"objects"`           // uploads without a receipt
	Streams int  `json:"streams"`           // question streams behind the admit stream
	Vectors int  `json:"vectors"`           // streams with segments that have no vectors
	Indexes int  `json:"indexes"`           // streams an index is behind on
	Events  bool `json:"events"`            // the broker holds undelivered events
}

func (p Pending) none() bool {
	return p.Forgets == 0 && p.Objects == 0 && p.Streams == 0 && p.Vectors == 0 && p.Indexes == 0 && !p.Events
}

// paused lists the projects that wait, for whatever reason.
func (u *Up) paused() []cost.Paused { return append(u.fns.gate.Paused(), u.fns.embed.Paused()...) }

func (u *Up) pending(ctx context.Context) (p Pending, err error) {
	objects, err := u.fns.learn.Pending(ctx)
	if err != nil {
		return p, err
	}
	p.Objects = len(objects)
	if p.Forgets, err = u.fns.learn.Forgetting(ctx); err != nil {
		return p, err
	}
	if p.Streams, err = u.fns.gate.Behind(ctx); err != nil {
		return p, err
	}
	if p.Vectors, err = u.fns.embed.Behind(ctx); err != nil {
		return p, err
	}
	if p.Indexes, err = u.fns.project.Behind(ctx); err != nil {
		return p, err
	}
	p.Events = !u.broker.Idle()
	return p, nil
}

// wait answers when a sweep would find nothing, or after ?timeout= with what
// is left.
func (u *Up) wait(w http.ResponseWriter, r *http.Request) {
	timeout := 60 * time.Second
	if v := r.URL.Query().Get("timeout"); v != "" {
		d, err := time.ParseDuration(v)
		if err != nil || d < 0 || d > time.Hour {
			serve.WriteError(w, fault.At(fault.Invalid, "timeout", "a duration such as 60s, at most 1h", "%q is not one", v))
			return
		}
		timeout = d
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	pause := 20 * time.Millisecond
	for {
		idle, stop := context.WithTimeout(ctx, time.Second)
		_ = u.broker.WaitIdle(idle) // its end is judged below
		stop()
		p, err := u.pending(context.WithoutCancel(ctx))
		if err != nil {
			serve.WriteError(w, err)
			return
		}
		if p.none() {
			serve.WriteJSON(w, http.StatusOK, map[string]any{"done": true, "pending": p, "paused": u.paused()})
			return
		}
		select {
		case <-ctx.Done():
			serve.WriteJSON(w, http.StatusOK, map[string]any{"done": false, "pending": p, "paused": u.paused()})
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, 500*time.Millisecond)
	}
}

func (u *Up) status(w http.ResponseWriter, r *http.Request) {
	p, err := u.pending(r.Context())
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	serve.WriteJSON(w, http.StatusOK, map[string]any{
		"pending": p, "policy_calls": u.fns.gate.PolicyCalls(), "embed_calls": u.fns.embed.Calls(), "without_vector": u.fns.embed.Without(), "broker": u.broker.Stats(), "paused": u.paused(),
	})
}

func (u *Up) dead(w http.ResponseWriter, r *http.Request) {
	out := []eventlog.Dead{}
	for d, err := range u.parts.log.DeadLetters(r.Context()) {
		if err != nil {
			serve.WriteError(w, err)
			return
		}
		out = append(out, d)
	}
	serve.WriteJSON(w, http.StatusOK, map[string]any{"dead": out})
}
