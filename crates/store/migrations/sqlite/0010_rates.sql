-- How often agents call tools: until when the calls of each are paid for, at its rate.
CREATE TABLE rates (
  agent_id TEXT NOT NULL,
  tool TEXT NOT NULL,
  paid_until INTEGER NOT NULL,
  PRIMARY KEY (agent_id, tool)
) WITHOUT ROWID;
