-- The log. The primary key is the last fence: two writers cannot both write the same place.
CREATE TABLE events (
  run_id BLOB NOT NULL,
  seq INTEGER NOT NULL,
  at INTEGER NOT NULL,
  kind TEXT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (run_id, seq)
) WITHOUT ROWID;

-- What an append checks and moves: small rows, so that a step rewrites little.
CREATE TABLE heads (
  run_id BLOB PRIMARY KEY,
  seq INTEGER NOT NULL,
  attempt INTEGER NOT NULL DEFAULT 0,
  input_tokens INTEGER NOT NULL DEFAULT 0,
  output_tokens INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- A projection for queries; changes only when the run's status does.
CREATE TABLE runs (
  id BLOB PRIMARY KEY,
  status TEXT NOT NULL CHECK (status IN ('pending', 'running', 'waiting', 'completed', 'failed', 'cancelled')),
  waiting_for TEXT,
  org_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  role_id TEXT NOT NULL,
  group_id TEXT,
  project_id TEXT,
  session_key TEXT,
  parent_run_id BLOB,
  delegated_permissions TEXT,
  input TEXT NOT NULL,
  output TEXT,
  error TEXT,
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  ended_at INTEGER
);
CREATE INDEX runs_parent_run_id ON runs (parent_run_id) WHERE parent_run_id IS NOT NULL;
CREATE INDEX runs_status ON runs (status, id);
CREATE INDEX runs_user ON runs (user_id, id);
CREATE INDEX runs_session ON runs (session_key, id) WHERE session_key IS NOT NULL;

-- The runs that want a worker, and only those.
CREATE TABLE queue (
  run_id BLOB PRIMARY KEY,
  ready_at INTEGER NOT NULL DEFAULT 0,
  owner BLOB,
  failures INTEGER NOT NULL DEFAULT 0,
  failed_seq INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX queue_ready ON queue (ready_at, run_id) WHERE owner IS NULL;
CREATE INDEX queue_owner ON queue (owner) WHERE owner IS NOT NULL;

CREATE TABLE timers (
  run_id BLOB PRIMARY KEY,
  due_at INTEGER NOT NULL,
  wait_key TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX timers_due ON timers (due_at);

CREATE TABLE workers (
  id BLOB PRIMARY KEY,
  alive_until INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE idempotency_keys (
  caller TEXT NOT NULL,
  key TEXT NOT NULL,
  request_sha256 BLOB NOT NULL,
  run_id BLOB NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (caller, key)
) WITHOUT ROWID;

CREATE TABLE tokens (
  id BLOB PRIMARY KEY,
  secret_sha256 BLOB NOT NULL UNIQUE,
  kind TEXT NOT NULL CHECK (kind IN ('human', 'service', 'agent')),
  name TEXT NOT NULL,
  operator INTEGER NOT NULL DEFAULT 0,
  approve INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  revoked_at INTEGER
) WITHOUT ROWID;
