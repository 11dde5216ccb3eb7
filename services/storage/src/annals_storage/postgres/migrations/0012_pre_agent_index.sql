-- How contexts of an agent are indexed, by the names of the API's IndexConfig; what is absent has
-- the default.
SET LOCAL search_path = annals;

ALTER TABLE agents
  ADD COLUMN index_config jsonb NOT NULL DEFAULT '{}'
  CHECK (jsonb_typeof(index_config) = 'object');
