-- What is to be told to others, written with the event that it tells of. A row is gone when it
-- has been told.
CREATE TABLE outbox (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  subscriber TEXT NOT NULL,
  run_id UUID NOT NULL,
  seq BIGINT NOT NULL,
  topic TEXT NOT NULL,
  at BIGINT NOT NULL,
  due_at BIGINT NOT NULL DEFAULT 0,
  tries BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX outbox_due ON outbox (due_at, id);
