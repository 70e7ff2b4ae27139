-- The audit: one chain of entries. `hash` is of the hash before and the entry's text; the columns
-- beside the text are copies of what is in it, to look for.
CREATE TABLE audit (
  seq BIGINT PRIMARY KEY,
  id UUID NOT NULL UNIQUE,
  at BIGINT NOT NULL,
  kind TEXT NOT NULL,
  agent TEXT,
  tool TEXT,
  ruling TEXT,
  user_id TEXT,
  run_id UUID,
  entry TEXT NOT NULL,
  hash BYTEA NOT NULL
);
CREATE INDEX audit_at ON audit (at);
CREATE INDEX audit_kind ON audit (kind, seq);
CREATE INDEX audit_agent ON audit (agent, seq) WHERE agent IS NOT NULL;
CREATE INDEX audit_tool ON audit (tool, seq) WHERE tool IS NOT NULL;
CREATE INDEX audit_user ON audit (user_id, seq) WHERE user_id IS NOT NULL;
CREATE INDEX audit_run ON audit (run_id, seq) WHERE run_id IS NOT NULL;

-- Where the chain ends. One row, and the last that a transaction locks.
CREATE TABLE audit_head (
  one BIGINT PRIMARY KEY CHECK (one = 1),
  seq BIGINT NOT NULL,
  hash BYTEA NOT NULL
) WITH (fillfactor = 10);
INSERT INTO audit_head (one, seq, hash) VALUES (1, 0, decode(repeat('00', 32), 'hex'));
