-- Generations of the mirror: each a collection of the vector engine, filled by one embedding model.
-- Nothing here is a tenant's, so the table is beside the ledger of migrations, outside of the
-- schema whose every table is isolated by tenant.
CREATE TABLE public.annals_mirror_generations (
  number          integer PRIMARY KEY CHECK (number > 0),
  state           text NOT NULL CHECK (state IN ('building', 'serving', 'retired', 'removing')),
  embedding_model text NOT NULL,
  model_dir       text,
  dimensions      integer NOT NULL CHECK (dimensions > 0),
  -- The generation whose chunks these are: a rebuild by the same model shares them.
  chunks_of       integer NOT NULL,
  -- Events and memories to mirror, NULL until they were counted, and those enqueued so far.
  sources_total   bigint,
  sources_done    bigint NOT NULL DEFAULT 0,
  -- How far the walk is: the tenant, and the last event or memory of it. NULL: not begun.
  position        jsonb,
  -- The end of the walk. What was enqueued until then has to be mirrored before it serves.
  walked_at       timestamptz,
  -- What was parked already when it was begun.
  parked_before   bigint NOT NULL DEFAULT 0,
  problem         text NOT NULL DEFAULT '',
  keeper          text,
  keeper_until    timestamptz,
  requested_at    timestamptz NOT NULL DEFAULT now(),
  changed_at      timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX annals_mirror_generations_state ON public.annals_mirror_generations (state);
-- The first is made with its number; numbers are never used again.
CREATE SEQUENCE public.annals_mirror_generation_numbers START 2;
GRANT SELECT, INSERT, UPDATE, DELETE ON public.annals_mirror_generations TO annals_app;
GRANT USAGE ON SEQUENCE public.annals_mirror_generation_numbers TO annals_app;

SET LOCAL search_path = annals;

-- While two models are in use, a memory has an embedding by each. This one is of the version.
ALTER TABLE memories ADD COLUMN other_embedding bytea;
ALTER TABLE memories ADD COLUMN other_embedding_model text;
ALTER TABLE memories ADD COLUMN other_embedding_version integer;

CREATE FUNCTION outbox_waiting(p_until timestamptz) RETURNS bigint
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = annals, pg_temp
BEGIN ATOMIC
  SELECT count(*) FROM outbox WHERE parked_at IS NULL AND enqueued_at <= p_until;
END;
REVOKE ALL ON FUNCTION outbox_waiting FROM PUBLIC;
GRANT EXECUTE ON FUNCTION outbox_waiting TO annals_app;
