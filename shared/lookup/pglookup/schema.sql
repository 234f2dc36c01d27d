-- Hashes are 32 bytes; hashes of a lesson as lookup.Pack gives them. Times are Unix milliseconds, UTC.
CREATE TABLE lesson_schema (version int NOT NULL);

-- Every record of the shelf that was applied; gone: erased, and never a row again.
CREATE TABLE lesson_record (tenant text NOT NULL, project text NOT NULL, key bytea NOT NULL, gone boolean NOT NULL, PRIMARY KEY (tenant, project, key));

CREATE TABLE lesson (tenant text COLLATE "C" NOT NULL, project text COLLATE "C" NOT NULL, key bytea NOT NULL, at bigint NOT NULL, hashes bytea NOT NULL, body bytea NOT NULL, PRIMARY KEY (tenant, project, key));

-- back: minus at, so that the newest of a class are read first and no others.
CREATE TABLE lesson_name (tenant text NOT NULL, project text NOT NULL, kind smallint NOT NULL, hash bytea NOT NULL, back bigint NOT NULL, key bytea NOT NULL, PRIMARY KEY (tenant, project, kind, hash, back, key));
CREATE INDEX lesson_name_key ON lesson_name (tenant, project, key);

CREATE TABLE lesson_outcome (tenant text COLLATE "C" NOT NULL, project text COLLATE "C" NOT NULL, record bytea NOT NULL, lesson bytea NOT NULL, use text NOT NULL, worked boolean NOT NULL, PRIMARY KEY (tenant, project, record));
CREATE INDEX lesson_outcome_lesson ON lesson_outcome (tenant, project, lesson, use, record);
