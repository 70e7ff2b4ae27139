-- What became of each attempt to tell a subscriber something.
CREATE TABLE deliveries (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  notice_id BIGINT NOT NULL,
  subscriber TEXT NOT NULL,
  run_id UUID NOT NULL,
  seq BIGINT NOT NULL,
  topic TEXT NOT NULL,
  attempt BIGINT NOT NULL,
  at BIGINT NOT NULL,
  error TEXT
);
