-- What agents and the board have written to one another. Who may write to whom is decided before
-- a row is made, in the same transaction.
CREATE TABLE mails (
  id TEXT PRIMARY KEY,
  from_agent TEXT NOT NULL,
  to_agent TEXT NOT NULL,
  mail_type TEXT NOT NULL,
  subject TEXT NOT NULL,
  body TEXT NOT NULL,
  priority TEXT NOT NULL,
  -- 0 is the most urgent: what an inbox is sorted by.
  urgency INTEGER NOT NULL,
  attachments TEXT NOT NULL,
  fields TEXT NOT NULL,
  reply_to TEXT,
  -- The first mail of its thread.
  thread TEXT NOT NULL,
  contract_ref TEXT,
  status TEXT NOT NULL CHECK (status IN ('sent', 'delivered', 'read', 'failed')),
  created_at INTEGER NOT NULL,
  delivered_at INTEGER NOT NULL,
  read_at INTEGER,
  -- The person behind it, and what they delegated: what a run that answers it may do at most.
  user_id TEXT NOT NULL,
  project_id TEXT,
  delegated TEXT,
  run_id BLOB,
  -- The call that sent it: the same call is the same mail.
  call_key TEXT UNIQUE,
  -- Of a mail of the system: what it is about.
  about TEXT,
  -- The run that was made to answer it.
  handed_to BLOB
);
CREATE INDEX mails_inbox ON mails (to_agent, urgency, created_at, id);
CREATE INDEX mails_sent ON mails (from_agent, created_at, id);
CREATE INDEX mails_contract ON mails (contract_ref) WHERE contract_ref IS NOT NULL;
CREATE INDEX mails_thread ON mails (thread);
CREATE INDEX mails_about ON mails (about, created_at) WHERE about IS NOT NULL;
CREATE INDEX mails_waiting ON mails (to_agent, urgency, created_at, id)
  WHERE handed_to IS NULL AND to_agent <> 'board';
CREATE INDEX mails_handed ON mails (handed_to) WHERE handed_to IS NOT NULL;

CREATE TABLE mail_rejections (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  from_agent TEXT NOT NULL,
  to_agent TEXT NOT NULL,
  mail_type TEXT NOT NULL,
  step TEXT NOT NULL,
  reason TEXT NOT NULL,
  attempted_at INTEGER NOT NULL,
  run_id BLOB,
  user_id TEXT NOT NULL,
  call_key TEXT UNIQUE
);
CREATE INDEX mail_rejections_from ON mail_rejections (from_agent, attempted_at);

-- A contract is a mail with a state.
CREATE TABLE contracts (
  id TEXT PRIMARY KEY,
  mail_id TEXT NOT NULL UNIQUE,
  from_agent TEXT NOT NULL,
  to_agent TEXT NOT NULL,
  terms TEXT NOT NULL,
  cross_department INTEGER NOT NULL,
  state TEXT NOT NULL,
  failures INTEGER NOT NULL,
  -- The contract under which it was issued.
  parent TEXT,
  user_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
);
CREATE INDEX contracts_active ON contracts (to_agent) WHERE state IN ('accepted', 'in_progress');
CREATE INDEX contracts_to ON contracts (to_agent, id);
CREATE INDEX contracts_from ON contracts (from_agent, id);
CREATE INDEX contracts_parent ON contracts (parent) WHERE parent IS NOT NULL;

CREATE TABLE contract_steps (
  contract_id TEXT NOT NULL,
  place INTEGER NOT NULL,
  from_state TEXT NOT NULL,
  to_state TEXT NOT NULL,
  made_by TEXT NOT NULL,
  note TEXT,
  at INTEGER NOT NULL,
  PRIMARY KEY (contract_id, place)
);

-- Runs that are to be made for mail, and those that were.
CREATE TABLE mail_runs (
  run_id BLOB PRIMARY KEY,
  agent_id TEXT NOT NULL,
  made INTEGER NOT NULL DEFAULT 0,
  at INTEGER NOT NULL
);
CREATE INDEX mail_runs_agent ON mail_runs (agent_id, at);
CREATE INDEX mail_runs_unmade ON mail_runs (at) WHERE made = 0;

-- Problems that were handed up and wait for an answer.
CREATE TABLE raises (
  mail_id TEXT PRIMARY KEY,
  from_agent TEXT NOT NULL,
  to_agent TEXT NOT NULL,
  -- What tells one problem from another.
  matter TEXT NOT NULL,
  -- How many were sent about it, this one included.
  count INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('open', 'answered', 'unanswered')),
  due_at INTEGER NOT NULL
);
CREATE INDEX raises_due ON raises (due_at) WHERE state = 'open';
CREATE INDEX raises_matter ON raises (from_agent, matter);

-- What a notice says that is about no event of a run.
ALTER TABLE outbox ADD COLUMN body TEXT;
