-- What is remembered. A partition is an interned tuple of scope, type and preference; a part of
-- the scope that is absent is the empty text. Its counts are those of what is indexed.
CREATE TABLE memory_partitions (
  id BIGINT GENERATED ALWAYS AS IDENTITY (MAXVALUE 4294967295) PRIMARY KEY,
  tuple TEXT NOT NULL UNIQUE,
  org_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  project_id TEXT NOT NULL,
  group_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('core', 'episodic', 'archival')),
  preference BIGINT NOT NULL,
  docs BIGINT NOT NULL DEFAULT 0,
  length BIGINT NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
CREATE INDEX memory_partitions_whose ON memory_partitions (org_id, user_id);

CREATE TABLE memories (
  doc BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id UUID NOT NULL UNIQUE,
  partition_id BIGINT NOT NULL,
  org_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  content TEXT NOT NULL,
  metadata TEXT NOT NULL,
  hash BYTEA NOT NULL,
  run_id UUID,
  seq BIGINT,
  at BIGINT NOT NULL,
  made_at BIGINT NOT NULL,
  made_by TEXT NOT NULL,
  owner TEXT NOT NULL,
  length BIGINT NOT NULL,
  analyser BIGINT NOT NULL,
  near UUID,
  superseded_by UUID
);
CREATE UNIQUE INDEX memories_hash ON memories (partition_id, hash) WHERE superseded_by IS NULL;
CREATE INDEX memories_partition ON memories (partition_id, id);
CREATE INDEX memories_run ON memories (run_id, seq) WHERE run_id IS NOT NULL;
CREATE INDEX memories_near ON memories (near) WHERE near IS NOT NULL;
CREATE INDEX memories_superseded ON memories (superseded_by) WHERE superseded_by IS NOT NULL;

-- What memories are found by. The key is the partition, four bytes, and then the term: one column,
-- so that no plan looks at terms of other partitions.
CREATE TABLE memory_term (
  k BYTEA NOT NULL,
  doc BIGINT NOT NULL,
  tf INTEGER NOT NULL,
  dl INTEGER NOT NULL,
  PRIMARY KEY (k, doc) INCLUDE (tf, dl)
);

-- Which call or deposit of which run a memory came from; the same key is the same write.
CREATE TABLE memory_sources (
  key TEXT PRIMARY KEY,
  org_id TEXT NOT NULL,
  doc BIGINT NOT NULL,
  run_id UUID NOT NULL,
  source TEXT NOT NULL,
  original BIGINT,
  at BIGINT NOT NULL
);
CREATE INDEX memory_sources_doc ON memory_sources (doc);
CREATE INDEX memory_sources_run ON memory_sources (run_id);
CREATE INDEX memory_sources_original ON memory_sources (original) WHERE original IS NOT NULL;

-- Group runs that are done and whose results are still to be deposited.
CREATE TABLE deposits (
  run_id UUID PRIMARY KEY,
  due_at BIGINT NOT NULL DEFAULT 0,
  tries BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX deposits_due ON deposits (due_at);

-- The second wall: whatever a statement asks for, it sees what its transaction was let in for. The
-- system's own work is for every user of an organisation; no user's name has a control character.
ALTER TABLE memory_partitions ENABLE ROW LEVEL SECURITY;
ALTER TABLE memory_partitions FORCE ROW LEVEL SECURITY;
CREATE POLICY memory_partitions_wall ON memory_partitions USING (
  org_id = (SELECT current_setting('chancery.org', true))
  AND (user_id = '' OR user_id = (SELECT current_setting('chancery.user', true))
    OR (SELECT current_setting('chancery.user', true)) = chr(1)));

ALTER TABLE memories ENABLE ROW LEVEL SECURITY;
ALTER TABLE memories FORCE ROW LEVEL SECURITY;
CREATE POLICY memories_wall ON memories USING (
  org_id = (SELECT current_setting('chancery.org', true))
  AND (user_id = '' OR user_id = (SELECT current_setting('chancery.user', true))
    OR (SELECT current_setting('chancery.user', true)) = chr(1)));

ALTER TABLE memory_sources ENABLE ROW LEVEL SECURITY;
ALTER TABLE memory_sources FORCE ROW LEVEL SECURITY;
CREATE POLICY memory_sources_wall ON memory_sources USING (
  org_id = (SELECT current_setting('chancery.org', true)));

ALTER TABLE memory_term ENABLE ROW LEVEL SECURITY;
ALTER TABLE memory_term FORCE ROW LEVEL SECURITY;
CREATE POLICY memory_term_wall ON memory_term USING (
  substr(k, 1, 4) = ANY (ARRAY(
    SELECT decode(it, 'hex')
    FROM unnest(string_to_array(current_setting('chancery.reach', true), ',')) AS it)));
