-- The times of letters of a kind. Reads the index alone.
SELECT time FROM letters INDEXED BY letters_kind WHERE kind = ?1 AND time >= ?2 AND time < ?3
