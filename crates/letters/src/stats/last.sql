-- The last letter of a kind before a time. Reads one entry of the index.
SELECT max(time) FROM letters INDEXED BY letters_kind WHERE kind = ?1 AND time < ?2
