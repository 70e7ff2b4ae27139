-- What became of each attempt to tell a subscriber something.
CREATE TABLE deliveries (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  notice_id INTEGER NOT NULL,
  subscriber TEXT NOT NULL,
  run_id BLOB NOT NULL,
  seq INTEGER NOT NULL,
  topic TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  at INTEGER NOT NULL,
  error TEXT
);
