-- The log. The primary key is the last fence: two writers cannot both write the same place.
CREATE TABLE events (
  run_id UUID NOT NULL,
  seq BIGINT NOT NULL,
  at BIGINT NOT NULL,
  kind TEXT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (run_id, seq)
);

-- What an append checks and moves: small rows, so that a step rewrites little.
CREATE TABLE heads (
  run_id UUID PRIMARY KEY,
  seq BIGINT NOT NULL,
  attempt BIGINT NOT NULL DEFAULT 0,
  input_tokens BIGINT NOT NULL DEFAULT 0,
  output_tokens BIGINT NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- A projection for queries; changes only when the run's status does.
CREATE TABLE runs (
  id UUID PRIMARY KEY,
  status TEXT NOT NULL CHECK (status IN ('pending', 'running', 'waiting', 'completed', 'failed', 'cancelled')),
  waiting_for TEXT,
  org_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  role_id TEXT NOT NULL,
  group_id TEXT,
  project_id TEXT,
  session_key TEXT,
  parent_run_id UUID,
  delegated_permissions TEXT,
  input TEXT NOT NULL,
  output TEXT,
  error TEXT,
  created_at BIGINT NOT NULL,
  started_at BIGINT,
  ended_at BIGINT
);
CREATE INDEX runs_parent_run_id ON runs (parent_run_id) WHERE parent_run_id IS NOT NULL;
CREATE INDEX runs_status ON runs (status, id);
CREATE INDEX runs_user ON runs (user_id, id);
CREATE INDEX runs_session ON runs (session_key, id) WHERE session_key IS NOT NULL;

-- The runs that want a worker, and only those.
CREATE TABLE queue (
  run_id UUID PRIMARY KEY,
  ready_at BIGINT NOT NULL DEFAULT 0,
  owner UUID,
  failures BIGINT NOT NULL DEFAULT 0,
  failed_seq BIGINT NOT NULL DEFAULT 0
) WITH (
  fillfactor = 50,
  -- Rows come and go all the time: what is gone must not stand in a claim's way.
  autovacuum_vacuum_scale_factor = 0,
  autovacuum_vacuum_threshold = 1000
);
CREATE INDEX queue_ready ON queue (ready_at, run_id) WHERE owner IS NULL;
CREATE INDEX queue_owner ON queue (owner) WHERE owner IS NOT NULL;

CREATE TABLE timers (
  run_id UUID PRIMARY KEY,
  due_at BIGINT NOT NULL,
  wait_key TEXT NOT NULL
);
CREATE INDEX timers_due ON timers (due_at);

CREATE TABLE workers (
  id UUID PRIMARY KEY,
  alive_until BIGINT NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE idempotency_keys (
  caller TEXT NOT NULL,
  key TEXT NOT NULL,
  request_sha256 BYTEA NOT NULL,
  run_id UUID NOT NULL,
  at BIGINT NOT NULL,
  PRIMARY KEY (caller, key)
);

CREATE TABLE tokens (
  id UUID PRIMARY KEY,
  secret_sha256 BYTEA NOT NULL UNIQUE,
  kind TEXT NOT NULL CHECK (kind IN ('human', 'service', 'agent')),
  name TEXT NOT NULL,
  operator BIGINT NOT NULL DEFAULT 0,
  approve BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL,
  revoked_at BIGINT
);
