-- What is remembered. A partition is an interned tuple of scope, type and preference; a part of
-- the scope that is absent is the empty text. Its counts are those of what is indexed.
CREATE TABLE memory_partitions (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tuple TEXT NOT NULL UNIQUE,
  org_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  project_id TEXT NOT NULL,
  group_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('core', 'episodic', 'archival')),
  preference INTEGER NOT NULL,
  docs INTEGER NOT NULL DEFAULT 0,
  length INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX memory_partitions_whose ON memory_partitions (org_id, user_id);

CREATE TABLE memories (
  doc INTEGER PRIMARY KEY AUTOINCREMENT,
  id BLOB NOT NULL UNIQUE,
  partition_id INTEGER NOT NULL,
  org_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  content TEXT NOT NULL,
  metadata TEXT NOT NULL,
  hash BLOB NOT NULL,
  run_id BLOB,
  seq INTEGER,
  at INTEGER NOT NULL,
  made_at INTEGER NOT NULL,
  made_by TEXT NOT NULL,
  owner TEXT NOT NULL,
  length INTEGER NOT NULL,
  analyser INTEGER NOT NULL,
  near BLOB,
  superseded_by BLOB
);
CREATE UNIQUE INDEX memories_hash ON memories (partition_id, hash) WHERE superseded_by IS NULL;
CREATE INDEX memories_partition ON memories (partition_id, id);
CREATE INDEX memories_run ON memories (run_id, seq) WHERE run_id IS NOT NULL;
CREATE INDEX memories_near ON memories (near) WHERE near IS NOT NULL;
CREATE INDEX memories_superseded ON memories (superseded_by) WHERE superseded_by IS NOT NULL;

-- What memories are found by. The key is the partition, four bytes, and then the term: one column,
-- so that no plan looks at terms of other partitions.
CREATE TABLE memory_term (
  k BLOB NOT NULL,
  doc INTEGER NOT NULL,
  tf INTEGER NOT NULL,
  dl INTEGER NOT NULL,
  PRIMARY KEY (k, doc)
) WITHOUT ROWID;

-- Which call or deposit of which run a memory came from; the same key is the same write.
CREATE TABLE memory_sources (
  key TEXT PRIMARY KEY,
  org_id TEXT NOT NULL,
  doc INTEGER NOT NULL,
  run_id BLOB NOT NULL,
  source TEXT NOT NULL,
  original INTEGER,
  at INTEGER NOT NULL
);
CREATE INDEX memory_sources_doc ON memory_sources (doc);
CREATE INDEX memory_sources_run ON memory_sources (run_id);
CREATE INDEX memory_sources_original ON memory_sources (original) WHERE original IS NOT NULL;

-- Group runs that are done and whose results are still to be deposited.
CREATE TABLE deposits (
  run_id BLOB PRIMARY KEY,
  due_at INTEGER NOT NULL DEFAULT 0,
  tries INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX deposits_due ON deposits (due_at);
