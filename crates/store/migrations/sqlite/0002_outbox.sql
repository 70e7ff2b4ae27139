-- What is to be told to others, written with the event that it tells of. A row is gone when it
-- has been told.
CREATE TABLE outbox (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  subscriber TEXT NOT NULL,
  run_id BLOB NOT NULL,
  seq INTEGER NOT NULL,
  topic TEXT NOT NULL,
  at INTEGER NOT NULL,
  due_at INTEGER NOT NULL DEFAULT 0,
  tries INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX outbox_due ON outbox (due_at, id);
