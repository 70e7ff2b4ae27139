-- What people are asked and have answered. A projection of the runs' logs.
CREATE TABLE permissions (
  id BLOB PRIMARY KEY,
  run_id BLOB NOT NULL,
  call_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  tool TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('pending', 'granted', 'denied', 'expired', 'cancelled')),
  ruling TEXT NOT NULL,
  risk TEXT,
  asked_at INTEGER NOT NULL,
  expires_at INTEGER,
  escalated_at INTEGER,
  decided_at INTEGER,
  decided_by TEXT,
  comment TEXT,
  decided_arguments TEXT,
  body TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX permissions_pending ON permissions (id) WHERE status = 'pending';
CREATE INDEX permissions_run ON permissions (run_id, id);
CREATE INDEX permissions_user ON permissions (user_id, id);

-- Decisions that were to be remembered.
CREATE TABLE standing_rules (
  id BLOB PRIMARY KEY,
  user_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  run_id BLOB NOT NULL,
  scope TEXT NOT NULL CHECK (scope IN ('run', 'agent', 'always')),
  tool TEXT NOT NULL,
  signature TEXT NOT NULL,
  permission_id BLOB NOT NULL,
  made_by TEXT NOT NULL,
  made_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  revoked_at INTEGER,
  revoked_by TEXT
) WITHOUT ROWID;
CREATE INDEX standing_rules_for ON standing_rules (user_id, tool) WHERE revoked_at IS NULL;
