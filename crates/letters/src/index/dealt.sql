-- A letter of a failure group was dealt with. A short write, beside those of the letters.
INSERT INTO dealings SELECT fingerprint, ?2 FROM failures WHERE id = ?1
ON CONFLICT (fingerprint) DO UPDATE SET at = max(at, excluded.at);
