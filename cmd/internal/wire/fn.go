package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	ce "github.com/cloudevents/sdk-go/v2/event"

	"github.com/mneme-ai/mneme/functions/gate"
	"github.com/mneme-ai/mneme/functions/learn"
	"github.com/mneme-ai/mneme/functions/sig"
	"github.com/mneme-ai/mneme/shared/catalog"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/models"
	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/objstore/s3store"
	"github.com/mneme-ai/mneme/shared/serve"
)

// FnConfig is the environment of one function.
type FnConfig struct {
	Name      string // learn | gate | embed | project | query | sig
	Listen    string // LISTEN_ADDRESS; "[::]:8080", as Knative's probes reach the pod's address
	Tenant    string // MNEME_TENANT; "local"
	TenantKey Secret // MNEME_TENANT_KEY; needed by learn and sig
	Endpoint  string // MNEME_S3_ENDPOINT, a URL
	AccessKey Secret // MNEME_S3_ACCESS_KEY
	SecretKey Secret // MNEME_S3_SECRET_KEY
	Region    string // MNEME_S3_REGION
	IndexDir  string // MNEME_INDEX_DIR; needed by project and query: the embedded indexes, one process at a time; lessons are looked up where it or MNEME_PG is set
	PG        Secret // MNEME_PG, a database URL: the graph stands there and not in IndexDir
	OS        Secret // MNEME_OS, URLs of an OpenSearch cluster with commas: so does the lexical index
	OSAuth    string // MNEME_OS_AUTH: service, or caller: each caller's own JWT decides what query sees there
	Serve     serve.Config
	Models    models.Config // MNEME_MODELS, MNEME_GATE_MODEL, MNEME_EMBED_MODEL, …; learn and project read no key
	getenv    func(string) string
}

// Functions lists the names that Fn takes.
func Functions() []string { return []string{"learn", "gate", "embed", "project", "query", "sig"} }

// FnFromEnv reads it.
func FnFromEnv(name string, getenv func(string) string) (FnConfig, error) {
	sc, err := serve.ConfigFromEnv(getenv)
	c := FnConfig{
		Name: name, Listen: getenv("LISTEN_ADDRESS"), Tenant: getenv("MNEME_TENANT"), TenantKey: Secret(getenv("MNEME_TENANT_KEY")),
		Endpoint: getenv("MNEME_S3_ENDPOINT"), AccessKey: Secret(getenv("MNEME_S3_ACCESS_KEY")), SecretKey: Secret(getenv("MNEME_S3_SECRET_KEY")),
		Region: getenv("MNEME_S3_REGION"), IndexDir: getenv("MNEME_INDEX_DIR"), PG: Secret(getenv("MNEME_PG")), OS: Secret(getenv("MNEME_OS")), OSAuth: getenv("MNEME_OS_AUTH"), Serve: sc,
	}
	if c.Listen == "" {
		c.Listen = "[::]:8080"
	}
	if c.Tenant == "" {
		c.Tenant = memory.LocalTenant
	}
	c.getenv = getenv
	var badModels error
	c.Models, badModels = ModelsFromEnv(getenv)
	if name != "gate" && name != "learn" { // the others know of vectors alone
		c.Models.Gate, c.Models.Rewrite, c.Models.Projects, c.Models.FreeURLs = nil, nil, nil, false
	}
	return c, errors.Join(err, badModels, c.Validate())
}

// Validate names every bad variable at once.
func (c *FnConfig) Validate() error {
	var bad []string
	need := func(name, value string) {
		if value == "" {
			bad = append(bad, name+" is not set")
		}
	}
	known := false
	for _, n := range Functions() {
		known = known || n == c.Name
	}
	if !known {
		bad = append(bad, fmt.Sprintf("function %q is not one of %s", c.Name, strings.Join(Functions(), ", ")))
	}
	need("MNEME_S3_ENDPOINT", c.Endpoint)
	need("MNEME_S3_ACCESS_KEY", c.AccessKey.Reveal())
	need("MNEME_S3_SECRET_KEY", c.SecretKey.Reveal())
	if c.Name == "learn" || c.Name == "sig" {
		need("MNEME_TENANT_KEY", c.TenantKey.Reveal())
	}
	if (c.Name == "project" || c.Name == "query") && (c.PG == "" || c.OS == "") {
		need("MNEME_INDEX_DIR", c.IndexDir)
	}
	if !memory.ValidName(c.Tenant) {
		bad = append(bad, fmt.Sprintf("MNEME_TENANT=%q is not a name", c.Tenant))
	}
	if len(bad) > 0 {
		return fault.New(fault.Invalid, "%s", strings.Join(bad, "; "))
	}
	return nil
}

