-- People whom an issuer vouches for. The name is theirs for good, whatever the issuer calls them
-- later; the token is what their visits stand on.
CREATE TABLE vouched (
  issuer TEXT NOT NULL,
  subject TEXT NOT NULL,
  name TEXT NOT NULL UNIQUE,
  token_id BLOB,
  since INTEGER NOT NULL,
  PRIMARY KEY (issuer, subject)
) WITHOUT ROWID;

CREATE INDEX vouched_token ON vouched (token_id);

-- People who were sent to the issuer and may come back once.
CREATE TABLE departures (
  secret_sha256 BLOB PRIMARY KEY,
  next TEXT NOT NULL,
  ends_at INTEGER NOT NULL
) WITHOUT ROWID;

-- Whose visits there are.
CREATE INDEX visits_token ON visits (token_id);
CREATE INDEX tokens_name ON tokens (name);
