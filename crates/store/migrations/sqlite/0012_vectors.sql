-- What memories mean: vectors, eight bits a dimension. Those of one space can be compared.
CREATE TABLE memory_spaces (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE
);

CREATE TABLE memory_vectors (
  partition_id INTEGER NOT NULL,
  doc INTEGER NOT NULL,
  space INTEGER NOT NULL,
  v BLOB NOT NULL,
  PRIMARY KEY (partition_id, doc)
) WITHOUT ROWID;

-- The space in which a memory was looked at last, whether or not a vector came of it; 0 for none.
ALTER TABLE memories ADD COLUMN space INTEGER NOT NULL DEFAULT 0;
CREATE INDEX memories_space ON memories (org_id, space, doc) WHERE superseded_by IS NULL;

-- Who stands beside whom, for a whole partition at once.
CREATE INDEX memories_beside ON memories (partition_id, run_id, seq, doc)
  WHERE run_id IS NOT NULL AND superseded_by IS NULL;
