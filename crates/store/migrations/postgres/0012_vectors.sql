-- What memories mean: vectors, eight bits a dimension. Those of one space can be compared.
CREATE TABLE memory_spaces (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
);

CREATE TABLE memory_vectors (
  partition_id BIGINT NOT NULL,
  doc BIGINT NOT NULL,
  space BIGINT NOT NULL,
  v BYTEA NOT NULL,
  PRIMARY KEY (partition_id, doc)
);
-- Vectors do not get smaller; looking for how costs time.
ALTER TABLE memory_vectors ALTER COLUMN v SET STORAGE EXTERNAL;

-- The space in which a memory was looked at last, whether or not a vector came of it; 0 for none.
ALTER TABLE memories ADD COLUMN space BIGINT NOT NULL DEFAULT 0;
CREATE INDEX memories_space ON memories (org_id, space, doc) WHERE superseded_by IS NULL;

-- Who stands beside whom, for a whole partition at once.
CREATE INDEX memories_beside ON memories (partition_id, run_id, seq, doc)
  WHERE run_id IS NOT NULL AND superseded_by IS NULL;

-- The second wall, as for the terms.
ALTER TABLE memory_vectors ENABLE ROW LEVEL SECURITY;
ALTER TABLE memory_vectors FORCE ROW LEVEL SECURITY;
CREATE POLICY memory_vectors_wall ON memory_vectors USING (
  lpad(to_hex(partition_id), 8, '0') = ANY (
    string_to_array(current_setting('chancery.reach', true), ',')));