// Fn runs one function until ctx ends.
func Fn(ctx context.Context, cfg FnConfig, logger *slog.Logger) (err error) {
	p := parts{tenant: cfg.Tenant, key: []byte(cfg.TenantKey.Reveal()), logger: logger, getenv: cfg.getenv}
	for _, b := range []struct {
		name string
		into **objstore.Bucket
	}{{InboxBucket, &p.stores.Inbox}, {LogBucket, &p.stores.Log}} {
		d, err := s3store.Open(s3store.Config{
			Endpoint: cfg.Endpoint, Bucket: b.name, AccessKey: cfg.AccessKey.Reveal(), SecretKey: cfg.SecretKey.Reveal(), Region: cfg.Region,
		})
		if err != nil {
			return err
		}
		*b.into = objstore.NewBucket(b.name, d)
	}
	p.log = eventlog.Open(p.stores.Log, p.tenant, fmt.Sprintf("%s-%d-%s", cfg.Name, os.Getpid(), randomHex(6).Reveal()))
	p.catalog = catalog.New(p.stores.Log, p.log, p.tenant)
	p.count = lazyCounter()
	cfg.Serve.Logger = logger
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	p.stop = stop
	var svc *serve.Service
	p.publish = func(ctx context.Context, es ...ce.Event) error { return svc.Publish(ctx, es...) }
	f, closeIndexes, err := p.one(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeIndexes()) }()
	svc = serve.New(f, cfg.Serve)
	err = svc.ListenAndServe(ctx, cfg.Listen)
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause // the store was refused
	}
	return err
}

// lazyCounter loads the tokenizer on first use: start to ready must not wait
// for it, and a changed vocabulary still stops the program.
func lazyCounter() func(string) int {
	return func(s string) int {
		n, err := counter()
		if err != nil {
			panic(err) // the program file itself is damaged: nothing it counts can be trusted
		}
		return n(s)
	}
}

// one builds the function of the configuration. A store that ignores
// conditional writes is refused before the first event, by the functions that
// append.
func (p *parts) one(ctx context.Context, cfg FnConfig) (serve.Function, func() error, error) {
	nothing := func() error { return nil }
	var err error
	if p.models, err = newModelServers(neededBy(cfg.Name, cfg.Models), p.count, p.logger, cfg.getenv); err != nil {
		return nil, nothing, err
	}
	if cfg.Name == "gate" {
		p.follow(cfg.Models, cfg.getenv)
	}
	if cfg.Name != "learn" && cfg.Name != "gate" && cfg.Name != "sig" {
		asks := cfg.Name != "project"
		p.spaces = p.newSpaces(cfg.Models, cfg.getenv, asks, func(c models.Config) models.Config { return neededBy(cfg.Name, c) })
	}
	if p.caller, err = callerOf(cfg.OSAuth, true); err != nil {
		return nil, nothing, err
	}
	if (cfg.IndexDir != "" || cfg.PG != "" && cfg.OS != "") && (cfg.Name == "project" || cfg.Name == "query") {
		if p.graph, p.lexical, err = openIndexes(ctx, cfg.IndexDir, servers{cfg.PG, cfg.OS}, p.logger); err != nil {
			return nil, nothing, err
		}
	}
	if (cfg.IndexDir != "" || cfg.PG != "") && (cfg.Name == "project" || cfg.Name == "query" || cfg.Name == "sig") {
		if p.lessons, err = openLessons(ctx, cfg.IndexDir, cfg.PG, p.logger); err != nil {
			if p.graph != nil {
				err = errors.Join(err, p.graph.Close(), p.lexical.Close())
			}
			return nil, nothing, err
		}
	}
	calls := nothing // of models, under way
	closing := func() (err error) {
		err = errors.Join(calls(), p.live.close())
		if p.spaces != nil {
			err = errors.Join(err, p.spaces.close())
		}
		if p.models != nil {
			err = errors.Join(err, p.models.Close())
		}
		if p.lessons != nil {
			err = errors.Join(err, p.lessons.Close())
		}
		if p.graph == nil {
			return err
		}
		return errors.Join(err, p.graph.Close(), p.lexical.Close())
	}
	var f serve.Function
	switch cfg.Name {
	case "learn":
		var l *learn.Function
		p.picks = cfg.Models
		l, err = p.newLearn()
		f = newProving(l, p.stores.Log, p.stop)
	case "gate":
		var g *gate.Function
		if g, err = p.newGate(); err == nil {
			calls = g.Close
			f = newProving(g, p.stores.Log, p.stop)
		}
	case "embed":
		f, err = p.newEmbed()
	case "project":
		f, err = p.newProject()
	case "query":
		f, err = p.newQuery()
	case "sig":
		var s *sig.Function
		if s, err = p.newSig(); err == nil {
			f = newProving(s, p.stores.Log, p.stop)
		}
	}
	return f, closing, err
}
