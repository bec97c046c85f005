-- The first letter of a kind from a time on. Reads one entry of the index.
SELECT min(time) FROM letters INDEXED BY letters_kind WHERE kind = ?1 AND time >= ?2
