-- The versions of the organisation: every one that was ever in force, with its files.
CREATE TABLE org_versions (
  number BIGINT PRIMARY KEY,
  digest TEXT NOT NULL,
  made_at BIGINT NOT NULL,
  made_by TEXT NOT NULL,
  source TEXT NOT NULL,
  files TEXT NOT NULL
);
