package archtest

// Module is the path of the module that the rules are about.
const Module = "github.com/mneme-ai/mneme"

// Ranks gives every package of the module its rank: the tree of
// docs/ARCHITECTURE.md, from the domain values up to the programs.
var Ranks = map[string]int{
	"shared/memory":   0,
	"shared/fault":    0,
	"shared/archtest": 0,
	"shared/lazy":     0,

	"testdata/transcripts": 0, // embedded sample sessions

	"shared/agree":      1,
	"shared/baseurl":    1,
	"shared/event":      1,
	"shared/token":      1,
	"shared/derived":    1,
	"shared/gitlog":     1,
	"shared/redact":     1,
	"shared/rank":       1,
	"shared/strictyaml": 1,

	"shared/transcript":        2,
	"shared/signature":         2,
	"shared/chunk":             2,
	"shared/gru":               2,
	"shared/gru/extractive":    2,
	"shared/gru/extractpolicy": 2,
	"shared/gru/gateeval":      2,
	"shared/compress":          2,
	"shared/lesson":            2,
	"shared/questions":         2,
	"shared/models":            2,

	"shared/gitbundle":               3,
	"shared/gitbundle/gitbundletest": 3,
	"shared/objstore":                3,
	"shared/objstore/memstore":       3,
	"shared/objstore/dirstore":       3,
	"shared/index":                   3,
	"shared/lookup":                  3,
	"shared/llm":                     3,
	"shared/llm/static":              3,
	"shared/llm/endpoint":            3,
	"shared/llm/embedding":           3,
	"shared/llm/llmtest":             3,
	"shared/llm/llmtest/tapetest":    3,

	"shared/objstore/s3store":      4,
	"shared/objstore/s3serve":      4,
	"shared/objstore/objstoretest": 4,
	"shared/index/sqliteindex":     4,
	"shared/index/bleveindex":      4,
	"shared/index/pgindex":         4,
	"shared/index/osindex":         4,
	"shared/index/indextest":       4,
	"shared/lookup/sqlitelookup":   4,
	"shared/lookup/pglookup":       4,
	"shared/lookup/lookuptest":     4,
	"shared/llm/ollama":            4,
	"shared/llm/openaiapi":         4,
	"shared/eventlog":              4,
	"shared/originals":             4,
	"shared/preflight":             4,

	"shared/catalog":    5,
	"shared/cost":       5,
	"shared/cures":      5,
	"shared/emitted":    5,
	"shared/export":     5,
	"shared/labels":     5,
	"shared/report":     5,
	"shared/skill":      5,
	"shared/space":      5,
	"shared/vault":      5,
	"shared/projection": 5,
	"shared/replay":     5,
	"shared/scrub":      5,
	"shared/forget":     5,
	"shared/serve":      5,

	"functions/learn":   6,
	"functions/gate":    6,
	"functions/embed":   6,
	"functions/project": 6,
	"functions/query":   6,
	"functions/sig":     6,

	"cmd/internal/wire": 7,
	"cmd/functest":      7, // the functions over stores in memory, for their tests

	"cmd/fn":                          8,
	"cmd/mem":                         8,
	"docs/upload":                     8, // the example of docs/UPLOAD.md
	"shared/token/internal/gentable":  8, // programs for go generate
	"shared/redact/internal/genrules": 8,
}

