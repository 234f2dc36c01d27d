-- Hashes are 32 bytes. Times are Unix milliseconds, UTC.
CREATE TABLE scopes (id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, project TEXT NOT NULL, UNIQUE (tenant, project));

-- Every record of the shelf that was applied; gone = 1: erased, and never a row again.
CREATE TABLE records (scope INTEGER NOT NULL, key BLOB NOT NULL, gone INTEGER NOT NULL, PRIMARY KEY (scope, key)) WITHOUT ROWID;

-- hashes: (kind byte, 32 bytes) one after the other, sorted: what rows of names to delete.
CREATE TABLE lessons (id INTEGER PRIMARY KEY, scope INTEGER NOT NULL, key BLOB NOT NULL, at INTEGER NOT NULL, hashes BLOB NOT NULL, body BLOB NOT NULL, UNIQUE (scope, key));

-- back: minus at, so that the newest of a class are read first and no others.
CREATE TABLE names (scope INTEGER NOT NULL, kind INTEGER NOT NULL, hash BLOB NOT NULL, back INTEGER NOT NULL, key BLOB NOT NULL, PRIMARY KEY (scope, kind, hash, back, key)) WITHOUT ROWID;

CREATE TABLE outcomes (scope INTEGER NOT NULL, lesson BLOB NOT NULL, use TEXT NOT NULL, worked INTEGER NOT NULL, record BLOB NOT NULL, PRIMARY KEY (scope, lesson, use, record)) WITHOUT ROWID;
