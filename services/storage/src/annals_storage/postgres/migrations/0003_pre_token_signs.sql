-- What late interaction compares. NULL: of a version that did not keep it. Signs do not compress.
SET LOCAL search_path = annals;

ALTER TABLE chunks ADD COLUMN token_signs bytea;
ALTER TABLE chunks ALTER COLUMN token_signs SET STORAGE EXTERNAL;
