-- Runs whose parent has ended without them, or waits for them no longer: they are to be cancelled.
CREATE TABLE orphans (
  run_id BLOB PRIMARY KEY
) WITHOUT ROWID;
