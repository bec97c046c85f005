-- Whether a failure group has letters of a key left. Within the transaction that forgets letters.
SELECT 1 FROM letters INDEXED BY letters_hash JOIN kinds ON kinds.id = letters.kind
WHERE letters.hash = ?2 AND kinds.failure = ?1 LIMIT 1
