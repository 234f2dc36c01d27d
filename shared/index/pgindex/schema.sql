-- Ids are the 32 bytes of a sha256. `place`, `span` and `turn_id` are JSON as the log
-- has them; `at` is the instant in nanoseconds since 1970, for filters. A text that
-- PostgreSQL cannot hold (NUL, bytes that are no UTF-8) stands whole in `*_raw`, and
-- with U+FFFD in its place in the column beside it.

CREATE TABLE memory_node (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  sha256      bytea NOT NULL UNIQUE,
  tenant      text NOT NULL,
  project     text NOT NULL,
  level       text NOT NULL,
  stream      text NOT NULL,
  query_id    text NOT NULL,
  t           integer NOT NULL,
  role        text NOT NULL,
  trust       text NOT NULL,
  source      text NOT NULL,      -- key of the object of the first occurrence; '' for L1 and L2
  text        text NOT NULL,
  text_raw    bytea,
  text_sha256 bytea NOT NULL,
  place       text NOT NULL,
  source_time text,               -- RFC 3339 in UTC
  created_at  timestamptz         -- the same instant, for people
);
CREATE INDEX memory_node_scope ON memory_node (tenant, project, stream, level);

CREATE TABLE memory_occurrence (
  node      bytea NOT NULL,
  t         integer NOT NULL,
  span_sha  bytea NOT NULL,       -- sha256 of span, for the key: an object's name may be long
  span      text NOT NULL,        -- '' for L1 and L2
  place     text NOT NULL,
  at        bigint NOT NULL,
  quote     text NOT NULL,
  quote_raw bytea,
  role      text NOT NULL,
  turn_id   text NOT NULL,
  PRIMARY KEY (node, t, span_sha)
);

-- No foreign keys: an edge may be applied before the node it points at, as streams
-- are applied in any order. Check finds the ones that stay open.
CREATE TABLE memory_edge (
  child_sha  bytea NOT NULL,
  kind       smallint NOT NULL,   -- 0: child rests on parent; 1: child replaces parent
  parent_sha bytea NOT NULL,
  tenant     text NOT NULL,
  project    text NOT NULL,
  PRIMARY KEY (child_sha, kind, parent_sha)
);
CREATE INDEX memory_edge_parent ON memory_edge (parent_sha, kind);
CREATE INDEX memory_edge_scope ON memory_edge (tenant, project);

-- The embedded text is not stored: it is the header of the node's first occurrence
-- and text[start:stop).
CREATE TABLE memory_passage (
  sha256    bytea PRIMARY KEY,
  node      bytea NOT NULL,
  n         integer NOT NULL,
  start     integer NOT NULL,
  stop      integer NOT NULL
);
CREATE INDEX memory_passage_node ON memory_passage (node, n);

-- Each space has its vectors in a table of its own, memory_vector_<id>: a column has
-- one dimension, and a space is dropped with its table.
CREATE TABLE memory_space (
  id        integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant    text NOT NULL,
  name      text NOT NULL,
  dims      integer NOT NULL,
  UNIQUE (tenant, name)
);

CREATE TABLE applied_seq (
  tenant    text NOT NULL,
  project   text NOT NULL,
  stream    text NOT NULL,
  space     text NOT NULL,
  seq       bigint NOT NULL,
  PRIMARY KEY (tenant, project, stream, space)
);
