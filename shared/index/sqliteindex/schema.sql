-- Ids are the 32 bytes of a sha256. Times are RFC 3339 in UTC, as the log has
-- them; `at` is the same instant in nanoseconds since 1970, for filters.

CREATE TABLE node (
  row       INTEGER PRIMARY KEY,
  id        BLOB NOT NULL UNIQUE,
  tenant    TEXT NOT NULL,
  project   TEXT NOT NULL,
  stream    TEXT NOT NULL,
  level     TEXT NOT NULL,
  query_id  TEXT NOT NULL,
  text      TEXT NOT NULL,
  text_sha  BLOB NOT NULL,
  t         INTEGER NOT NULL,
  role      TEXT NOT NULL,
  trust     TEXT NOT NULL,
  place     TEXT NOT NULL,      -- memory.Place as JSON
  source_time TEXT              -- NULL when the source has none
) STRICT;
-- Covers what the dense leg loads, so that it never reads the texts.
CREATE INDEX node_scope ON node (tenant, project, level, id);

CREATE TABLE occurrence (
  node      INTEGER NOT NULL,   -- node.row
  t         INTEGER NOT NULL,
  span      TEXT NOT NULL,      -- memory.Span as JSON; '' for L1 and L2
  place     TEXT NOT NULL,
  at        INTEGER NOT NULL,
  quote     TEXT NOT NULL,
  role      TEXT NOT NULL,
  turn_id   TEXT NOT NULL,
  PRIMARY KEY (node, t, span)
) STRICT, WITHOUT ROWID;

-- No foreign keys: an edge may be applied before the node it points at, as
-- streams are applied in any order. Check finds the ones that stay open.
CREATE TABLE edge (
  child     BLOB NOT NULL,
  kind      INTEGER NOT NULL,   -- 0: child rests on parent; 1: child replaces parent
  parent    BLOB NOT NULL,
  tenant    TEXT NOT NULL,
  project   TEXT NOT NULL,
  PRIMARY KEY (child, kind, parent)
) STRICT, WITHOUT ROWID;
CREATE INDEX edge_parent ON edge (parent, kind);
CREATE INDEX edge_scope ON edge (tenant, project);

-- The embedded text is not stored: it is the header of the node's first
-- occurrence and text[start:stop).
CREATE TABLE passage (
  row       INTEGER PRIMARY KEY,
  id        BLOB NOT NULL UNIQUE,
  node      INTEGER NOT NULL,   -- node.row
  n         INTEGER NOT NULL,
  start     INTEGER NOT NULL,
  stop      INTEGER NOT NULL
) STRICT;
CREATE INDEX passage_node ON passage (node, n);

CREATE TABLE space (
  row       INTEGER PRIMARY KEY,
  tenant    TEXT NOT NULL,
  name      TEXT NOT NULL,
  dims      INTEGER NOT NULL,
  UNIQUE (tenant, name)
) STRICT;

-- A rowid table: 1 KB rows would overflow the pages of a WITHOUT ROWID one.
CREATE TABLE vector (
  space     INTEGER NOT NULL,   -- space.row
  passage   INTEGER NOT NULL,   -- passage.row
  v         BLOB NOT NULL       -- dims float32, little-endian, length 1
) STRICT;
CREATE UNIQUE INDEX vector_passage ON vector (space, passage);

CREATE TABLE applied (
  tenant    TEXT NOT NULL,
  project   TEXT NOT NULL,
  stream    TEXT NOT NULL,
  space     TEXT NOT NULL,
  seq       INTEGER NOT NULL,
  PRIMARY KEY (tenant, project, stream, space)
) STRICT, WITHOUT ROWID;
