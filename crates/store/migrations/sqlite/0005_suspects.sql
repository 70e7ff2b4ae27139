-- How many workers were lost while they had the run, at the place where its log was last.
ALTER TABLE queue ADD COLUMN crashes INTEGER NOT NULL DEFAULT 0;
CREATE INDEX queue_suspects ON queue (failures, run_id) WHERE crashes >= 2;
