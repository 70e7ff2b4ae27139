-- People who are signed in to the console. Each stands on a token, and ends with it at the latest.
CREATE TABLE visits (
  secret_sha256 BYTEA PRIMARY KEY,
  token_id UUID NOT NULL,
  began_at BIGINT NOT NULL,
  ends_at BIGINT NOT NULL
);

-- Links that let somebody in once.
CREATE TABLE invitations (
  secret_sha256 BYTEA PRIMARY KEY,
  ends_at BIGINT NOT NULL
);

-- What was answered before when the same was asked.
CREATE INDEX permissions_before ON permissions (agent_id, tool, asked_at);
