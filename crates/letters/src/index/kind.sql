-- A kind, unless it is there. Its base is that of another that differs in its attempts alone, or itself. A short write,
-- within the transaction that needs the kind.
INSERT OR IGNORE INTO kinds (topic, failure, class, reason, dialect, state, attempts, base)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, coalesce(
    (SELECT base FROM kinds WHERE topic = ?1 AND failure = ?2 AND class = ?3 AND reason = ?4 AND dialect = ?5
     AND state = ?6 LIMIT 1),
    (SELECT coalesce(max(id), 0) + 1 FROM kinds)
)
