-- People who are signed in to the console. Each stands on a token, and ends with it at the latest.
CREATE TABLE visits (
  secret_sha256 BLOB PRIMARY KEY,
  token_id BLOB NOT NULL,
  began_at INTEGER NOT NULL,
  ends_at INTEGER NOT NULL
) WITHOUT ROWID;

-- Links that let somebody in once.
CREATE TABLE invitations (
  secret_sha256 BLOB PRIMARY KEY,
  ends_at INTEGER NOT NULL
) WITHOUT ROWID;

-- What was answered before when the same was asked.
CREATE INDEX permissions_before ON permissions (agent_id, tool, asked_at);
