-- Kinds and failure groups without letters. A short write, after letters left. A kind that is the base of others
-- stays with them.
DELETE FROM kinds WHERE count <= 0 AND id NOT IN (SELECT base FROM kinds WHERE count > 0);
DELETE FROM hours WHERE base NOT IN (SELECT base FROM kinds);
DELETE FROM failures WHERE id NOT IN (SELECT failure FROM kinds);
