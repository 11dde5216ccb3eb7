-- How a tenant's searches rank where it differs from the defaults, by the names of
-- domain/search_parameters.py. A tenant without a row has the defaults.
SET LOCAL search_path = annals;

CREATE TABLE search_parameters (
  tenant_id  uuid PRIMARY KEY REFERENCES tenants,
  overrides  jsonb NOT NULL CHECK (jsonb_typeof(overrides) = 'object'),
  updated_at timestamptz NOT NULL DEFAULT now()
);

ALTER TABLE search_parameters ENABLE ROW LEVEL SECURITY;
ALTER TABLE search_parameters FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON search_parameters TO annals_app
  USING (tenant_id = current_tenant()) WITH CHECK (tenant_id = current_tenant());
GRANT SELECT, INSERT, UPDATE, DELETE ON search_parameters TO annals_app;
