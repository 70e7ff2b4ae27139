-- What a run's answers cost, in millionths of the operator's money: charged as its tokens are.
ALTER TABLE heads ADD COLUMN cost_micros BIGINT NOT NULL DEFAULT 0;
