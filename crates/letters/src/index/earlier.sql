-- Letters of a place that lie under a key, before a letter: filed under it, or with it as their own key. Of those that
-- are filed only the hash of that key is known; it is of the origin, so that two of a place with one hash are one in
-- four billion.
SELECT id FROM letters WHERE filed = ?1 AND id >= ?2 AND id < ?3
UNION ALL
SELECT id FROM letters WHERE hash = ?1 AND id >= ?2 AND id < ?3 AND filed IS NULL AND key = ?4