// Siblings lists, for a package, those of its own rank that it may import.
var Siblings = map[string][]string{
	"shared/redact":            {"shared/strictyaml"},
	"shared/chunk":             {"shared/transcript"},
	"shared/compress":          {"shared/signature"},
	"shared/lesson":            {"shared/signature", "shared/transcript"},
	"shared/gru/extractpolicy": {"shared/gru", "shared/gru/extractive"},
	"shared/gru/gateeval":      {"shared/gru/extractive"},
	"shared/objstore/memstore": {"shared/objstore"},
	"shared/objstore/dirstore": {"shared/objstore"},
	"shared/llm/static":        {"shared/llm"},
	"shared/llm/embedding":     {"shared/llm"},
	"shared/llm/endpoint":      {"shared/llm"},
	"shared/scrub":             {"shared/projection"},
	"shared/forget":            {"shared/projection", "shared/scrub"},
	"shared/report":            {"shared/cost", "shared/labels"},
	"shared/export":            {"shared/labels", "shared/catalog", "shared/replay"},
	"shared/vault":             {"shared/catalog", "shared/replay"},
	"shared/skill":             {"shared/catalog", "shared/replay"},
	"shared/emitted":           {"shared/catalog", "shared/replay", "shared/skill"},
}

// Adapters are the packages that bind a port to one implementation. Only
// cmd/internal/wire and tests import them.
var Adapters = map[string]bool{
	"shared/objstore/memstore":   true,
	"shared/objstore/dirstore":   true,
	"shared/objstore/s3store":    true,
	"shared/objstore/s3serve":    true,
	"shared/index/sqliteindex":   true,
	"shared/index/bleveindex":    true,
	"shared/index/pgindex":       true,
	"shared/index/osindex":       true,
	"shared/lookup/sqlitelookup": true,
	"shared/lookup/pglookup":     true,
	"shared/llm/static":          true,
	"shared/llm/ollama":          true,
	"shared/llm/openaiapi":       true,
}

// Bar keeps a package out of others, however far down: none of From may need it. A
// pattern of From that ends in "/*" stands for all packages below.
type Bar struct {
	Path string
	From []string
	Why  string
}

// Bars are what must not meet. Indexes are filled by embed and project, from the
// log that learn and gate write: where neither they nor what they stand on knows
// the optimizer, no text that was shortened is ever indexed or embedded.
var Bars = []Bar{
	{
		Path: "shared/compress", Why: "indexes never see compressed text",
		From: []string{
			"functions/learn", "functions/gate", "functions/embed", "functions/project",
			"shared/index", "shared/index/*", "shared/llm", "shared/llm/*", "shared/eventlog", "shared/projection", "shared/replay", "shared/scrub", "shared/forget", "shared/vault", "shared/export", "shared/chunk", "shared/transcript",
		},
	},
	{
		Path: "shared/originals", Why: "originals are no part of what is known",
		From: []string{"functions/learn", "functions/gate", "functions/embed", "functions/project", "shared/index", "shared/index/*", "shared/eventlog", "shared/projection"},
	},
}

// Everywhere allows every package of the module.
const Everywhere = "*"

// Third is a third-party module and who may import it. A pattern that ends in
// "/*" stands for all packages below.
type Third struct {
	Path   string
	Owners []string
	Tests  []string // may import it in _test.go files, beside the owners
}

// Modules lists every third-party module that the tree imports itself.
var Modules = []Third{
	// The rules of gitleaks are TOML; only their generator reads them.
	{Path: "github.com/BurntSushi/toml", Owners: []string{"shared/redact/internal/genrules"}},
	{Path: "github.com/RoaringBitmap/roaring/v2", Owners: []string{"shared/index/bleveindex"}},
	{Path: "github.com/aws/aws-sdk-go-v2/service/s3", Owners: []string{"shared/objstore/s3serve"}},
	{Path: "github.com/blevesearch/bleve/v2", Owners: []string{"shared/index/bleveindex"}},
	{Path: "github.com/blevesearch/bleve_index_api", Owners: []string{"shared/index/bleveindex"}},
	{Path: "github.com/blevesearch/scorch_segment_api/v2", Owners: []string{"shared/index/bleveindex"}},
	{Path: "github.com/blevesearch/snowballstem", Owners: []string{"shared/index/bleveindex"}},
	{Path: "github.com/cenkalti/backoff/v5", Owners: []string{"shared/objstore", "shared/serve", "shared/llm/endpoint"}},
	{Path: "github.com/cloudevents/sdk-go/v2", Owners: []string{"shared/event", "shared/serve", "functions/*", "cmd/internal/wire", "cmd/fn", "cmd/mem"}, Tests: []string{"cmd/functest"}},
	{Path: "github.com/daulet/tokenizers", Owners: []string{"shared/token"}},
	{Path: "github.com/go-git/go-git/v5", Owners: []string{"shared/gitbundle"}},
	{Path: "github.com/google/uuid", Owners: []string{"shared/objstore/s3serve"}},
	{Path: "github.com/gowebpki/jcs", Owners: []string{"shared/eventlog", "shared/index"}},
	{Path: "github.com/guptarohit/asciigraph", Owners: []string{"cmd/mem"}},
	{Path: "github.com/hashicorp/golang-lru/v2", Owners: []string{"functions/gate", "shared/export", "shared/llm/embedding", "shared/originals"}},
	{Path: "github.com/jackc/pgx/v5", Owners: []string{"shared/index/pgindex", "shared/lookup/pglookup"}},
	{Path: "github.com/klauspost/compress", Owners: []string{"shared/eventlog", "shared/originals", "shared/transcript"}, Tests: []string{"cmd/mem"}},
	{Path: "github.com/mattn/go-isatty", Owners: []string{"cmd/mem"}},
	{Path: "github.com/minio/minio-go/v7", Owners: []string{"shared/objstore/s3store", "docs/upload"}, Tests: []string{"shared/objstore/s3serve", "cmd/mem", "cmd/internal/wire"}},
	{Path: "github.com/ncruces/go-sqlite3", Owners: []string{"shared/index/sqliteindex"}},
	{Path: "github.com/openai/openai-go/v3", Owners: []string{"shared/llm/openaiapi"}},
	{Path: "github.com/opensearch-project/opensearch-go/v4", Owners: []string{"shared/index/osindex"}},
	{Path: "github.com/pgvector/pgvector-go", Owners: []string{"shared/index/pgindex"}},
	{Path: "github.com/parquet-go/parquet-go", Owners: []string{"shared/export"}},
	{Path: "github.com/schollz/progressbar/v3", Owners: []string{"cmd/mem"}},
	{Path: "github.com/spf13/cobra", Owners: []string{"cmd/mem"}},
	{Path: "github.com/spf13/pflag", Owners: []string{"cmd/mem"}},
	// s3serve serves with it; the tests of s3store talk to its own backend.
	{Path: "github.com/versity/versitygw", Owners: []string{"shared/objstore/s3serve", "shared/objstore/s3store"}},
	{Path: "go.etcd.io/bbolt", Owners: []string{"shared/index/bleveindex"}},
	{Path: "go.yaml.in/yaml/v3", Owners: []string{"shared/strictyaml", "shared/questions"}},
	{Path: "knative.dev/func-go", Owners: []string{"shared/serve"}},
	{Path: "modernc.org/sqlite", Owners: []string{"shared/index/sqliteindex", "shared/lookup/sqlitelookup"}},
	// Commands of agents are shell lines; a lexer of our own would be a second shell.
	{Path: "mvdan.cc/sh/v3", Owners: []string{"shared/lesson"}},

	// Extensions of the standard library by the Go project itself.
	{Path: "golang.org/x/sync", Owners: []string{Everywhere}},
	{Path: "golang.org/x/sys", Owners: []string{Everywhere}},
	{Path: "golang.org/x/term", Owners: []string{"cmd/mem"}},
	{Path: "golang.org/x/text", Owners: []string{Everywhere}},

	// For tests only.
	{Path: "github.com/cockroachdb/datadriven", Tests: []string{Everywhere}},
	{Path: "github.com/google/go-cmp", Tests: []string{Everywhere}},
	// Of it the program takes the unified diff alone.
	{Path: "github.com/rogpeppe/go-internal", Owners: []string{"shared/skill"}, Tests: []string{Everywhere}},
}
